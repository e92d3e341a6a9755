"""The groups machine: commands in, facts and replies out; one per partition of `__consumer_offsets`.

What it remembers is `state`, which records alone change. Who waits and when time runs out is `soft`: it begins with the
first command after a replay, when every member gets a fresh session, and is lost with the machine.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple, Never, assert_never

from riverlog.groups.classic.groups import ClassicGroups
from riverlog.groups.classic.membership import ClassicMembership
from riverlog.groups.classic.requests import ClassicRequests
from riverlog.groups.commands import (
    NO_MEMBER,
    Announce,
    CodesReply,
    CommitOffsets,
    ConsumerHeartbeat,
    DeleteGroups,
    DeleteOffsets,
    DescribeConsumerGroups,
    DescribeGroups,
    FetchOffsets,
    GroupsCommand,
    Heartbeat,
    Join,
    Leave,
    ListedGroup,
    ListGroups,
    Sync,
    TopicsChanged,
    TopicsDeleted,
    TransactionEnded,
    Woken,
)
from riverlog.groups.consumer.classic_members import ClassicConsumers
from riverlog.groups.consumer.membership import ConsumerMembership
from riverlog.groups.consumer.protocol import ConsumerProtocol
from riverlog.groups.effects import GoneForgotten, GroupEffects, JoinEnds, OffsetsExpire, SessionEnds, SyncEnds
from riverlog.groups.limits import FACTS_PER_WAKE_MAX, OFFSETS_EXPIRED_PER_TURN_MAX
from riverlog.groups.membership import GroupsOfProtocol
from riverlog.groups.offsets.group_offsets import GroupOffsets, has_forgotten_enough
from riverlog.groups.records import GroupFact, OffsetCommitValue, groups_in
from riverlog.groups.soft_state import GroupsSoftState
from riverlog.groups.state import GroupsState
from riverlog.groups.topics import Topics
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import TopicPartition
from riverlog.model.machine import Decision, Instant, Moment, Ticket
from riverlog.model.settings import NodeSettings

_AT_ONCE: Final = Instant(0.0)


class Standing(NamedTuple):
    """How a group stands, for those who watch it; the offsets are not to be changed."""

    group_id: str
    state: str
    members: int
    committed: Mapping[TopicPartition, OffsetCommitValue]


class GroupsMachine:
    """Decides about the members and the offsets of groups."""

    def __init__(self, settings: NodeSettings, topics: Topics) -> None:
        self.state = GroupsState()
        self.soft = GroupsSoftState(topics=topics)
        self._settings = settings
        self._is_awake = False
        self._classic_groups = ClassicGroups(self.state, self.soft, settings)
        self._classic_requests = ClassicRequests(self._classic_groups, settings)
        self._classic_membership = ClassicMembership(self.state, self._classic_groups)
        self._consumer = ConsumerProtocol(self.state, self.soft, settings, self._classic_groups)
        self._classic_consumers = ClassicConsumers(self.state, self.soft, settings, self._consumer)
        self._consumer_membership = ConsumerMembership(self.state, self.soft, settings)
        self._offsets = GroupOffsets(self.state, self.soft, self._membership, settings)

    def decide(self, command: GroupsCommand, ticket: Ticket, now: Moment) -> Decision[GroupFact, Never]:
        """Name what follows from the command; of all that is remembered, change nothing."""
        effects = GroupEffects(now, self.soft.timers)
        if not self._is_awake:
            self._is_awake = True
            self._classic_groups.resume(effects)
            self._consumer.resume(effects)
            self._look_for_expired_offsets_later(effects)
        self._decide(command, ticket, effects)
        return effects.decision()

    def apply(self, fact: GroupFact) -> None:
        """Remember one fact."""
        self.state.apply(fact)

    def withdraw(self, facts: tuple[GroupFact, ...], now: Moment) -> Decision[GroupFact, Never]:
        """Resume the groups whose membership these facts were to change, as if they had just been read."""
        effects = GroupEffects(now, self.soft.timers)
        for group_id, member_ids in groups_in(facts).items():
            self._classic_groups.resume_anew(group_id, effects)
            self._consumer.resume_anew(group_id, member_ids, effects)
        assert not effects.facts
        return effects.decision()

    def snapshot(self) -> Iterable[GroupFact]:
        """Return records which make an empty machine remember what this one does."""
        return self.state.records()

    def next_deadline(self) -> Instant | None:
        """Return when time runs out for somebody; after a replay, at once, so that sessions begin."""
        return self.soft.timers.next() if self._is_awake else _AT_ONCE

    def standings(self) -> Iterator[Standing]:
        """Return how each group stands."""
        for group_id in self._group_ids():
            group = self._membership(group_id)
            committed = self.state.offsets.of(group_id)
            yield Standing(group_id, group.listed(group_id).state, group.member_count(group_id), committed)

    def _decide(self, command: GroupsCommand, ticket: Ticket, effects: GroupEffects) -> None:
        match command:
            case Heartbeat():
                self._speaking_classic(command.group_id).heartbeat(command, ticket, effects)
            case ConsumerHeartbeat():
                self._consumer.heartbeat(command, ticket, effects)
            case CommitOffsets():
                self._offsets.commit(command, ticket, effects)
            case FetchOffsets():
                self._offsets.fetch(command, ticket, effects)
            case Join():
                group = self.state.consumers.get(command.group_id)
                if group is not None and not group.members and command.member_id == NO_MEMBER:
                    self._consumer_membership.forget(command.group_id, effects)
                    self._classic_requests.join(command, ticket, effects)
                else:
                    self._speaking_classic(command.group_id).join(command, ticket, effects)
            case Sync():
                self._speaking_classic(command.group_id).sync(command, ticket, effects)
            case Leave():
                self._speaking_classic(command.group_id).leave(command, ticket, effects)
            case Announce():
                self.soft.expected_members.note_lookup(command.group_id, command.connection, effects.now.instant)
                effects.answer(ticket, None)
            case Woken():
                self._wake(effects)
                effects.answer(ticket, None)
            case TransactionEnded():
                self._offsets.end_transaction(command, ticket, effects)
            case TopicsChanged():
                self._consumer.topics_changed(command, ticket, effects)
            case TopicsDeleted():
                self._offsets.topics_deleted(command, ticket, effects)
            case DeleteOffsets():
                self._offsets.delete(command, ticket, effects)
            case DeleteGroups():
                code_by_group = {
                    group_id: self._delete_group(group_id, effects) for group_id in sorted(set(command.group_ids))
                }
                effects.answer(ticket, CodesReply(codes=tuple(code_by_group[each] for each in command.group_ids)))
            case ListGroups():
                effects.answer(ticket, self._list(command))
            case DescribeGroups():
                described = tuple(self._classic_membership.described(each) for each in command.group_ids)
                effects.answer(ticket, described)
            case DescribeConsumerGroups():
                consumers = tuple(self._consumer_membership.described(each) for each in command.group_ids)
                effects.answer(ticket, consumers)
            case _:
                assert_never(command)

    def _speaking_classic(self, group_id: str) -> ClassicRequests | ClassicConsumers:
        return self._classic_consumers if group_id in self.state.consumers else self._classic_requests

    def _membership(self, group_id: str) -> GroupsOfProtocol:
        return self._consumer_membership if group_id in self.state.consumers else self._classic_membership

    def _group_ids(self) -> list[str]:
        state = self.state
        return sorted(state.classic.keys() | state.consumers.keys() | self.soft.groups.keys() | state.offsets.groups())

    def _exists(self, group_id: str) -> bool:
        state = self.state
        return (
            group_id in state.classic
            or group_id in state.consumers
            or group_id in self.soft.groups
            or state.offsets.has_group(group_id)
        )

    def _delete_group(self, group_id: str, effects: GroupEffects) -> ErrorCode:
        if not self._exists(group_id):
            return ErrorCode.GROUP_ID_NOT_FOUND
        group = self._membership(group_id)
        if not group.is_empty(group_id):
            return ErrorCode.NON_EMPTY_GROUP
        self._offsets.delete_all(group_id, effects)
        group.forget(group_id, effects)
        return ErrorCode.NONE

    def _list(self, command: ListGroups) -> tuple[ListedGroup, ...]:
        states, types = command.states, command.types
        listed = (self._membership(group_id).listed(group_id) for group_id in self._group_ids())
        return tuple(
            each
            for each in listed
            if (not states or each.state.lower() in states) and (not types or each.type.lower() in types)
        )

    def _wake(self, effects: GroupEffects) -> None:
        # What is written stands in one batch: of many groups a part at a time, so that it fits.
        while (
            len(effects.facts) < FACTS_PER_WAKE_MAX
            and (deadline := self.soft.timers.pop(effects.now.instant)) is not None
        ):
            match deadline:
                case OffsetsExpire():
                    self._expire_offsets(effects)
                case GoneForgotten():
                    self._offsets.forget_gone(effects)
                case SessionEnds() | JoinEnds() | SyncEnds():
                    self._classic_groups.rebalance.time_is_up(deadline, effects)
                case _:
                    self._consumer.time_is_up(deadline, effects)

    def _expire_offsets(self, effects: GroupEffects) -> None:
        """Forget offsets whose time is over, and groups that have neither members nor offsets any more; of many groups
        a part at a time, so that nobody waits long."""
        group_ids = self._group_ids()
        looked_at = 0
        for group_id in group_ids[bisect_left(group_ids, self.soft.expiry_goes_on_at) :]:
            if looked_at >= OFFSETS_EXPIRED_PER_TURN_MAX:
                self._expire_more(group_id, effects)
                return
            looked_at += 1 + len(self.state.offsets.of(group_id))
            group = self._membership(group_id)
            if self._offsets.expire(group_id, effects) and group.is_empty(group_id):
                group.forget(group_id, effects)
            if has_forgotten_enough(effects):
                self._expire_more(group_id, effects)  # of the same group there may be more
                return
        self.soft.expiry_goes_on_at = ""
        self._look_for_expired_offsets_later(effects)

    def _expire_more(self, group_id: str, effects: GroupEffects) -> None:
        self.soft.expiry_goes_on_at = group_id
        effects.set_timer(OffsetsExpire(), 1)

    def _look_for_expired_offsets_later(self, effects: GroupEffects) -> None:
        effects.set_timer(OffsetsExpire(), self._settings.offsets_retention_check_interval_ms)
