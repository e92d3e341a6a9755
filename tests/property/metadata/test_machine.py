"""Random lives of a cluster: whatever is asked, the metadata stays whole, and the log alone gives it back."""

from random import Random
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st

from riverlog.metadata.cluster_decisions import MetadataCommand
from riverlog.metadata.commands.configs import AlterConfigs, ConfigChange, ResourceChanges
from riverlog.metadata.commands.only_broker import RegisterOnlyBroker
from riverlog.metadata.commands.partitions import CreatePartitions, NewPartitions
from riverlog.metadata.commands.producer_ids import AllocateProducerIds, ProducerIdBlock
from riverlog.metadata.commands.topics import CreateTopics, DeleteTopics, TopicCreation, TopicDefaults
from riverlog.metadata.delta import delta_of
from riverlog.metadata.draft import after
from riverlog.metadata.encoding import BadMetadataRecord, decode_record, encode_record
from riverlog.metadata.image import MetadataImage, folded
from riverlog.metadata.machine import MetadataMachine
from riverlog.metadata.records import MetadataRecord
from riverlog.model.endpoints import Endpoint
from riverlog.model.ids import NodeId, TopicId
from riverlog.model.machine import Instant, Moment, Ticket
from tests.support.replies import check_reply

NODES = st.integers(1, 4).map(NodeId)
NAMES = st.sampled_from(["a", "b", "c.d", "c_d", "e" * 249, "e" * 250, "", "..", "ü", "f"])
COUNTS = st.integers(-2, 70)
REPLICAS = st.lists(NODES, max_size=3).map(tuple)
SETTINGS = st.sampled_from(
    [
        ("retention.ms", "5"),
        ("retention.ms", "x"),
        ("cleanup.policy", "compact"),
        ("nonsense", "1"),
        ("preallocate", "true"),
    ]
)
NODE_SETTINGS = st.sampled_from([("max.connections", "5"), ("node.id", "3"), ("log.retention.ms", "9"), ("x", "y")])


@st.composite
def new_topics(draw: st.DrawFn) -> CreateTopics:
    topics = [
        TopicCreation(
            name=draw(NAMES),
            id=TopicId(UUID(int=draw(st.integers(1, 2**128 - 1)))),
            partitions=draw(COUNTS),
            replication_factor=draw(st.integers(-2, 4)),
            assignments=tuple(draw(st.lists(REPLICAS, max_size=3))) if draw(st.booleans()) else (),
            configs=dict(draw(st.lists(SETTINGS, max_size=2))),
        )
        for _ in range(draw(st.integers(0, 3)))
    ]
    return CreateTopics(tuple(topics), validate_only=draw(st.booleans()) and draw(st.booleans()))


@st.composite
def changes(draw: st.DrawFn) -> AlterConfigs:
    of_topic = draw(st.booleans())
    pairs = draw(st.lists(SETTINGS if of_topic else NODE_SETTINGS, max_size=2))
    operations = st.integers(0, 4)
    resource = ResourceChanges(
        type=2 if of_topic else 4,
        name=draw(NAMES) if of_topic else draw(st.sampled_from(["", "1", "9", "x"])),
        changes=tuple(ConfigChange(name, draw(operations), value) for name, value in pairs),
    )
    return AlterConfigs((resource,), replace=draw(st.booleans()))


def register(node_id: NodeId, *, clean: bool) -> RegisterOnlyBroker:
    endpoints = (Endpoint("PLAINTEXT", f"host-{node_id}", 9092),)
    return RegisterOnlyBroker(node_id, UUID(int=node_id), endpoints, None, (UUID(int=100 + node_id),), clean)


COMMANDS = st.one_of(
    new_topics(),
    new_topics(),
    changes(),
    st.builds(register, NODES, clean=st.booleans()),
    st.builds(lambda name, total: CreatePartitions((NewPartitions(name, total),)), NAMES, COUNTS),
    NAMES,  # stands for deleting the topic of this name
    st.builds(AllocateProducerIds, NODES, st.integers(1, 1000)),
)


class Life:
    """A machine, and all records that it ever wrote."""

    def __init__(self) -> None:
        self.machine = MetadataMachine(TopicDefaults(partitions=2, replication_factor=3))
        self.records: list[MetadataRecord] = []
        self.blocks: list[ProducerIdBlock] = []

    def live(self, command: MetadataCommand) -> None:
        before = self.machine.image
        decision = self.machine.decide(command, Ticket(1), Moment(Instant(0.0), 0))
        assert self.machine.image is before, "deciding changes nothing"
        for reply in decision.replies:
            check_reply(command, reply.response)
        for record in decision.records:
            self.machine.apply(record)
        self.records += decision.records
        self.blocks += [reply.response for reply in decision.replies if isinstance(reply.response, ProducerIdBlock)]
        check_delta(before, self.machine.image, decision.records)


@settings(max_examples=60, deadline=None)
@given(st.lists(COMMANDS, max_size=25))
def test_whatever_is_asked_the_image_stays_whole_and_the_log_gives_it_back(commands):
    life = Life()
    life.live(register(NodeId(1), clean=True))
    for command in commands:
        if isinstance(command, str):
            topic = life.machine.image.topic(command)
            command = DeleteTopics((TopicId(UUID(int=5)) if topic is None else topic.id,))
        if isinstance(command, CreateTopics):
            command = fresh_ids(command, life.machine.image)
        life.live(command)
        check_image(life.machine.image)
    image = life.machine.image
    assert after(MetadataImage(), [decode_record(encode_record(record)) for record in life.records]) == image
    assert after(MetadataImage(), life.machine.snapshot()) == image
    check_blocks(life.blocks)


def fresh_ids(command: CreateTopics, image: MetadataImage) -> CreateTopics:
    """Drop topics whose id is taken: ids are drawn so that this does not happen."""
    ids = [new.id for new in command.topics]
    kept = tuple(new for new in command.topics if ids.count(new.id) == 1 and image.topic_by_id(new.id) is None)
    return CreateTopics(kept, command.validate_only)


def check_image(image: MetadataImage) -> None:
    topics = list(image.all_topics())
    assert [topic.name for topic in topics] == sorted(topic.name for topic in topics)
    assert len({folded(topic.name) for topic in topics}) == len(topics) == len(image.topics) == len(image.topic_names)
    for topic in topics:
        assert image.topic_by_id(topic.id) == topic
        assert topic.partition_count >= 1
        assert [partition.index for partition in topic.partitions] == list(range(topic.partition_count))
        for partition in topic.partitions:
            assert len(partition.replicas) == topic.replication_factor
            assert len(set(partition.replicas)) == len(partition.replicas)
            assert set(partition.isr) <= set(partition.replicas) <= image.brokers.keys()
            assert partition.leader in partition.isr
            assert 0 <= partition.leader_epoch <= partition.partition_epoch
    for key, values in image.configs.items():
        kind, _, name = key.partition("/")
        assert values
        assert kind == "4" or image.topic(name) is not None, "settings go with their topic"


def check_delta(before: MetadataImage, after: MetadataImage, records: tuple[MetadataRecord, ...]) -> None:
    delta = delta_of(before, after, records)
    were = {topic.id: topic for topic in before.all_topics()}
    are = {topic.id: topic for topic in after.all_topics()}
    assert {topic.id for topic in delta.created} == are.keys() - were.keys()
    assert {topic.id for topic in delta.deleted} == were.keys() - are.keys()
    assert {topic.id for topic in delta.changed} == {
        each for each in were.keys() & are.keys() if were[each] != are[each]
    }


def check_blocks(blocks: list[ProducerIdBlock]) -> None:
    given_out = [each for block in blocks for each in range(block.first, block.first + block.count)]
    assert len(given_out) == len(set(given_out))


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=80))
def test_bytes_that_are_no_record_are_refused_and_nothing_else_happens(data):
    try:
        record = decode_record(data)
    except BadMetadataRecord:
        return
    encode_record(record)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32), st.integers(0, 60), st.integers(0, 255))
def test_a_damaged_record_is_refused_or_read_as_another(seed, position, value):
    life = Life()
    life.live(register(NodeId(1), clean=True))
    life.live(CreateTopics((TopicCreation("orders", TopicId(UUID(int=7)), 1, configs={"retention.ms": "5"}),)))
    life.live(register(NodeId(1), clean=False))
    data = bytearray(encode_record(Random(seed).choice(life.records)))
    data[position % len(data)] = value
    try:
        record = decode_record(bytes(data))
    except BadMetadataRecord:
        return
    assert decode_record(encode_record(record)) == record
