"""A groups machine with its driver taken away: commands in, answers by ticket, time by hand."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, cast
from uuid import UUID

from riverlog.groups.commands import (
    GroupsCommand,
    Heartbeat,
    Join,
    JoinReply,
    MemberClient,
    Protocol,
    Sync,
    SyncReply,
    Woken,
)
from riverlog.groups.encoding import decode_record, encode_key, encode_value
from riverlog.groups.machine import GroupsMachine
from riverlog.groups.records import GroupFact, GroupRecord
from riverlog.groups.topics import NoTopics, Topics
from riverlog.model.errors import ErrorCode
from riverlog.model.machine import Instant, Moment, Ticket
from riverlog.model.settings import NodeSettings
from tests.support.replies import check_reply

EPOCH_MS = 1_700_000_000_000
CLIENT = MemberClient("app", "/127.0.0.1")


def settings_of(**values: object) -> NodeSettings:
    """Return a node's settings: the defaults but for some, by the names of their fields."""
    return replace(NodeSettings(), **cast(Any, values))


def subscription(*topics: str) -> bytes:
    """Write what a consumer says about itself: version 0, topics, no more."""
    data = bytearray(b"\x00\x00") + len(topics).to_bytes(4, "big")
    for topic in topics:
        data += len(topic).to_bytes(2, "big") + topic.encode()
    return bytes(data + b"\xff\xff\xff\xff")


class Coordinator:
    """Runs a machine as its driver would, on a log in memory and a clock that stands still unless moved."""

    def __init__(self, settings: NodeSettings | None = None, topics: Topics | None = None) -> None:
        self.settings = settings or settings_of(group_initial_rebalance_delay_ms=0)
        self.topics = topics or NoTopics()
        self.machine = GroupsMachine(self.settings, self.topics)
        self.seconds = 100.0
        self.log: list[GroupFact] = []
        self.commands: dict[Ticket, GroupsCommand] = {}
        self.answers: dict[Ticket, Any] = {}
        self.answered_at: dict[Ticket, int] = {}  # how long the log was when it was decided
        self.asked = 0
        self.ids = 0

    def submit(self, command: GroupsCommand) -> Ticket:
        """Decide, remember, and keep the answers: those of this command and of others."""
        self.asked += 1
        ticket = Ticket(self.asked)
        self.commands[ticket] = command
        moment = Moment(Instant(self.seconds), EPOCH_MS + round(self.seconds * 1000))
        decision = self.machine.decide(command, ticket, moment)
        log_length = len(self.log)
        for fact in decision.records:
            if isinstance(fact, GroupRecord):
                value = None if fact.value is None else encode_value(fact.value)
                assert decode_record(encode_key(fact.key), value, fact.producer_id, fact.producer_epoch) == fact
            self.log.append(fact)
            self.machine.apply(fact)
        for reply in decision.replies:
            assert reply.ticket not in self.answers, "a ticket is answered once"
            check_reply(self.commands[reply.ticket], reply.response)
            self.answers[reply.ticket] = reply.response
            self.answered_at[reply.ticket] = log_length
        return ticket

    def ask(self, command: GroupsCommand) -> Any:
        """Submit a command that is answered at once."""
        return self.answers[self.submit(command)]

    def waits(self, ticket: Ticket) -> bool:
        return ticket not in self.answers

    def pass_time(self, seconds: float) -> None:
        """Pass time, waking the machine whenever it wants to be."""
        until = self.seconds + seconds
        for _ in range(10_000):
            deadline = self.machine.next_deadline()
            if deadline is None or deadline > until:
                self.seconds = until
                return
            self.seconds = max(self.seconds, deadline)
            self.submit(Woken())
        raise AssertionError("the machine wants to be woken without end")

    def fail_over(self) -> None:
        """Lose the machine, and make another one of its log."""
        self.machine = self.replayed(self.log)

    def replayed(self, facts: Iterable[GroupFact]) -> GroupsMachine:
        """Make a machine of facts."""
        machine = GroupsMachine(self.settings, self.topics)
        for fact in facts:
            machine.apply(fact)
        return machine

    # ---- shorter words for what members do

    def join(self, group_id: str = "g", member_id: str = "", **more: Any) -> Ticket:
        self.ids += 1
        more.setdefault("protocol_type", "consumer")
        more.setdefault("protocols", (Protocol("range", subscription("t")),))
        return self.submit(Join(group_id, CLIENT, UUID(int=self.ids), member_id, **more))

    def enter(self, group_id: str = "g", **more: Any) -> tuple[str, Ticket]:
        """Join as a newcomer does: once for the id, once with it."""
        reply: JoinReply = self.answers[self.join(group_id, **more)]
        assert reply.code is ErrorCode.MEMBER_ID_REQUIRED
        return reply.member_id, self.join(group_id, reply.member_id, **more)

    def sync(self, joined: JoinReply, group_id: str = "g", **more: Any) -> Ticket:
        return self.submit(Sync(group_id, joined.member_id, joined.generation_id, **more))

    def stable(self, count: int = 1, group_id: str = "g", **more: Any) -> list[JoinReply]:
        """Make a stable group of so many members: the leader comes first, and each is assigned its own id."""
        ids = [self.answers[self.join(group_id, **more)].member_id for _ in range(count)]
        tickets = [self.join(group_id, member_id, **more) for member_id in ids]
        if count > 1:  # the first was a generation by itself
            tickets[0] = self.join(group_id, ids[0], **more)
        joined = [self.answers[ticket] for ticket in tickets]
        joined.sort(key=lambda each: not each.members)
        self.assign(joined, group_id)
        return joined

    def assign(self, joined: list[JoinReply], group_id: str = "g") -> list[SyncReply]:
        """Make everybody sync, the leader with an assignment last."""
        leader = next(each for each in joined if each.members)
        tickets = [self.sync(each, group_id) for each in joined if each is not leader]
        assignments = {each.member_id: each.member_id.encode() for each in leader.members}
        tickets.append(self.sync(leader, group_id, assignments=assignments))
        return [self.answers[ticket] for ticket in tickets]

    def beat(self, joined: JoinReply, group_id: str = "g", **more: Any) -> ErrorCode:
        code: ErrorCode = self.ask(Heartbeat(group_id, joined.member_id, joined.generation_id, **more))
        return code

    @property
    def phase(self) -> str:
        group = self.machine.soft.groups.get("g")
        return "-" if group is None else group.phase
