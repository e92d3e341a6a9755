"""The live part of groups: who waits, and until when. None of it is remembered; all of it may be lost at a fail-over.

A classic group lives here while it has members, or ids that it has handed out. Between a rebalance's beginning and its
end this part is ahead of the record in `state.py`; in the phase Stable both say the same.

        Empty <---------------------- all left ---------------------+
          |  first join                                             |
          v                                                         |
     PreparingRebalance --- all have joined, or time is up ---> CompletingRebalance
          ^        ^                                                |  the leader's assignment
          |        +------ join, leave, session ended --------------+
          +------------------------ the same --------------------- Stable
"""

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum

from riverlog.groups.classic.arrivals import Arrivals
from riverlog.groups.classic.consumer_metadata import CONSUMER_PROTOCOL_TYPE, subscribed_topics
from riverlog.groups.commands import Client, JoinedMember, JoinReply, Protocol
from riverlog.groups.consumer.live import ConsumerDeadline, LiveConsumers
from riverlog.groups.records import GroupMetadataValue, MemberMetadata
from riverlog.groups.topics import NoTopics, Topics
from riverlog.model.errors import ErrorCode
from riverlog.model.machine import Instant, Ticket
from riverlog.model.timers import Timers


class Phase(StrEnum):
    """Where a classic group stands, in Kafka's words."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


@dataclass(frozen=True, slots=True)
class SessionEnds:
    """A member of a classic group must have been heard of by then."""

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
class OffsetsExpire:
    """It is time to look for offsets that nobody needs any more."""


@dataclass(frozen=True, slots=True)
class GoneForgotten:
    """There is more to forget of topics that are gone."""


Deadline = SessionEnds | JoinEnds | SyncEnds | OffsetsExpire | GoneForgotten | ConsumerDeadline


@dataclass(slots=True)
class Member:
    """A member of a classic group."""

    id: str
    instance_id: str | None
    client: Client
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: tuple[Protocol, ...]
    assignment: bytes = b""
    is_new: bool = False
    """It has not been part of a generation yet, so it has no reason to send heartbeats."""

    def metadata(self, protocol_name: str | None) -> bytes:
        """Give what the member says about itself in one of its protocols."""
        return next((each.metadata for each in self.protocols if each.name == protocol_name), b"")

    def vote(self, candidates: set[str]) -> str:
        """Choose the candidate that the member likes best."""
        return next(each.name for each in self.protocols if each.name in candidates)


@dataclass(frozen=True, slots=True)
class FirstRound:
    """An empty group waits for more members before its first assignment: longer if some came, but not for ever."""

    wait_ms: int
    latest: Instant
    counts_members: bool = False
    """It is known how many are on their way: when they are there, it is time to go on."""
    more_came: bool = False


@dataclass(slots=True)
class LiveGroup:
    """A classic group, its members and its waiters."""

    id: str
    phase: Phase = Phase.EMPTY
    since_ms: int = -1
    generation: int = 0
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str | None = None
    subscribed: frozenset[str] | None = None
    """Topics that the members read; None if that is not known."""
    first_round: FirstRound | None = None
    members: dict[str, Member] = field(default_factory=dict)
    static_ids: dict[str, str] = field(default_factory=dict)
    """Member ids by instance ids."""
    handed_out: set[str] = field(default_factory=set)
    """Ids of newcomers that were sent back to join with them."""
    joining: dict[str, Ticket] = field(default_factory=dict)
    """Members that wait for the next generation; only while preparing."""
    syncing: dict[str, Ticket] = field(default_factory=dict)
    """Members that wait for the leader's assignment; only while completing."""
    unsynced: set[str] = field(default_factory=set)
    """Members of this generation that have not asked for their assignment yet."""
    supporters: Counter[str] = field(default_factory=Counter)
    """How many members offer each protocol."""

    @classmethod
    def from_record(cls, group_id: str, value: GroupMetadataValue) -> "LiveGroup":
        """Make a group what its record says."""
        group = cls(
            group_id,
            phase=Phase.STABLE if value.members else Phase.EMPTY,
            since_ms=value.current_state_timestamp,
            generation=value.generation,
            protocol_type=value.protocol_type or None,
            protocol_name=value.protocol,
        )
        for each in value.members:
            member = Member(
                each.member_id,
                each.group_instance_id,
                Client(each.client_id, each.client_host),
                each.session_timeout,
                each.session_timeout if each.rebalance_timeout == -1 else each.rebalance_timeout,
                (Protocol(value.protocol or "", each.subscription),),
                each.assignment,
            )
            group.add(member)
        if value.leader in group.members:
            group.leader = value.leader
        group.subscribed = group.read_subscriptions()
        return group

    def record(self) -> GroupMetadataValue:
        """Say what is to be remembered of the group."""
        return GroupMetadataValue(
            protocol_type=self.protocol_type or "",
            generation=self.generation,
            protocol=self.protocol_name,
            leader=self.leader,
            current_state_timestamp=self.since_ms,
            members=tuple(
                MemberMetadata(
                    member_id=member.id,
                    group_instance_id=member.instance_id,
                    client_id=member.client.id,
                    client_host=member.client.host,
                    rebalance_timeout=member.rebalance_timeout_ms,
                    session_timeout=member.session_timeout_ms,
                    subscription=member.metadata(self.protocol_name),
                    assignment=member.assignment,
                )
                for member in self.members.values()
            ),
        )

    def enter(self, phase: Phase, now_ms: int) -> None:
        self.phase = phase
        self.since_ms = now_ms

    def add(self, member: Member) -> None:
        """Take a member in; the first one decides about the protocol type and leads."""
        assert member.id not in self.members
        self.members[member.id] = member
        self.supporters.update(_names(member.protocols))
        self.handed_out.discard(member.id)
        if member.instance_id is not None:
            self.static_ids[member.instance_id] = member.id
        if self.leader is None:
            self.leader = member.id

    def remove(self, member_id: str) -> Member:
        """Let a member go; if it led, another one does."""
        member = self.members.pop(member_id)
        self._withdraw(member.protocols)
        self.unsynced.discard(member_id)
        if member.instance_id is not None:
            del self.static_ids[member.instance_id]
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        return member

    def replace(self, old_id: str, new_id: str) -> Member:
        """Give a static member that came back its new id; it keeps its place."""
        led = self.leader == old_id
        member = self.remove(old_id)
        member.id = new_id
        self.add(member)
        if led:
            self.leader = new_id
        return member

    def update(self, member: Member, protocols: tuple[Protocol, ...]) -> None:
        """Take over what a member now offers."""
        self._withdraw(member.protocols)
        member.protocols = protocols
        self.supporters.update(_names(protocols))

    def _withdraw(self, protocols: tuple[Protocol, ...]) -> None:
        self.supporters.subtract(_names(protocols))
        self.supporters = +self.supporters  # names that nobody offers any more are not kept

    def supports(self, protocol_type: str, protocols: tuple[Protocol, ...]) -> bool:
        """Tell whether somebody who offers this can be a member."""
        if self.phase is Phase.EMPTY:
            return bool(protocol_type and protocols)
        everybody = len(self.members)
        return protocol_type == self.protocol_type and any(
            self.supporters[each.name] == everybody for each in protocols
        )

    def chosen_protocol(self) -> str:
        """Let the members vote among the protocols that all of them offer."""
        candidates = {name for name, supporters in self.supporters.items() if supporters == len(self.members)}
        votes = Counter(member.vote(candidates) for member in self.members.values())
        return votes.most_common(1)[0][0]

    def all_have_joined(self) -> bool:
        return len(self.joining) == len(self.members) and not self.handed_out

    @property
    def rebalance_timeout_ms(self) -> int:
        """The patience of the most patient member."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def generation_for(self, member: Member) -> JoinReply:
        """Tell a member about the generation that holds; its leader, also who is in it."""
        members: tuple[JoinedMember, ...] = ()
        if self.leader == member.id:
            members = tuple(
                JoinedMember(each.id, each.instance_id, each.metadata(self.protocol_name))
                for each in self.members.values()
            )
        return JoinReply(
            member_id=member.id,
            generation_id=self.generation,
            protocol_type=self.protocol_type,
            protocol_name=self.protocol_name,
            leader=self.leader or "",
            members=members,
        )

    def member_refusal(self, member_id: str, group_instance_id: str | None) -> ErrorCode:
        """Say whether somebody is the member they claim to be."""
        if group_instance_id is not None and self.static_ids.get(group_instance_id, member_id) != member_id:
            return ErrorCode.FENCED_INSTANCE_ID
        is_known = member_id in self.members and (group_instance_id is None or group_instance_id in self.static_ids)
        return ErrorCode.NONE if is_known else ErrorCode.UNKNOWN_MEMBER_ID

    def generation_refusal(self, member_id: str, group_instance_id: str | None, generation_id: int) -> ErrorCode:
        """Say whether somebody is a member and knows the generation that holds."""
        code = self.member_refusal(member_id, group_instance_id)
        if code is ErrorCode.NONE and generation_id != self.generation:
            return ErrorCode.ILLEGAL_GENERATION
        return code

    def reads(self, topic: str) -> bool:
        """Tell whether a member subscribes to the topic; if that cannot be known, consumers might."""
        if self.subscribed is None:
            return self.protocol_type == CONSUMER_PROTOCOL_TYPE
        return topic in self.subscribed

    def read_subscriptions(self) -> frozenset[str] | None:
        """Put together what the members subscribe to, where they are consumers that can be understood."""
        if self.protocol_type != CONSUMER_PROTOCOL_TYPE:
            return None
        topics: set[str] = set()
        for member in self.members.values():
            subscribed = subscribed_topics(member.metadata(self.protocol_name))
            if subscribed is None:
                return None
            topics |= subscribed
        return frozenset(topics)


def _names(protocols: tuple[Protocol, ...]) -> set[str]:
    """A protocol that is offered twice counts once."""
    return {each.name for each in protocols}


@dataclass(slots=True)
class Live:
    """All that is not remembered."""

    groups: dict[str, LiveGroup] = field(default_factory=dict)
    consumers: dict[str, LiveConsumers] = field(default_factory=dict)
    """Consumer groups with members."""
    topics: Topics = field(default_factory=NoTopics)
    timers: Timers[Deadline] = field(default_factory=Timers)
    arrivals: Arrivals = field(default_factory=Arrivals)
    expiry_goes_on_at: str = ""
    """The group at which a look for expired offsets goes on that one turn did not finish."""
    gone_topics: set[str] = field(default_factory=set)
    """Topics that are gone, as long as somebody's offsets in them may not be forgotten yet."""
    groups_to_search: list[str] = field(default_factory=list)
    """Groups that may have such offsets; the next one stands last."""
