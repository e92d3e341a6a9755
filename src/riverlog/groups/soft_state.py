"""The soft state of groups: who waits, who was heard of, until when. None of it is in records; a fail-over loses it."""

from collections import Counter
from dataclasses import dataclass, field

from riverlog.groups.classic.expected_members import ExpectedMembers
from riverlog.groups.classic.group import ClassicGroup
from riverlog.groups.effects import Deadline
from riverlog.groups.topics import NoTopics, Topics
from riverlog.model.machine import Instant
from riverlog.model.timers import Timers


@dataclass(slots=True)
class ConsumerSoftState:
    """What is known about the members of a consumer group at the moment."""

    changed: Instant
    """When the group last had a reason to assign again."""
    silent: set[str] = field(default_factory=set)
    """Members whose heartbeat is overdue."""
    hurried: Counter[str] = field(default_factory=Counter)
    """How often each member was asked to come again soon, since the group last changed or the member settled."""
    unconfirmed: set[str] = field(default_factory=set)
    """Members that have not confirmed their assignment yet. Every answer repeats it, since one may have been lost, and
    not every client asks again."""
    is_current: bool = False
    """Whether the group has been compared with the topics that exist; after a replay these may be others."""


@dataclass(slots=True)
class GroupsSoftState:
    """All that is not remembered."""

    groups: dict[str, ClassicGroup] = field(default_factory=dict)
    """Classic groups with members, or with ids that they have handed out."""
    consumers: dict[str, ConsumerSoftState] = field(default_factory=dict)
    """Consumer groups with members."""
    topics: Topics = field(default_factory=NoTopics)
    timers: Timers[Deadline] = field(default_factory=Timers)
    expected_members: ExpectedMembers = field(default_factory=ExpectedMembers)
    expiry_goes_on_at: str = ""
    """The group at which the search for expired offsets continues that one command did not finish."""
    gone_topics: set[str] = field(default_factory=set)
    """Topics that are gone, as long as offsets in them may remain."""
    groups_to_search: list[str] = field(default_factory=list)
    """Groups that may have such offsets; the next one stands last."""
