"""Play the metadata machine's scenarios."""

import shlex
from collections.abc import Iterable
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from riverlog.metadata.broker_index import BrokerIndex
from riverlog.metadata.cluster_decisions import MetadataCommand
from riverlog.metadata.commands.brokers import RegisterBroker, UnregisterBroker
from riverlog.metadata.commands.configs import AlterConfigs, ConfigChange, ResourceChanges
from riverlog.metadata.commands.controllers import RegisterController
from riverlog.metadata.commands.directories import AssignedReplica, AssignReplicas, ReplicasAssigned
from riverlog.metadata.commands.features import FeatureUpdate, UpdateFeatures
from riverlog.metadata.commands.in_sync import (
    AlteredPartition,
    AlterPartitions,
    InSyncBroker,
    InSyncChange,
    PartitionsAltered,
)
from riverlog.metadata.commands.leaders import ElectLeaders, LeadersElected
from riverlog.metadata.commands.liveness import BecomeActive, BrokerHeartbeat, BrokerUnreachable, ExcuseSilence, Woken
from riverlog.metadata.commands.only_broker import RegisterOnlyBroker
from riverlog.metadata.commands.outcome import Outcome
from riverlog.metadata.commands.partitions import CreatePartitions, NewPartitions
from riverlog.metadata.commands.producer_ids import AllocateProducerIds
from riverlog.metadata.commands.reassignments import AlterReassignments, Reassignment, reassignments
from riverlog.metadata.commands.topics import (
    CreateTopics,
    DeleteTopics,
    TopicCreation,
    TopicCreationReplies,
    TopicDefaults,
)
from riverlog.metadata.encoding import decode_record, encode_record
from riverlog.metadata.features import FIRST_LEVELS, NODE_FEATURES
from riverlog.metadata.image import NOTHING_RARE, BrokerImage, PartitionImage, RegisteredEndpoint, TopicImage
from riverlog.metadata.machine import MetadataMachine
from riverlog.metadata.records import ConfigRecord, FeatureLevelRecord, MetadataRecord
from riverlog.model.endpoints import Endpoint
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import NodeId, TopicId
from riverlog.model.machine import Instant, Moment, Ticket
from riverlog.wire.messages.incremental_alter_configs import ConfigOperation
from tests.support.scenarios import check

SCENARIOS = sorted(Path(__file__).parent.glob("*.txt"))
TYPES = {"topic": 2, "broker": 4, "group": 32}


class Stage:
    """A machine and the few words with which scenarios speak to it."""

    def __init__(self) -> None:
        self.machine = MetadataMachine(TopicDefaults(partitions=1, replication_factor=3))
        self.topic_ids = 0
        self.offset = 0
        self.seconds = 100.0

    def play(self, line: str) -> list[str]:
        word, *rest = shlex.split(line)
        named = dict(each.split("=", 1) for each in rest if "=" in each)
        plain = [each for each in rest if "=" not in each]
        if word == "topics":
            return [line for topic in self.machine.image.all_topics() for line in _described(topic)]
        if word == "brokers":
            return [_broker(each) for _id, each in sorted(self.machine.image.brokers.items())]
        if word == "moves":
            return self._moves()
        if word == "snapshot":
            return self._snapshot()
        if word == "wait":
            return self._wait(float(plain[0]))
        if word == "fact":
            return self._apply([_fact(plain)])
        return self._do(getattr(self, f"_{word}")(plain, named))

    def _do(self, command: MetadataCommand) -> list[str]:
        try:
            decision = self.machine.decide(command, Ticket(1), Moment(Instant(self.seconds), 0))
        except Refusal as refusal:
            return [f"{refusal.code.name}: {refusal.message}"]
        self._apply(decision.records)
        said = [line for reply in decision.replies for line in _said(reply.response)]
        return said + [f"+ {_written(record)}" for record in decision.records]

    def _apply(self, records: Iterable[MetadataRecord]) -> list[str]:
        for record in records:
            assert decode_record(encode_record(record)) == record
            self.machine.apply(record)
            self.offset += 1
        assert self.machine.index == BrokerIndex.of(self.machine.image)
        return []

    def _wait(self, seconds: float) -> list[str]:
        """Let time pass, and wake the machine whenever it wants to be."""
        said, until = list[str](), self.seconds + seconds
        while (deadline := self.machine.next_deadline()) is not None and deadline <= until:
            self.seconds = max(self.seconds, deadline)
            said += [f"{self.seconds - 100:g} s: {line}" for line in self._do(Woken()) if line != "None"]
        self.seconds = until
        return said

    def _snapshot(self) -> list[str]:
        records = list(self.machine.snapshot())
        copy = MetadataMachine(TopicDefaults(partitions=1, replication_factor=3))
        for record in records:
            copy.apply(record)
        assert copy.image == self.machine.image
        return [f"+ {_written(record)}" for record in records]

    def _register(self, plain: list[str], named: dict[str, str]) -> MetadataCommand:
        number = int(plain[0])
        return RegisterOnlyBroker(
            node_id=NodeId(number),
            incarnation_id=UUID(int=number),
            endpoints=(Endpoint("PLAINTEXT", f"host-{number}", 9092),),
            rack=named.get("rack"),
            log_dirs=(UUID(int=1000 + number),),
            clean="crashed" not in plain,
        )

    def _join(self, plain: list[str], named: dict[str, str]) -> MetadataCommand:
        number = int(plain[0])
        features = _features(named)
        dirs = named.get("dirs", str(1000 + number))
        return RegisterBroker(
            node_id=NodeId(number),
            incarnation_id=UUID(int=int(named.get("incarnation", number))),
            endpoints=(RegisteredEndpoint("PLAINTEXT", f"host-{number}", 9092),),
            features=features,
            rack=named.get("rack"),
            log_dirs=tuple(UUID(int=int(each)) for each in dirs.split(",") if each),
            next_offset=self.offset,
            previous_epoch=int(named.get("previous", -1)),
        )

    def _beat(self, plain: list[str], named: dict[str, str]) -> MetadataCommand:
        return BrokerHeartbeat(
            node_id=NodeId(int(plain[0])),
            epoch=int(named.get("epoch", self._epoch(plain[0]))),
            current_metadata_offset=int(named.get("at", self.offset - 1)),
            next_offset=self.offset,
            want_fence="fence" in plain,
            want_shut_down="stop" in plain,
            offline_log_dirs=tuple(UUID(int=int(each)) for each in named.get("offline", "").split(",") if each),
            cordoned_log_dirs=(UUID(int=int(named["cordoned"])),) if "cordoned" in named else None,
            is_ours="ours" in plain,
        )

    def _epoch(self, node_id: str) -> int:
        broker = self.machine.image.brokers.get(NodeId(int(node_id)))
        return -1 if broker is None else broker.epoch

    def _active(self, plain: list[str], named: dict[str, str]) -> MetadataCommand:
        return BecomeActive({**FIRST_LEVELS, **{name: int(level) for name, level in named.items()}})

    def _gone(self, plain: list[str], named: dict[str, str]) -> MetadataCommand:
        return BrokerUnreachable(NodeId(int(plain[0])), int(named.get("epoch", self._epoch(plain[0]))))

    def _excuse(self, plain: list[str], named: dict[str, str]) -> MetadataCommand:
        return ExcuseSilence(float(plain[0]))

    def _unregister(self, plain: list[str], named: dict[str, str]) -> MetadataCommand:
        return UnregisterBroker(NodeId(int(plain[0])))

    def _controller(self, plain: list[str], named: dict[str, str]) -> MetadataCommand:
        endpoint = RegisteredEndpoint("CONTROLLER", f"host-{plain[0]}", 9093)
        return RegisterController(NodeId(int(plain[0])), UUID(int=7), (endpoint,), _features(named))

    def _isr(self, plain: list[str], named: dict[str, str]) -> MetadataCommand:
        """isr TOPIC PARTITION REPLICAS, by its leader if nobody else is named; an epoch behind a replica."""
        topic = self.machine.image.topic(plain[0])
        index = int(plain[1])
        known = topic.partition(index) if topic is not None and index < topic.partition_count else None
        by = NodeId(int(named.get("by", -1 if known is None else known.leader)))
        wanted = [each.partition(":") for each in plain[2].split(",")]
        change = InSyncChange(
            topic_id=UUID(int=999) if topic is None else topic.id,
            partition=index,
            leader_epoch=int(named.get("leader_epoch", 0 if known is None else known.leader_epoch)),
            partition_epoch=int(named.get("partition_epoch", 0 if known is None else known.partition_epoch)),
            isr=tuple(InSyncBroker(NodeId(int(id_)), int(epoch or -1)) for id_, _, epoch in wanted),
            recovery=int("recovering" in plain),
        )
        times = 2 if "twice" in plain else 1
        return AlterPartitions(by, int(named.get("epoch", self._epoch(str(by)))), (change,) * times)

    def _elect(self, plain: list[str], named: dict[str, str]) -> MetadataCommand:
        rest = [each for each in plain if each != "unclean"]
        partitions = ((rest[0], int(rest[1])),) if rest else None
        return ElectLeaders("unclean" in plain, partitions)

    def _move(self, plain: list[str], named: dict[str, str]) -> MetadataCommand:
        replicas = None if plain[2] == "back" else _ids(plain[2])
        change = Reassignment(plain[0], int(plain[1]), replicas)
        return AlterReassignments((change,), allow_replication_factor_change="same" not in plain)

    def _moves(self) -> list[str]:
        machine = self.machine
        return [
            f"{topic}-{each.index}: {list(each.replicas)}{_rare(each)}"
            for topic, each in reassignments(machine.image, machine.index, None)
        ]

    def _lies(self, plain: list[str], named: dict[str, str]) -> MetadataCommand:
        """lies BROKER TOPIC PARTITION DIRECTORY."""
        topic = self.machine.image.topic(plain[1])
        replica = AssignedReplica(UUID(int=int(plain[3])), UUID(int=999) if topic is None else topic.id, int(plain[2]))
        return AssignReplicas(NodeId(int(plain[0])), int(named.get("epoch", self._epoch(plain[0]))), (replica,))

    def _upgrade(self, plain: list[str], named: dict[str, str]) -> MetadataCommand:
        type_ = 2 if "downgrade" in plain else int(named.get("type", 1))
        controllers = tuple(NodeId(int(each)) for each in named.get("controllers", "").split(",") if each)
        update = FeatureUpdate(plain[0], int(plain[1]), type_)
        return UpdateFeatures((update,), controllers, validate_only="--validate" in plain)

    def _create(self, plain: list[str], named: dict[str, str]) -> MetadataCommand:
        partitions = int(named.pop("partitions", -1))
        replicas = int(named.pop("replicas", -1))
        assigned = tuple(_ids(each) for each in named.pop("assigned", "").split("/") if each)
        names = [name for name in plain if name != "--validate"]
        topics = []
        for name in names:
            self.topic_ids += 1
            topic_id = TopicId(UUID(int=self.topic_ids))
            topics.append(TopicCreation(name, topic_id, partitions, replicas, assigned, dict(named)))
        return CreateTopics(tuple(topics), validate_only="--validate" in plain)

    def _delete(self, plain: list[str], named: dict[str, str]) -> MetadataCommand:
        found = [self.machine.image.topic(name) for name in plain]
        return DeleteTopics(tuple(TopicId(UUID(int=999)) if topic is None else topic.id for topic in found))

    def _grow(self, plain: list[str], named: dict[str, str]) -> MetadataCommand:
        assigned = tuple(_ids(each) for each in named["assigned"].split("/")) if "assigned" in named else None
        return CreatePartitions((NewPartitions(plain[0], int(plain[1]), assigned),), "--validate" in plain)

    def _alter(self, plain: list[str], named: dict[str, str]) -> MetadataCommand:
        kind, name, word, *deleted = plain
        operation = {each.name.lower(): each for each in ConfigOperation}.get(word, ConfigOperation.SET)
        changes = [ConfigChange(setting, operation, value) for setting, value in named.items()]
        changes += [ConfigChange(setting, ConfigOperation.DELETE) for setting in deleted]
        target = "" if name == "all" else name
        return AlterConfigs((ResourceChanges(TYPES[kind], target, tuple(changes)),), replace=word == "replace")

    def _ids(self, plain: list[str], named: dict[str, str]) -> MetadataCommand:
        return AllocateProducerIds(NodeId(int(plain[0])), int(plain[1]))


def _features(named: dict[str, str]) -> dict[str, tuple[int, int]]:
    """Return what a node of this version says of itself, but for what is named."""
    features = {name: (levels.lowest, levels.highest) for name, levels in NODE_FEATURES.items()}
    for each in filter(None, named.get("features", "").split(",")):
        name, lowest, highest = each.split(":")
        features[name] = int(lowest), int(highest)
    for name in filter(None, named.get("without", "").split(",")):
        del features[name]
    return features


def _ids(text: str) -> tuple[NodeId, ...]:
    return tuple(NodeId(int(each)) for each in text.split(","))


def _said(response: Any) -> list[str]:
    if response is None:
        return []
    if isinstance(response, TopicCreationReplies):
        return [f"{each.name}: {_outcome(each.outcome)}" for each in response.topics]
    if isinstance(response, PartitionsAltered):
        return [_altered(each) for each in response.results]
    if isinstance(response, LeadersElected):
        return [f"{each.topic}-{each.partition}: {_outcome(each.outcome)}" for each in response.results]
    if isinstance(response, ReplicasAssigned):
        return [code.name for code in response.codes]
    if hasattr(response, "outcomes"):
        return [_outcome(each) for each in response.outcomes]
    return [
        f"{type(response).__name__}: "
        + " ".join(f"{each.name}={getattr(response, each.name)}" for each in fields(response))
    ]


def _altered(altered: AlteredPartition) -> str:
    known = altered.partition
    if known is None:
        return altered.code.name
    recovering = " recovering" if known.rare.leader_recovery_state else ""
    return (
        f"{altered.code.name}: leader {known.leader} epoch {known.leader_epoch} isr {list(known.isr)} "
        f"partition epoch {known.partition_epoch}{recovering}"
    )


def _outcome(outcome: Outcome) -> str:
    return "done" if outcome.code is ErrorCode.NONE else f"{outcome.code.name}: {outcome.message}"


def _fact(plain: list[str]) -> MetadataRecord:
    """Return a record that another controller has written."""
    match plain:
        case ["feature", name, level]:
            return FeatureLevelRecord(name=name, feature_level=int(level))
        case ["setting", topic, name, value]:
            return ConfigRecord(resource_type=2, resource_name=topic, name=name, value=value)
    raise AssertionError(f"no such fact: {plain}")


def _broker(broker: BrokerImage) -> str:
    standing = "fenced" if broker.fenced else "stops" if broker.in_controlled_shutdown else "active"
    dirs = ",".join(str(each.int) for each in broker.log_dirs)
    return f"{broker.id}: epoch {broker.epoch} {standing} directories {dirs}"


def _described(topic: TopicImage) -> list[str]:
    return [f"{topic.name}: {topic.partition_count} partitions"] + [
        f"  {each.index}: leader {each.leader} epoch {each.leader_epoch} "
        f"replicas {list(each.replicas)} isr {list(each.isr)}{_rare(each)}"
        for each in topic.partitions
    ]


def _rare(partition: PartitionImage) -> str:
    rare = partition.rare
    shown = {
        "adding": list(rare.adding_replicas),
        "removing": list(rare.removing_replicas),
        "eligible": list(rare.eligible_leader_replicas),
        "last known": list(rare.last_known_elr),
        "recovering": "yes" if rare.leader_recovery_state else "",
    }
    return "" if rare == NOTHING_RARE else "".join(f" {name} {value}" for name, value in shown.items() if value)


def _written(record: MetadataRecord) -> str:
    values = {each.name: (getattr(record, each.name), _default(each)) for each in fields(record)}
    shown = {name: _short(value) for name, (value, default) in values.items() if value != default}
    return " ".join(
        [type(record).__name__.removesuffix("Record"), *(f"{name}={value}" for name, value in shown.items())]
    )


def _default(field: Field[Any]) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()


def _short(value: object) -> object:
    if isinstance(value, UUID):
        return f"#{value.int}"
    if isinstance(value, tuple):
        return "[" + ",".join(str(_short(each)) for each in value) + "]"
    if hasattr(value, "host"):
        return f"{value.name}://{value.host}:{value.port}"
    if hasattr(value, "min_supported_version"):
        return f"{value.name}:{value.min_supported_version}-{value.max_supported_version}"
    return value


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_the_machine_says_what_the_scenario_says(path: Path, rewrite: bool):
    check(path, Stage().play, rewrite=rewrite)
