"""A classic group: its members, who of them waits, and how long each is known to be alive.

A member that waits for the next generation (Join) or for its assignment (Sync) is answered: by it, by its next request,
or when it is removed. Between the beginning and the end of a rebalance the group is ahead of its record; in the phase
Stable both agree.
"""

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum

from riverlog.groups.classic.consumer_metadata import CONSUMER_PROTOCOL_TYPE, subscribed_topics
from riverlog.groups.commands import JoinedMember, JoinReply, MemberClient, Protocol, SyncReply
from riverlog.groups.effects import GroupEffects, SessionEnds, SyncEnds
from riverlog.groups.records import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from riverlog.model.errors import ErrorCode
from riverlog.model.machine import Instant, Ticket


class ClassicPhase(StrEnum):
    """The state of a classic group, in Kafka's words."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


@dataclass(slots=True)
class ClassicMember:
    """A member of a classic group."""

    id: str
    instance_id: str | None
    client: MemberClient
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: tuple[Protocol, ...]
    assignment: bytes = b""
    is_new: bool = False
    """Whether it has not been part of a generation yet and so has no reason to send heartbeats."""

    def metadata(self, protocol_name: str | None) -> bytes:
        """Return what the member says about itself in one of its protocols."""
        return next((each.metadata for each in self.protocols if each.name == protocol_name), b"")

    def vote(self, candidates: set[str]) -> str:
        """Return the candidate that the member prefers."""
        return next(each.name for each in self.protocols if each.name in candidates)


@dataclass(frozen=True, slots=True)
class FirstRound:
    """The wait of an empty group for more members before its first assignment: longer if some came, but bounded."""

    wait_ms: int
    latest: Instant
    counts_members: bool = False
    """Whether the number of members to come is known, so that the wait ends when they are there."""
    more_came: bool = False


@dataclass(slots=True)
class ClassicGroup:
    """A classic group with its members and those who wait."""

    id: str
    phase: ClassicPhase = ClassicPhase.EMPTY
    since_ms: int = -1
    generation: int = 0
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str | None = None
    subscribed: frozenset[str] | None = None
    """Topics that the members read; None if that is not known."""
    first_round: FirstRound | None = None
    members: dict[str, ClassicMember] = field(default_factory=dict)
    static_ids: dict[str, str] = field(default_factory=dict)
    """ClassicMember ids by instance ids."""
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
    def from_record(cls, group_id: str, value: GroupMetadataValue) -> "ClassicGroup":
        """Build a group from its record."""
        group = cls(
            group_id,
            phase=ClassicPhase.STABLE if value.members else ClassicPhase.EMPTY,
            since_ms=value.current_state_timestamp,
            generation=value.generation,
            protocol_type=value.protocol_type or None,
            protocol_name=value.protocol,
        )
        for each in value.members:
            member = ClassicMember(
                each.member_id,
                each.group_instance_id,
                MemberClient(each.client_id, each.client_host),
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
        """Return the record of the group."""
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

    def enter(self, phase: ClassicPhase, effects: GroupEffects) -> None:
        self.phase = phase
        self.since_ms = effects.now.wall_ms

    def write(self, effects: GroupEffects) -> None:
        """Write the record of the group as it is now."""
        effects.write(GroupMetadataKey(self.id), self.record())

    # ---- members

    def add(self, member: ClassicMember) -> None:
        """Add a member; the first one decides about the protocol type and leads."""
        assert member.id not in self.members
        self.members[member.id] = member
        self.supporters.update(_names(member.protocols))
        self.handed_out.discard(member.id)
        if member.instance_id is not None:
            self.static_ids[member.instance_id] = member.id
        if self.leader is None:
            self.leader = member.id

    def remove(self, member_id: str, effects: GroupEffects) -> None:
        """Remove a member; what follows for the group is up to the caller. If it led, another member does."""
        self.answer_join(member_id, JoinReply(ErrorCode.UNKNOWN_MEMBER_ID), effects)
        self.answer_sync(member_id, SyncReply(ErrorCode.UNKNOWN_MEMBER_ID), effects)
        effects.timers.cancel(SessionEnds(self.id, member_id))
        self._drop(member_id)

    def take_back(self, member_id: str, effects: GroupEffects) -> None:
        """Forget an id that was handed out."""
        self.handed_out.remove(member_id)
        effects.timers.cancel(SessionEnds(self.id, member_id))

    def replace(self, old_id: str, new_id: str, effects: GroupEffects) -> ClassicMember:
        """Take a static member that came back under its new id, and fence the old one; the member keeps its role."""
        self.answer_join(old_id, JoinReply(ErrorCode.FENCED_INSTANCE_ID, old_id), effects)
        self.answer_sync(old_id, SyncReply(ErrorCode.FENCED_INSTANCE_ID), effects)
        self.mark_synced(old_id, effects)
        effects.timers.cancel(SessionEnds(self.id, old_id))
        led = self.leader == old_id
        member = self._drop(old_id)
        member.id = new_id
        self.add(member)
        if led:
            self.leader = new_id
        self.restart_session(member, effects)
        return member

    def _drop(self, member_id: str) -> ClassicMember:
        member = self.members.pop(member_id)
        self._withdraw(member.protocols)
        self.unsynced.discard(member_id)
        if member.instance_id is not None:
            del self.static_ids[member.instance_id]
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        return member

    def update(self, member: ClassicMember, protocols: tuple[Protocol, ...]) -> None:
        """Replace the protocols that a member offers."""
        self._withdraw(member.protocols)
        member.protocols = protocols
        self.supporters.update(_names(protocols))

    def _withdraw(self, protocols: tuple[Protocol, ...]) -> None:
        self.supporters.subtract(_names(protocols))
        self.supporters = +self.supporters  # names that nobody offers any more are not kept

    # ---- those who wait, and sessions

    def answer_join(self, member_id: str, reply: JoinReply, effects: GroupEffects) -> None:
        """Answer a member that waits for a generation, if it does."""
        ticket = self.joining.pop(member_id, None)
        if ticket is not None:
            effects.answer(ticket, reply)

    def answer_sync(self, member_id: str, reply: SyncReply, effects: GroupEffects) -> None:
        """Answer a member that waits for its assignment, if it does."""
        ticket = self.syncing.pop(member_id, None)
        if ticket is not None:
            effects.answer(ticket, reply)
            self.restart_session(self.members[member_id], effects)  # while it waited, its session could not end

    def mark_synced(self, member_id: str, effects: GroupEffects) -> None:
        """Note that a member asks for its assignment."""
        self.unsynced.discard(member_id)
        if not self.unsynced:
            effects.timers.cancel(SyncEnds(self.id))

    def restart_session(self, member: ClassicMember, effects: GroupEffects) -> None:
        """Begin the session of a member anew: it sent something, or is given time."""
        effects.set_timer(SessionEnds(self.id, member.id), member.session_timeout_ms)

    # ---- protocols and generations

    def supports(self, protocol_type: str, protocols: tuple[Protocol, ...]) -> bool:
        """Return whether somebody who offers this can be a member."""
        if self.phase is ClassicPhase.EMPTY:
            return bool(protocol_type and protocols)
        everybody = len(self.members)
        return protocol_type == self.protocol_type and any(
            self.supporters[each.name] == everybody for each in protocols
        )

    def chosen_protocol(self) -> str:
        """Return the protocol that wins the vote among those that all members offer."""
        candidates = {name for name, supporters in self.supporters.items() if supporters == len(self.members)}
        votes = Counter(member.vote(candidates) for member in self.members.values())
        return votes.most_common(1)[0][0]

    def all_have_joined(self) -> bool:
        return len(self.joining) == len(self.members) and not self.handed_out

    @property
    def rebalance_timeout_ms(self) -> int:
        """Return the longest rebalance timeout of the members."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def assignment_of(self, member_id: str) -> SyncReply:
        """Return the answer to a Sync once the leader's assignment is there."""
        return SyncReply(ErrorCode.NONE, self.protocol_type, self.protocol_name, self.members[member_id].assignment)

    def generation_for(self, member: ClassicMember) -> JoinReply:
        """Return the answer to a Join in this generation; the leader's also names the members."""
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
        """Return why somebody is not the member they claim to be, or NONE."""
        if group_instance_id is not None and self.static_ids.get(group_instance_id, member_id) != member_id:
            return ErrorCode.FENCED_INSTANCE_ID
        is_known = member_id in self.members and (group_instance_id is None or group_instance_id in self.static_ids)
        return ErrorCode.NONE if is_known else ErrorCode.UNKNOWN_MEMBER_ID

    def generation_refusal(self, member_id: str, group_instance_id: str | None, generation_id: int) -> ErrorCode:
        """Return why somebody is not a member of this generation, or NONE."""
        code = self.member_refusal(member_id, group_instance_id)
        if code is ErrorCode.NONE and generation_id != self.generation:
            return ErrorCode.ILLEGAL_GENERATION
        return code

    def reads(self, topic: str) -> bool:
        """Return whether a member subscribes to the topic; if that cannot be known, consumers might."""
        if self.subscribed is None:
            return self.protocol_type == CONSUMER_PROTOCOL_TYPE
        return topic in self.subscribed

    def read_subscriptions(self) -> frozenset[str] | None:
        """Return the topics that the members subscribe to; None unless all are consumers and can be understood."""
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
    """Return the names of protocols; one that is offered twice counts once."""
    return {each.name for each in protocols}
