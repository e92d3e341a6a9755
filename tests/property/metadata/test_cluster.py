"""Random lives of a cluster: brokers come, go, stop, crash and lie, and no leader lacks what was committed."""

from dataclasses import dataclass, field, replace
from random import Random
from uuid import UUID

import pytest

from riverlog.metadata.broker_index import BrokerIndex
from riverlog.metadata.cluster_decisions import MetadataCommand
from riverlog.metadata.commands.brokers import RegisterBroker, UnregisterBroker
from riverlog.metadata.commands.configs import AlterConfigs, ConfigChange, ResourceChanges
from riverlog.metadata.commands.directories import AssignedReplica, AssignReplicas
from riverlog.metadata.commands.features import FeatureUpdate, UpdateFeatures
from riverlog.metadata.commands.in_sync import AlterPartitions, InSyncBroker, InSyncChange
from riverlog.metadata.commands.leaders import ElectLeaders
from riverlog.metadata.commands.liveness import (
    BecomeActive,
    BrokerHeartbeat,
    BrokerUnreachable,
    ExcuseSilence,
    HeartbeatReply,
    Woken,
)
from riverlog.metadata.commands.partitions import CreatePartitions, NewPartitions
from riverlog.metadata.commands.reassignments import AlterReassignments, Reassignment
from riverlog.metadata.commands.topics import CreateTopics, DeleteTopics, TopicCreation, TopicDefaults
from riverlog.metadata.delta import delta_of
from riverlog.metadata.draft import after
from riverlog.metadata.features import ELIGIBLE_LEADERS, FIRST_LEVELS, NODE_FEATURES
from riverlog.metadata.image import MetadataImage, PartitionImage, RegisteredEndpoint, TopicImage
from riverlog.metadata.leader_rules import TopicRules
from riverlog.metadata.machine import MetadataMachine
from riverlog.metadata.records import MetadataRecord
from riverlog.model.errors import Refusal
from riverlog.model.ids import NO_NODE, NodeId, TopicId
from riverlog.model.machine import Instant, Moment, Ticket
from riverlog.model.settings import SettingLayers
from riverlog.wire.messages.incremental_alter_configs import ConfigOperation

BROKERS = tuple(NodeId(each) for each in range(1, 6))
STEPS = 250
DEFAULTS = TopicDefaults(partitions=2, replication_factor=3)


@dataclass(slots=True)
class Complete:
    """Which replicas have all that was committed, by partition: brokers know that, and controllers must respect it."""

    replicas: dict[tuple[UUID, int], set[NodeId]] = field(default_factory=dict)
    losses: int = 0

    def follow(self, before: MetadataImage, after_: MetadataImage, restarted: NodeId | None) -> None:
        """Note what became of each partition: leaders commit what they can."""
        rules = TopicRules(after_, SettingLayers())
        for topic in after_.all_topics():
            was = before.topic_by_id(topic.id)
            for partition in topic.partitions:
                old = (
                    was.partition(partition.index)
                    if was is not None and partition.index < was.partition_count
                    else None
                )
                self._follow(topic, old, partition, restarted, rules.of(topic).min_in_sync)

    def _follow(
        self, topic: TopicImage, old: PartitionImage | None, now: PartitionImage, restarted: NodeId | None, least: int
    ) -> None:
        complete = self.replicas.setdefault((topic.id, now.index), set(now.replicas))
        if restarted is not None:
            complete.discard(restarted)
        recovers = bool(now.rare.leader_recovery_state)
        if old is not None and now.leader not in (old.leader, NO_NODE):
            if recovers and now.leader not in (*old.isr, *old.rare.eligible_leader_replicas):
                self.losses += 1
                complete.clear()
                complete.add(now.leader)
            assert now.leader in complete, f"{topic.name}-{now.index}: {now.leader} leads and lacks records: {complete}"
        if now.leader != NO_NODE:
            assert complete.issuperset(now.isr), f"{topic.name}-{now.index}: not all of {now.isr} are {complete}"
            if len(now.isr) >= min(least, len(now.replicas)):
                complete.intersection_update(now.isr)  # the others lack what is committed next


class Life:
    """A controller, its log, and brokers that do anything."""

    def __init__(self, seed: int, *, eligible: bool) -> None:
        self.random = Random(seed)
        self.machine = MetadataMachine(DEFAULTS)
        self.records: list[MetadataRecord] = []
        self.snapshot: tuple[list[MetadataRecord], int] = ([], 0)
        self.seconds = 0.0
        self.incarnations = 100
        self.clean: dict[NodeId, int] = {}
        self.complete = Complete()
        self.eligible = eligible
        self.fail_overs = 0
        self.do(BecomeActive({**FIRST_LEVELS, ELIGIBLE_LEADERS: int(eligible)}))

    def do(self, command: MetadataCommand, restarted: NodeId | None = None) -> object:
        """Return the reply to a command, if it is not refused."""
        before, decided = self.machine.image, Moment(Instant(self.seconds), 0)
        caught_up = command.changes[0] if isinstance(command, AlterPartitions) else None
        try:
            decision = self.machine.decide(command, Ticket(1), decided)
        except Refusal:
            return None
        assert self.machine.image is before, "deciding changes nothing"
        if decision.records and self.random.random() < 0.02:  # the log does not take it
            self.machine.withdraw(decision.records, decided)
            return None
        for record in decision.records:
            self.machine.apply(record)
        self.records += decision.records
        self.check(before, decision.records)
        if self.eligible:
            if caught_up is not None and decision.records:
                complete = self.complete.replicas[caught_up.topic_id, caught_up.partition]
                complete |= {each.node_id for each in caught_up.isr if self.knows(each)}
            self.complete.follow(before, self.machine.image, restarted)
        return decision.replies[0].response

    def knows(self, replica: InSyncBroker) -> bool:
        """Return whether a leader has heard of this process of a broker, and not of one before it."""
        return replica.epoch in (-1, self.machine.image.brokers[replica.node_id].epoch)

    def step(self) -> None:
        """Let anything happen."""
        happens = self.random.choice(
            (self.beat,) * 8
            + (self.beat_all, self.alter, self.alter, self.alter, self.wake, self.wake, self.create, self.register)
            + (self.rare,) * 4
        )
        happens()

    def register(self, node_id: NodeId | None = None) -> None:
        """Start a process anew, which may have lost what it had not flushed."""
        node_id = self.random.choice(BROKERS) if node_id is None else node_id
        known = self.machine.image.brokers.get(node_id)
        self.incarnations += 1
        previous = self.clean.get(node_id, -1)
        is_clean = known is not None and previous == known.epoch
        same = known is not None and self.random.random() < 0.2
        command = RegisterBroker(
            node_id,
            known.incarnation_id if known is not None and same else UUID(int=self.incarnations),
            (RegisteredEndpoint("PLAINTEXT", f"host-{node_id}", 9092),),
            {name: (levels.lowest, levels.highest) for name, levels in NODE_FEATURES.items()},
            self.random.choice((None, "a", "b")),
            (UUID(int=1000 + node_id), UUID(int=2000 + node_id)),
            next_offset=len(self.records),
            previous_epoch=previous,
        )
        self.do(command, None if same or is_clean else node_id)

    def beat(self) -> None:
        node_id = self.random.choice(BROKERS)
        broker = self.machine.image.brokers.get(node_id)
        if broker is None:
            self.register()
            return
        end = len(self.records)
        lost = self.random.random() < 0.03
        reply = self.do(
            BrokerHeartbeat(
                node_id,
                broker.epoch - (self.random.random() < 0.02),
                end - 1 - self.random.choice((0, 0, 0, 3, 40)),
                end,
                want_fence=self.random.random() < 0.05,
                want_shut_down=self.random.random() < 0.1,
                offline_log_dirs=broker.log_dirs[:1] if lost else (),
                cordoned_log_dirs=self.random.choice((None, None, (), broker.log_dirs[:1])),
                is_ours=self.random.random() < 0.5,
            )
        )
        if isinstance(reply, HeartbeatReply) and reply.should_shut_down:
            self.clean[node_id] = broker.epoch

    def beat_all(self) -> None:
        for _node_id, broker in sorted(self.machine.image.brokers.items()):
            end = len(self.records)
            self.do(BrokerHeartbeat(broker.id, broker.epoch, end - 1, end))

    def wake(self) -> None:
        self.seconds += self.random.choice((0.1, 0.5, 1, 2, 4))
        for _ in range(self.random.choice((1, 1, 50))):
            deadline = self.machine.next_deadline()
            if deadline is None or deadline > self.seconds:
                return
            self.do(Woken(partitions_max=self.random.choice((1, 2, 5, 2000))))

    def create(self) -> None:
        name = self.random.choice("abcd")
        new = TopicCreation(
            name,
            TopicId(UUID(int=self.random.getrandbits(127) + 1)),
            self.random.choice((-1, 1, 5)),
            self.random.choice((-1, 1, 2, 3)),
            configs=self.random.choice(({}, {"min.insync.replicas": "1"}, {"min.insync.replicas": "3"})),
        )
        self.do(CreateTopics((new,)))

    def alter(self) -> None:
        """Let a leader say who is in sync, mostly truly."""
        topic, partition = self.partition()
        if topic is None or partition is None or partition.leader == NO_NODE:
            return
        image = self.machine.image
        wanted = [each for each in partition.replicas if each == partition.leader or self.random.random() < 0.7]
        epochs = {each: image.brokers[each].epoch for each in wanted if each in image.brokers}
        change = InSyncChange(
            topic.id,
            partition.index,
            partition.leader_epoch + self.random.choice((0, 0, 0, 0, 0, 1, -1)),
            partition.partition_epoch + self.random.choice((0, 0, 0, 0, 0, 1, -1)),
            tuple(InSyncBroker(each, self.random.choice((-1, epochs.get(each, 7)))) for each in wanted),
            recovery=self.random.choice((0, 0, 0, 1)),
        )
        leader = image.brokers[partition.leader]
        if self.random.random() < 0.1:  # one of them crashes before the request arrives
            late = self.random.choice(wanted)
            change = replace(change, isr=tuple(InSyncBroker(each, epochs.get(each, 7)) for each in wanted))
            self.do(BrokerUnreachable(late, epochs.get(late, 7)))
            self.register(late)
            self.beat_all()
        self.do(AlterPartitions(leader.id, leader.epoch, (change,)))

    def rare(self) -> None:
        """Let something happen that seldom does."""
        topic, partition = self.partition()
        node_id, chance = self.random.choice(BROKERS), self.random.randrange(14)
        broker = self.machine.image.brokers.get(node_id)
        if chance == 0:
            self.fail_over()
        if chance == 1:
            self.do(ExcuseSilence(self.random.random()))
        if chance in (2, 3) and broker is not None:
            self.do(BrokerUnreachable(node_id, broker.epoch))
        if chance == 4 and broker is not None:
            self.do(UnregisterBroker(node_id), node_id)
        if chance == 5:
            self.do(ElectLeaders(unclean=False))
        if chance == 6:
            level, kind = self.random.choice(((0, 2), (1, 1)))
            self.do(UpdateFeatures((FeatureUpdate("group.version", level, kind),)))
        if topic is None or partition is None:
            return
        if chance == 7:
            self.do(DeleteTopics((topic.id,)))
        if chance == 8:
            self.do(CreatePartitions((NewPartitions(topic.name, topic.partition_count + 1),)))
        if chance in (9, 10, 11):
            count = self.random.randrange(1, 4)
            replicas = tuple(self.random.sample(BROKERS, count)) if self.random.random() < 0.8 else None
            self.do(AlterReassignments((Reassignment(topic.name, partition.index, replicas),)))
        if chance == 12 and broker is not None:
            directory = self.random.choice((*broker.log_dirs, UUID(int=7777)))
            self.do(AssignReplicas(node_id, broker.epoch, (AssignedReplica(directory, topic.id, partition.index),)))
        if chance == 13:
            value = self.random.choice(("1", "2", "3"))
            resource = self.random.choice(((2, topic.name), (4, "")))
            change = ConfigChange("min.insync.replicas", ConfigOperation.SET, value)
            self.do(AlterConfigs((ResourceChanges(*resource, (change,)),)))

    def fail_over(self) -> None:
        """Let another controller go on, from a snapshot and the records behind it."""
        kept, end = self.snapshot
        machine = MetadataMachine(DEFAULTS)
        for record in (*kept, *self.records[end:]):
            machine.apply(record)
        assert machine.image == self.machine.image
        self.machine = machine
        self.snapshot = (list(machine.snapshot()), len(self.records))
        self.fail_overs += 1
        self.do(BecomeActive())

    def partition(self) -> tuple[TopicImage | None, PartitionImage | None]:
        topics = list(self.machine.image.all_topics())
        if not topics:
            return None, None
        topic = self.random.choice(topics)
        return topic, topic.partition(self.random.randrange(topic.partition_count))

    def check(self, before: MetadataImage, records: tuple[MetadataRecord, ...]) -> None:
        """Assert what always holds."""
        image = self.machine.image
        assert self.machine.index == BrokerIndex.of(image)
        delta_of(before, image, records)
        for topic in image.all_topics():
            was = before.topic_by_id(topic.id)
            for partition in topic.partitions:
                check_partition(image, partition)
                if was is not None and partition.index < was.partition_count:
                    check_epochs(was.partition(partition.index), partition)
        for node_id, broker in image.brokers.items():
            known = before.brokers.get(node_id)
            assert known is None or known.epoch <= broker.epoch


def check_partition(image: MetadataImage, partition: PartitionImage) -> None:
    replicas, isr, eligible = set(partition.replicas), set(partition.isr), set(partition.rare.eligible_leader_replicas)
    assert len(replicas) == len(partition.replicas) == len(partition.directories) > 0
    assert len(isr) == len(partition.isr)
    assert isr <= replicas
    assert eligible <= replicas
    assert not isr & eligible
    assert set(partition.rare.adding_replicas) <= replicas
    assert set(partition.rare.removing_replicas) <= replicas
    if partition.leader == NO_NODE:
        return
    assert partition.leader in isr
    assert not image.brokers[partition.leader].fenced
    assert not partition.rare.last_known_elr
    for node_id in isr:
        broker = image.brokers.get(node_id)
        assert broker is not None
        assert not broker.fenced, "who is fenced is in sync nowhere where somebody leads"


def check_epochs(before: PartitionImage, now: PartitionImage) -> None:
    assert now.partition_epoch >= before.partition_epoch
    assert now.leader_epoch >= before.leader_epoch
    if now != before:
        assert now.partition_epoch > before.partition_epoch
    if now.leader != before.leader:
        assert now.leader_epoch > before.leader_epoch


@pytest.mark.parametrize("eligible", [True, False], ids=["eligible", "plain"])
@pytest.mark.parametrize("seed", range(30))
def test_no_leader_lacks_what_was_committed(seed: int, eligible: bool) -> None:
    life = Life(seed, eligible=eligible)
    for node_id in BROKERS:
        life.register(node_id)
    life.beat_all()
    for _ in range(STEPS):
        life.step()
    life.fail_over()
    image = life.machine.image
    assert after(MetadataImage(), life.records) == image
    assert after(MetadataImage(), life.machine.snapshot()) == image
