"""The live part of consumer groups: who was heard of when. None of it is remembered."""

from collections import Counter
from dataclasses import dataclass, field

from riverlog.model.machine import Instant


@dataclass(frozen=True, slots=True)
class SilenceNoticed:
    """A member of a consumer group should have been heard of by then; its session may still save it."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class ConsumerSessionEnds:
    """A member of a consumer group must have been heard of by then."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class RevocationEnds:
    """A member must have given up by then what it was asked to give up."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class AssignmentDue:
    """A group that has changed has rested long enough since its last assignment."""

    group_id: str


@dataclass(frozen=True, slots=True)
class ClassicMemberEnds:
    """A member that speaks the classic protocol, and was called to join or has joined, must have synced by then."""

    group_id: str
    member_id: str


ConsumerDeadline = SilenceNoticed | ConsumerSessionEnds | RevocationEnds | AssignmentDue | ClassicMemberEnds


@dataclass(slots=True)
class LiveConsumers:
    """What is known about the members of a consumer group at the moment."""

    changed: Instant
    """When the group last had a reason to assign anew."""
    silent: set[str] = field(default_factory=set)
    """Members that should have been heard of."""
    hurried: Counter[str] = field(default_factory=Counter)
    """How often members were asked to come again soon, since the group last changed or they had settled."""
    untold: set[str] = field(default_factory=set)
    """Members that have not said yet that they have what they are to have. They are told with every answer, since one
    may have been lost, and not every client asks again."""
    is_current: bool = False
    """Whether the group has seen the topics as they are; after a replay they may be others."""
