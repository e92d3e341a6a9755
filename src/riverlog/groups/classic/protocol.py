"""The classic protocol: members join, one of them assigns, everybody syncs; whoever falls silent is left behind.

The coordinator knows neither topics nor partitions here: protocols and assignments are opaque. All members of a
generation learn the same one, and what they are assigned is remembered before any of them is told.
"""

from dataclasses import replace
from typing import assert_never

from riverlog.groups.classic.consumer_metadata import CONSUMER_PROTOCOL_TYPE, must_give_up
from riverlog.groups.classic.live import JoinEnds, Live, LiveGroup, Member, Phase, SessionEnds, SyncEnds
from riverlog.groups.classic.rebalance import Rebalance
from riverlog.groups.commands import (
    NO_MEMBER,
    Heartbeat,
    HeartbeatReply,
    Join,
    JoinReply,
    Leave,
    Leaver,
    LeaveReply,
    Sync,
    SyncReply,
)
from riverlog.groups.limits import HANDED_OUT_MEMBER_IDS_MAX, NEW_MEMBER_JOIN_MS_MAX
from riverlog.groups.records import GroupMetadataKey
from riverlog.groups.state import GroupsState
from riverlog.groups.turn import Turn
from riverlog.model.errors import ErrorCode
from riverlog.model.machine import Ticket
from riverlog.model.settings import NodeSettings


class ClassicProtocol:
    """Runs the classic groups; all state is in what it was given."""

    def __init__(self, state: GroupsState, live: Live, settings: NodeSettings) -> None:
        self._state = state
        self._live = live
        self._settings = settings
        self._rebalance = Rebalance(live, settings)

    def find(self, group_id: str) -> LiveGroup | None:
        """Give a group as it stands, whether it lives or only has a record."""
        group = self._live.groups.get(group_id)
        if group is None and (value := self._state.classic.get(group_id)) is not None:
            group = LiveGroup.from_record(group_id, value)
        return group

    def resume(self, turn: Turn) -> None:
        """Bring groups with members to life after a replay: everybody gets a fresh session."""
        for group_id in self._state.classic:
            self._resume(group_id, turn)

    def _resume(self, group_id: str, turn: Turn) -> None:
        value = self._state.classic.get(group_id)
        if value is None or not value.members:
            return
        group = self._live.groups[group_id] = LiveGroup.from_record(group_id, value)
        for member in group.members.values():
            self._rebalance.restart_session(group, member, turn)
        if len(group.members) > self._settings.group_max_size:
            self._rebalance.prepare(group, turn)  # whoever rejoins first keeps a place

    def begin_anew(self, group_id: str, turn: Turn) -> None:
        """Resume a group from its record, as after a replay; whoever waits is called to join again."""
        self.dissolve(group_id, turn)
        self._resume(group_id, turn)

    def heard_of(self, group: LiveGroup, member_id: str, turn: Turn) -> None:
        """Begin a member's session anew."""
        self._rebalance.restart_session(group, group.members[member_id], turn)

    def dissolve(self, group_id: str, turn: Turn) -> None:
        """End a group's life, if it lives; its record is the caller's business."""
        group = self._live.groups.get(group_id)
        if group is not None:
            self._rebalance.dissolve(group, turn)

    def adopt(self, group: LiveGroup, turn: Turn) -> None:
        """Take over a group that was a consumer group; its members find out by being called to join."""
        self._live.groups[group.id] = group
        for member in group.members.values():
            self._rebalance.restart_session(group, member, turn)
        turn.write(GroupMetadataKey(group.id), group.record())
        self._rebalance.prepare(group, turn)

    def time_is_up(self, deadline: SessionEnds | JoinEnds | SyncEnds, turn: Turn) -> None:
        """Go on without those who did not come in time."""
        group = self._live.groups[deadline.group_id]
        match deadline:
            case SessionEnds():
                self._rebalance.session_ended(group, deadline.member_id, turn)
            case JoinEnds():
                self._rebalance.join_ended(group, turn)
            case SyncEnds():
                self._rebalance.sync_ended(group, turn)
            case _:
                assert_never(deadline)

    # ---- join

    def join(self, command: Join, ticket: Ticket, turn: Turn) -> None:
        """Take a member in, or back; the answer comes with the next generation."""
        group = self.find(command.group_id)
        refused = self._join_refusal(command, group)
        if refused is not None:
            turn.answer(ticket, refused)
            return
        group = group or LiveGroup(command.group_id)
        if not self._has_room(group, command.member_id):
            turn.answer(ticket, JoinReply(ErrorCode.GROUP_MAX_SIZE_REACHED))
            self._turn_away(group, command.member_id, turn)
        elif not group.supports(command.protocol_type, command.protocols):
            turn.answer(ticket, JoinReply(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, command.member_id))
        elif command.member_id == NO_MEMBER:
            self._join_new(group, command, ticket, turn)
        elif command.member_id in group.handed_out and command.group_instance_id is None:
            self._add(group, command.member_id, command, ticket, turn)
        else:
            self._rejoin(group, command, ticket, turn)

    def _join_refusal(self, command: Join, group: LiveGroup | None) -> JoinReply | None:
        shortest, longest = self._settings.group_min_session_timeout_ms, self._settings.group_max_session_timeout_ms
        if not command.group_id:
            return JoinReply(ErrorCode.INVALID_GROUP_ID, command.member_id)
        if not shortest <= command.session_timeout_ms <= longest:
            return JoinReply(ErrorCode.INVALID_SESSION_TIMEOUT, command.member_id)
        if group is None and command.member_id != NO_MEMBER:
            return JoinReply(ErrorCode.UNKNOWN_MEMBER_ID, command.member_id)
        return None

    def _has_room(self, group: LiveGroup, member_id: str) -> bool:
        """Tell whether the member may join. While a rebalance is prepared those who already wait come first."""
        match group.phase:
            case Phase.PREPARING:
                return member_id in group.joining or len(group.joining) < self._settings.group_max_size
            case Phase.COMPLETING | Phase.STABLE:
                return member_id in group.members or len(group.members) < self._settings.group_max_size
            case _:
                return True

    def _turn_away(self, group: LiveGroup, member_id: str, turn: Turn) -> None:
        if member_id in group.handed_out:
            self._rebalance.take_back(group, member_id)
        elif member_id in group.members:
            self._rebalance.remove(group, member_id, turn)
        self._rebalance.settle(group, turn)

    def _join_new(self, group: LiveGroup, command: Join, ticket: Ticket, turn: Turn) -> None:
        instance_id = command.group_instance_id
        member_id = command.new_member_id
        if instance_id in group.static_ids:
            self._replace(group, group.static_ids[instance_id], member_id, command, ticket, turn)
        elif instance_id is not None or not command.needs_known_id:
            self._add(group, member_id, command, ticket, turn)
        elif len(group.handed_out) < HANDED_OUT_MEMBER_IDS_MAX:
            self._live.groups[group.id] = group
            group.handed_out.add(member_id)
            self._live.timers.set(SessionEnds(group.id, member_id), turn.in_ms(command.session_timeout_ms))
            turn.answer(ticket, JoinReply(ErrorCode.MEMBER_ID_REQUIRED, member_id))
        else:
            turn.answer(ticket, JoinReply(ErrorCode.GROUP_MAX_SIZE_REACHED))

    def _add(self, group: LiveGroup, member_id: str, command: Join, ticket: Ticket, turn: Turn) -> None:
        self._live.groups[group.id] = group
        if not group.members:
            group.protocol_type = command.protocol_type
        member = Member(
            member_id,
            command.group_instance_id,
            command.client,
            command.session_timeout_ms,
            command.rebalance_timeout_ms,
            command.protocols,
            is_new=True,
        )
        group.add(member)
        group.joining[member_id] = ticket
        if group.first_round is not None:
            group.first_round = replace(group.first_round, more_came=True)
        # A newcomer cannot send heartbeats, and one that gave up and tries again would leave a ghost behind each time.
        self._live.timers.set(SessionEnds(group.id, member_id), turn.in_ms(NEW_MEMBER_JOIN_MS_MAX))
        self._rebalance.begin(group, turn)

    def _rejoin(self, group: LiveGroup, command: Join, ticket: Ticket, turn: Turn) -> None:
        code = group.member_refusal(command.member_id, command.group_instance_id)
        if code is not ErrorCode.NONE:
            turn.answer(ticket, JoinReply(code, command.member_id))
            return
        member = group.members[command.member_id]
        leads = group.leader == member.id
        unchanged = member.protocols == command.protocols
        # The leader comes back to have partitions assigned anew; a follower that says nothing new may have missed an
        # answer, and so may anybody while the generation is being completed.
        nothing_new = unchanged and (group.phase is Phase.COMPLETING or (group.phase is Phase.STABLE and not leads))
        if nothing_new:
            turn.answer(ticket, group.generation_for(member))
        else:
            self._update(group, member, command, ticket, turn)
            self._rebalance.begin(group, turn)

    def _update(self, group: LiveGroup, member: Member, command: Join, ticket: Ticket, turn: Turn) -> None:
        group.update(member, command.protocols)
        member.session_timeout_ms = command.session_timeout_ms
        member.rebalance_timeout_ms = command.rebalance_timeout_ms
        self._rebalance.answer_join(group, member.id, JoinReply(ErrorCode.REBALANCE_IN_PROGRESS, member.id), turn)
        group.joining[member.id] = ticket

    def _replace(self, group: LiveGroup, old_id: str, new_id: str, command: Join, ticket: Ticket, turn: Turn) -> None:
        """Let a static member come back under a new id; whoever still uses the old one is fenced."""
        self._rebalance.answer_join(group, old_id, JoinReply(ErrorCode.FENCED_INSTANCE_ID, old_id), turn)
        self._rebalance.answer_sync(group, old_id, SyncReply(ErrorCode.FENCED_INSTANCE_ID), turn)
        self._rebalance.has_synced(group, old_id)
        self._live.timers.cancel(SessionEnds(group.id, old_id))
        led_by = group.leader
        member = group.replace(old_id, new_id)
        self._rebalance.restart_session(group, member, turn)
        # Others wait for what it was to give up: it would have joined again then, but no longer knows.
        was_to_rejoin = group.protocol_type == CONSUMER_PROTOCOL_TYPE and must_give_up(
            member.metadata(group.protocol_name), member.assignment
        )
        self._update(group, member, command, ticket, turn)
        if group.phase is Phase.PREPARING:
            self._rebalance.complete_if_all_joined(group, turn)
        elif group.phase is Phase.COMPLETING or was_to_rejoin or group.chosen_protocol() != group.protocol_name:
            self._rebalance.prepare(group, turn)
        else:
            # Stable, and the assignment still fits: the others need not notice. Versions that cannot say "skip the
            # assignment" are told of a leader that is gone, so that a returning leader does not assign.
            turn.write(GroupMetadataKey(group.id), group.record())
            leads = group.leader == new_id
            reply = group.generation_for(member)
            if command.may_skip_assignment:
                reply = replace(reply, skip_assignment=leads)
            else:
                reply = replace(reply, leader=led_by or "", members=())
            self._rebalance.answer_join(group, new_id, reply, turn)

    # ---- sync, heartbeat, leave

    def sync(self, command: Sync, ticket: Ticket, turn: Turn) -> None:
        """Hand out assignments: to all who wait once the leader's is there."""
        group = self.find(command.group_id)
        code = ErrorCode.INVALID_GROUP_ID if not command.group_id else _sync_refusal(group, command)
        if code is not ErrorCode.NONE or group is None:
            turn.answer(ticket, SyncReply(code))
            return
        self._rebalance.has_synced(group, command.member_id)
        if group.phase is Phase.STABLE:
            turn.answer(ticket, _assignment(group, group.members[command.member_id]))
            return
        self._rebalance.answer_sync(group, command.member_id, SyncReply(ErrorCode.REBALANCE_IN_PROGRESS), turn)
        group.syncing[command.member_id] = ticket
        if group.leader == command.member_id:
            for member in group.members.values():
                member.assignment = command.assignments.get(member.id, b"")
            group.enter(Phase.STABLE, turn.now.wall_ms)
            turn.write(GroupMetadataKey(group.id), group.record())
            for member_id in list(group.syncing):
                self._rebalance.answer_sync(group, member_id, _assignment(group, group.members[member_id]), turn)

    def heartbeat(self, command: Heartbeat, ticket: Ticket, turn: Turn) -> None:
        """Begin the member's session anew, and tell it when it has to rejoin."""
        group = self.find(command.group_id)
        if not command.group_id:
            code = ErrorCode.INVALID_GROUP_ID
        elif group is None:
            code = ErrorCode.UNKNOWN_MEMBER_ID
        else:
            code = group.generation_refusal(command.member_id, command.group_instance_id, command.generation_id)
            if code is ErrorCode.NONE:
                self.heard_of(group, command.member_id, turn)
                if group.phase is Phase.PREPARING:
                    code = ErrorCode.REBALANCE_IN_PROGRESS
        turn.answer(ticket, HeartbeatReply(code))

    def leave(self, command: Leave, ticket: Ticket, turn: Turn) -> None:
        """Remove members; the rest rebalances once."""
        if not command.group_id:
            turn.answer(ticket, LeaveReply(ErrorCode.INVALID_GROUP_ID))
            return
        group = self.find(command.group_id)
        if group is None:
            turn.answer(ticket, LeaveReply(codes=(ErrorCode.UNKNOWN_MEMBER_ID,) * len(command.members)))
            return
        before = len(group.members)
        codes = tuple(self._leave(group, leaver, turn) for leaver in command.members)
        turn.answer(ticket, LeaveReply(codes=codes))
        if len(group.members) < before:
            self._rebalance.begin(group, turn)
        else:
            self._rebalance.settle(group, turn)

    def _leave(self, group: LiveGroup, leaver: Leaver, turn: Turn) -> ErrorCode:
        member_id = leaver.member_id
        if member_id == NO_MEMBER and leaver.group_instance_id is not None:  # an operator removes a static member
            member_id = group.static_ids.get(leaver.group_instance_id, NO_MEMBER)
        if member_id in group.handed_out:
            self._rebalance.take_back(group, member_id)
            return ErrorCode.NONE
        code = group.member_refusal(member_id, leaver.group_instance_id)
        if code is ErrorCode.NONE:
            self._rebalance.remove(group, member_id, turn)
        return code


def _assignment(group: LiveGroup, member: Member) -> SyncReply:
    return SyncReply(protocol_type=group.protocol_type, protocol_name=group.protocol_name, assignment=member.assignment)


def _sync_refusal(group: LiveGroup | None, command: Sync) -> ErrorCode:
    if group is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    code = group.generation_refusal(command.member_id, command.group_instance_id, command.generation_id)
    if code is not ErrorCode.NONE:
        return code
    if command.protocol_type not in (None, group.protocol_type):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if command.protocol_name not in (None, group.protocol_name):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return ErrorCode.REBALANCE_IN_PROGRESS if group.phase is Phase.PREPARING else ErrorCode.NONE
