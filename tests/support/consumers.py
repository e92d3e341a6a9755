"""Members of consumer groups as clients see themselves: what they believe to have, and what they say."""

from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from riverlog.groups.classic.consumer_metadata import (
    by_id,
    read_assignment,
    write_assignment,
)
from riverlog.groups.commands import (
    ConsumerHeartbeat,
    ConsumerHeartbeatReply,
    Heartbeat,
    JoinReply,
    Protocol,
    SyncReply,
    TopicsChanged,
)
from riverlog.groups.consumer.assignors.subscriber import Partitions
from riverlog.groups.consumer.group import ConsumerGroup
from riverlog.model.errors import ErrorCode
from riverlog.model.machine import Ticket
from riverlog.model.settings import NodeSettings
from riverlog.wire.codec import encode_parts, joined
from riverlog.wire.consumer_protocol import Subscription, TopicShare
from tests.support.groups import CLIENT, Coordinator, settings_of
from tests.support.shapes import Shapes, topic_id

MUST_REJOIN = {ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID}


def named(partitions: Partitions | None) -> dict[str, list[int]] | None:
    """Return partitions by the names of their topics, for reading."""
    if partitions is None:
        return None
    return {topic.bytes.rstrip(b"\0").decode(): sorted(partitions[topic]) for topic in sorted(partitions)}


def at_once(**values: object) -> NodeSettings:
    """Return settings with which no assignment waits, and others by the names of their fields."""
    return settings_of(**{"group_consumer_assignment_interval_ms": 0, "group_initial_rebalance_delay_ms": 0, **values})


class ConsumerCoordinator(Coordinator):
    """A coordinator that knows topics, and assigns at once unless told otherwise."""

    def __init__(self, settings: NodeSettings | None = None, **counts: int) -> None:
        super().__init__(settings or at_once(), Shapes.of(**(counts or {"orders": 4, "payments": 2})))

    def change_topics(self, **counts: int) -> None:
        """Set how many partitions topics have now; 0 deletes one."""
        assert isinstance(self.topics, Shapes)
        now = {name: shape.partition_count for name, shape in self.topics.by_name.items()} | counts
        self.topics = Shapes.of(**{name: count for name, count in now.items() if count})
        self.ask(TopicsChanged(self.topics, frozenset(counts)))

    def configure(self, **values: int) -> None:
        """Set for the group what these names, with dots for their underscores, say."""
        assert isinstance(self.topics, Shapes)
        self.topics.settings_by_group["g"] = {name.replace("_", "."): str(value) for name, value in values.items()}

    def consumer(self, member_id: str, *topics: str, **more: Any) -> "FakeConsumer":
        return FakeConsumer(self, member_id, topics or ("orders",), **more)

    def settle(self, *members: "FakeConsumer", rounds: int = 20) -> None:
        """Make everybody send heartbeats until nobody has anything to do."""
        for _ in range(rounds):
            self.pass_time(0.5)
            for member in members:
                member.beat()
            if self.group.phase == "Stable" and all(member.epoch == self.group.epoch for member in members):
                return
        raise AssertionError(f"{self.group} does not settle")

    @property
    def group(self) -> ConsumerGroup:
        return self.machine.state.consumers["g"]


@dataclass
class FakeConsumer:
    """A client: it gives up what it is asked to at once, and says so in its next heartbeat."""

    coordinator: ConsumerCoordinator
    id: str
    topics: tuple[str, ...] | None
    instance_id: str | None = None
    regex: str | None = None
    assignor: str | None = None
    epoch: int = 0
    has: dict[UUID, frozenset[int]] = field(default_factory=dict)
    interval_ms: int = 0
    rebalance_timeout_ms: int = 600_000
    is_terse: bool = False
    """It says things once, and does not say them again when it gets no answer; clients exist that do so."""
    said: dict[str, Any] = field(default_factory=dict)

    def command(self, **more: Any) -> ConsumerHeartbeat:
        """Write a heartbeat: a full one, or a terse one with what is new."""
        full = replace(
            ConsumerHeartbeat(
                "g",
                CLIENT,
                UUID(int=7),
                self.id,
                self.epoch,
                self.instance_id,
                rebalance_timeout_ms=self.rebalance_timeout_ms,
                subscribed_topic_names=self.topics,
                subscribed_topic_regex=self.regex,
                server_assignor=self.assignor,
                topic_partitions=dict(self.has),
            ),
            **more,
        )
        return self._without_what_was_said(full) if self.is_terse and self.epoch > 0 else full

    def _without_what_was_said(self, full: ConsumerHeartbeat) -> ConsumerHeartbeat:
        fields = ("subscribed_topic_names", "subscribed_topic_regex", "topic_partitions")
        saying = {name: value for name in fields if (value := getattr(full, name)) != self.said.get(name)}
        self.said |= saying
        return replace(full, rebalance_timeout_ms=-1, **(dict.fromkeys(fields) | saying))

    def beat(self, *, answer_is_lost: bool = False, **more: Any) -> ConsumerHeartbeatReply:
        """Send a heartbeat, and do what the answer says if it arrives."""
        reply: ConsumerHeartbeatReply = self.coordinator.ask(self.command(**more))
        if answer_is_lost:
            return reply
        if reply.code in MUST_REJOIN:
            self.epoch, self.has, self.said = 0, {}, {}
        elif reply.code is ErrorCode.NONE:
            self.epoch, self.interval_ms = reply.member_epoch, reply.heartbeat_interval_ms
            if reply.assignment is not None:
                self.has = dict(reply.assignment)
        return reply

    def leave(self, epoch: int = -1) -> ConsumerHeartbeatReply:
        reply = self.beat(member_epoch=epoch)
        self.epoch, self.has = 0, {}
        return reply

    @property
    def reads(self) -> dict[str, list[int]]:
        return named(self.has) or {}

    def __contains__(self, partition: tuple[str, int]) -> bool:
        topic, index = partition
        return index in self.has.get(topic_id(topic), ())


@dataclass
class FakeClassicConsumer:
    """A client that speaks the classic protocol: eager, it gives everything up before it joins; cooperative, it does
    not."""

    coordinator: ConsumerCoordinator
    id: str = ""
    topics: tuple[str, ...] = ("orders",)
    is_cooperative: bool = True
    instance_id: str | None = None
    generation: int = -1
    has: dict[UUID, frozenset[int]] = field(default_factory=dict)
    protocol: str = "range"

    def subscription(self) -> bytes:
        if not self.is_cooperative:
            self.has = {}
        assert isinstance(self.coordinator.topics, Shapes)
        owned = tuple(
            TopicShare(self.coordinator.topics.by_id[topic].name, tuple(sorted(indexes)))
            for topic, indexes in self.has.items()
            if topic in self.coordinator.topics.by_id
        )
        written = Subscription(self.topics, None, owned, self.generation, None)
        return joined(encode_parts(written, 3, bytearray(b"\x00\x03")))

    def join(self, **more: Any) -> Ticket:
        """Send a Join; a newcomer is given an id first."""
        more.setdefault("protocols", (Protocol(self.protocol, self.subscription()),))
        more.setdefault("group_instance_id", self.instance_id)
        ticket = self.coordinator.join("g", self.id, **more)
        reply = self.coordinator.answers.get(ticket)
        if reply is not None and reply.code is ErrorCode.MEMBER_ID_REQUIRED:
            self.id = reply.member_id
            return self.join(**more)
        return ticket

    def joined(self, reply: JoinReply) -> ErrorCode:
        """Take a Join's answer, and sync; a leader of a classic group leaves everything with those who have it."""
        if reply.code is not ErrorCode.NONE:
            return reply.code
        self.id, self.generation = reply.member_id, reply.generation_id
        synced = self.coordinator.sync(reply, assignments=self._assignments(reply))
        return self.synced(self.coordinator.answers[synced])

    def synced(self, reply: SyncReply) -> ErrorCode:
        if reply.code is ErrorCode.NONE:
            assigned = read_assignment(reply.assignment)
            assert assigned is not None
            self.has = dict(by_id(assigned.assigned_partitions, self.coordinator.topics))
        return reply.code

    def rejoin(self, **more: Any) -> ErrorCode:
        """Join and sync, where both are answered at once."""
        return self.joined(self.coordinator.answers[self.join(**more)])

    def beat(self) -> ErrorCode:
        """Send a heartbeat, and do as told."""
        code: ErrorCode = self.coordinator.ask(Heartbeat("g", self.id, self.generation, self.instance_id))
        if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            self.id, self.has = "", {}
        if code is ErrorCode.ILLEGAL_GENERATION:
            self.has = {}
        return code if code is ErrorCode.NONE else self.rejoin()

    @property
    def epoch(self) -> int:
        return self.generation

    @property
    def reads(self) -> dict[str, list[int]]:
        return named(self.has) or {}

    def _assignments(self, reply: JoinReply) -> dict[str, bytes]:
        """Assign each partition to one of those who joined, in turn."""
        shares: dict[str, dict[UUID, frozenset[int]]] = {each.member_id: {} for each in reply.members}
        for place, each in enumerate(reply.members):
            shape = self.coordinator.topics.topic("orders")
            assert shape is not None
            share = frozenset(range(place, shape.partition_count, len(reply.members)))
            shares[each.member_id] = {shape.id: share} if share else {}
        return {
            member_id: write_assignment(share, self.coordinator.topics, b"\x00\x01")
            for member_id, share in shares.items()
        }
