"""Play the metadata machine's scenarios."""

import shlex
from dataclasses import fields
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from riverlog.metadata.commands.brokers import RegisterBroker
from riverlog.metadata.commands.configs import AlterConfigs, ConfigChange, ResourceChanges
from riverlog.metadata.commands.outcome import Outcome
from riverlog.metadata.commands.partitions import CreatePartitions, NewPartitions
from riverlog.metadata.commands.producer_ids import AllocateProducerIds
from riverlog.metadata.commands.topics import (
    CreateTopics,
    DeleteTopics,
    TopicCreation,
    TopicCreationReplies,
    TopicDefaults,
)
from riverlog.metadata.encoding import decode_record, encode_record
from riverlog.metadata.machine import MetadataCommand, MetadataMachine
from riverlog.metadata.records import MetadataRecord
from riverlog.model.endpoints import Endpoint
from riverlog.model.errors import ErrorCode
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

    def play(self, line: str) -> list[str]:
        word, *rest = shlex.split(line)
        named = dict(each.split("=", 1) for each in rest if "=" in each)
        plain = [each for each in rest if "=" not in each]
        if word == "topics":
            return [line for topic in self.machine.image.all_topics() for line in _described(topic)]
        if word == "snapshot":
            return self._snapshot()
        return self._do(getattr(self, f"_{word}")(plain, named))

    def _do(self, command: MetadataCommand) -> list[str]:
        decision = self.machine.decide(command, Ticket(1), Moment(Instant(0.0), 0))
        for record in decision.records:
            assert decode_record(encode_record(record)) == record
            self.machine.apply(record)
        said = [line for reply in decision.replies for line in _said(reply.response)]
        return said + [f"+ {_written(record)}" for record in decision.records]

    def _snapshot(self) -> list[str]:
        records = list(self.machine.snapshot())
        copy = MetadataMachine(TopicDefaults(partitions=1, replication_factor=3))
        for record in records:
            copy.apply(record)
        assert copy.image == self.machine.image
        return [f"+ {_written(record)}" for record in records]

    def _register(self, plain: list[str], named: dict[str, str]) -> MetadataCommand:
        number = int(plain[0])
        return RegisterBroker(
            node_id=NodeId(number),
            incarnation_id=UUID(int=number),
            endpoints=(Endpoint("PLAINTEXT", f"host-{number}", 9092),),
            rack=named.get("rack"),
            log_dirs=(UUID(int=1000 + number),),
            clean="crashed" not in plain,
        )

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


def _ids(text: str) -> tuple[NodeId, ...]:
    return tuple(NodeId(int(each)) for each in text.split(","))


def _said(response: Any) -> list[str]:
    if isinstance(response, TopicCreationReplies):
        return [f"{each.name}: {_outcome(each.outcome)}" for each in response.topics]
    if hasattr(response, "outcomes"):
        return [_outcome(each) for each in response.outcomes]
    return [
        f"{type(response).__name__}: "
        + " ".join(f"{each.name}={getattr(response, each.name)}" for each in fields(response))
    ]


def _outcome(outcome: Outcome) -> str:
    return "done" if outcome.code is ErrorCode.NONE else f"{outcome.code.name}: {outcome.message}"


def _described(topic: Any) -> list[str]:
    return [f"{topic.name}: {topic.partition_count} partitions"] + [
        f"  {each.index}: leader {each.leader} epoch {each.leader_epoch} "
        f"replicas {list(each.replicas)} isr {list(each.isr)}"
        for each in topic.partitions
    ]


def _written(record: MetadataRecord) -> str:
    values = {each.name: (getattr(record, each.name), each.default) for each in fields(record)}
    shown = {name: _short(value) for name, (value, default) in values.items() if value not in (default, ())}
    return " ".join(
        [type(record).__name__.removesuffix("Record"), *(f"{name}={value}" for name, value in shown.items())]
    )


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
