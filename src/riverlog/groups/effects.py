"""What one command to the machine leads to: facts, answers, and deadlines that are set or moved."""

from dataclasses import dataclass, field
from typing import Never

from riverlog.groups.consumer.draft import Draft
from riverlog.groups.records import GroupFact, GroupRecord, Key, Value
from riverlog.model.machine import Decision, Instant, Moment, Reply, Ticket
from riverlog.model.timers import Timers


@dataclass(frozen=True, slots=True)
class SessionEnds:
    """A member of a classic group must send something by then, and one that was only given an id must join."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class JoinEnds:
    """Members that have not joined by then are left behind."""

    group_id: str


@dataclass(frozen=True, slots=True)
class SyncEnds:
    """Members that have not asked for their assignment by then are removed."""

    group_id: str


@dataclass(frozen=True, slots=True)
class SilenceNoticed:
    """A member of a consumer group should have sent a heartbeat by then; its session goes on a little longer."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class ConsumerSessionEnds:
    """A member of a consumer group must send a heartbeat by then."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class RevocationEnds:
    """A member must have given up by then what it was asked to give up."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class AssignmentDue:
    """The interval between two assignments of a group is over."""

    group_id: str


@dataclass(frozen=True, slots=True)
class ClassicMemberEnds:
    """A member that speaks the classic protocol, and was called to join or has joined, must have synced by then."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class OffsetsExpire:
    """It is time to look for offsets that nobody needs any more."""


@dataclass(frozen=True, slots=True)
class GoneForgotten:
    """There are more offsets to forget of topics that are gone."""


ClassicDeadline = SessionEnds | JoinEnds | SyncEnds
ConsumerDeadline = SilenceNoticed | ConsumerSessionEnds | RevocationEnds | AssignmentDue | ClassicMemberEnds
Deadline = ClassicDeadline | ConsumerDeadline | OffsetsExpire | GoneForgotten


@dataclass(slots=True)
class GroupEffects:
    """Collects the effects of one command; whoever takes part in its decision adds some."""

    now: Moment
    timers: Timers[Deadline]
    facts: list[GroupFact] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)
    forgotten_bytes: int = 0
    """Bytes of the names of groups whose offsets are forgotten."""
    drafts: dict[str, Draft] = field(default_factory=dict)
    """Consumer groups as the facts so far leave them; several deadlines of one group may come at once."""

    def write(self, key: Key, value: Value | None) -> None:
        """Add a fact; None removes what holds for the key."""
        self.facts.append(GroupRecord(key, value))

    def answer(self, ticket: Ticket, response: object) -> None:
        """Answer the sender of this command, or one that has waited since an earlier one."""
        self.replies.append(Reply(ticket, response))

    def set_timer(self, deadline: Deadline, delay_ms: int) -> None:
        """Set or move a deadline to so many milliseconds from now."""
        self.timers.set(deadline, self.in_ms(delay_ms))

    def in_ms(self, delay_ms: int) -> Instant:
        """Return the instant so many milliseconds from now."""
        return Instant(self.now.instant + delay_ms / 1000)

    def decision(self) -> Decision[GroupFact, Never]:
        return Decision(records=tuple(self.facts), replies=tuple(self.replies))
