"""The requests of the classic protocol: members join, one of them assigns, all sync; silent members are removed.

The coordinator knows neither topics nor partitions here: protocols and assignments are opaque. All members of a
generation learn the same one, and the assignment is written before any of them is told.
"""

from dataclasses import replace

from riverlog.groups.classic.consumer_metadata import CONSUMER_PROTOCOL_TYPE, must_give_up
from riverlog.groups.classic.group import ClassicGroup, ClassicMember, ClassicPhase
from riverlog.groups.classic.groups import ClassicGroups
from riverlog.groups.commands import (
    NO_MEMBER,
    CodesReply,
    Heartbeat,
    Join,
    JoinReply,
    Leave,
    Leaver,
    Sync,
    SyncReply,
)
from riverlog.groups.effects import GroupEffects, SessionEnds
from riverlog.groups.limits import HANDED_OUT_MEMBER_IDS_MAX, NEW_MEMBER_JOIN_MS_MAX
from riverlog.model.errors import ErrorCode
from riverlog.model.machine import Ticket
from riverlog.model.settings import NodeSettings


class ClassicRequests:
    """Answers the requests of members of classic groups."""

    def __init__(self, groups: ClassicGroups, settings: NodeSettings) -> None:
        self._groups = groups
        self._rebalance = groups.rebalance
        self._settings = settings

    def join(self, command: Join, ticket: Ticket, effects: GroupEffects) -> None:
        """Add a member, or take it back; the answer comes with the next generation."""
        group = self._groups.find(command.group_id)
        refused = self._join_refusal(command, group)
        if refused is not None:
            effects.answer(ticket, refused)
            return
        group = group or ClassicGroup(command.group_id)
        if not self._has_room(group, command.member_id):
            effects.answer(ticket, JoinReply(ErrorCode.GROUP_MAX_SIZE_REACHED))
            self._turn_away(group, command.member_id, effects)
        elif not group.supports(command.protocol_type, command.protocols):
            effects.answer(ticket, JoinReply(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, command.member_id))
        elif command.member_id == NO_MEMBER:
            self._join_new(group, command, ticket, effects)
        elif command.member_id in group.handed_out and command.group_instance_id is None:
            self._add(group, command.member_id, command, ticket, effects)
        else:
            self._rejoin(group, command, ticket, effects)

    def _join_refusal(self, command: Join, group: ClassicGroup | None) -> JoinReply | None:
        shortest, longest = self._settings.group_min_session_timeout_ms, self._settings.group_max_session_timeout_ms
        if not command.group_id:
            return JoinReply(ErrorCode.INVALID_GROUP_ID, command.member_id)
        if not shortest <= command.session_timeout_ms <= longest:
            return JoinReply(ErrorCode.INVALID_SESSION_TIMEOUT, command.member_id)
        if group is None and command.member_id != NO_MEMBER:
            return JoinReply(ErrorCode.UNKNOWN_MEMBER_ID, command.member_id)
        return None

    def _has_room(self, group: ClassicGroup, member_id: str) -> bool:
        """Return whether the member may join. While a rebalance is prepared those who already wait come first."""
        match group.phase:
            case ClassicPhase.PREPARING:
                return member_id in group.joining or len(group.joining) < self._settings.group_max_size
            case ClassicPhase.COMPLETING | ClassicPhase.STABLE:
                return member_id in group.members or len(group.members) < self._settings.group_max_size
            case _:
                return True

    def _turn_away(self, group: ClassicGroup, member_id: str, effects: GroupEffects) -> None:
        if member_id in group.handed_out:
            group.take_back(member_id, effects)
        elif member_id in group.members:
            group.remove(member_id, effects)
        self._rebalance.settle(group, effects)

    def _join_new(self, group: ClassicGroup, command: Join, ticket: Ticket, effects: GroupEffects) -> None:
        instance_id = command.group_instance_id
        member_id = command.new_member_id
        if instance_id in group.static_ids:
            self._replace(group, group.static_ids[instance_id], member_id, command, ticket, effects)
        elif instance_id is not None or not command.needs_known_id:
            self._add(group, member_id, command, ticket, effects)
        elif len(group.handed_out) < HANDED_OUT_MEMBER_IDS_MAX:
            self._groups.keep(group)
            group.handed_out.add(member_id)
            effects.set_timer(SessionEnds(group.id, member_id), command.session_timeout_ms)
            effects.answer(ticket, JoinReply(ErrorCode.MEMBER_ID_REQUIRED, member_id))
        else:
            effects.answer(ticket, JoinReply(ErrorCode.GROUP_MAX_SIZE_REACHED))

    def _add(self, group: ClassicGroup, member_id: str, command: Join, ticket: Ticket, effects: GroupEffects) -> None:
        self._groups.keep(group)
        if not group.members:
            group.protocol_type = command.protocol_type
        member = ClassicMember(
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
        effects.set_timer(SessionEnds(group.id, member_id), NEW_MEMBER_JOIN_MS_MAX)
        self._rebalance.begin(group, effects)

    def _rejoin(self, group: ClassicGroup, command: Join, ticket: Ticket, effects: GroupEffects) -> None:
        code = group.member_refusal(command.member_id, command.group_instance_id)
        if code is not ErrorCode.NONE:
            effects.answer(ticket, JoinReply(code, command.member_id))
            return
        member = group.members[command.member_id]
        leads = group.leader == member.id
        unchanged = member.protocols == command.protocols
        # The leader comes back to have partitions assigned anew; a follower that says nothing new may have missed an
        # answer, and so may anybody while the generation is being completed.
        nothing_new = unchanged and (
            group.phase is ClassicPhase.COMPLETING or (group.phase is ClassicPhase.STABLE and not leads)
        )
        if nothing_new:
            effects.answer(ticket, group.generation_for(member))
        else:
            self._update(group, member, command, ticket, effects)
            self._rebalance.begin(group, effects)

    def _update(
        self, group: ClassicGroup, member: ClassicMember, command: Join, ticket: Ticket, effects: GroupEffects
    ) -> None:
        group.update(member, command.protocols)
        member.session_timeout_ms = command.session_timeout_ms
        member.rebalance_timeout_ms = command.rebalance_timeout_ms
        group.answer_join(member.id, JoinReply(ErrorCode.REBALANCE_IN_PROGRESS, member.id), effects)
        group.joining[member.id] = ticket

    def _replace(
        self, group: ClassicGroup, old_id: str, new_id: str, command: Join, ticket: Ticket, effects: GroupEffects
    ) -> None:
        """Take a static member back under a new id; whoever still uses the old one is fenced."""
        led_by = group.leader
        member = group.replace(old_id, new_id, effects)
        # Others wait for what it was to give up: it would have joined again then, but no longer knows.
        was_to_rejoin = group.protocol_type == CONSUMER_PROTOCOL_TYPE and must_give_up(
            member.metadata(group.protocol_name), member.assignment
        )
        self._update(group, member, command, ticket, effects)
        is_stable = group.phase is ClassicPhase.STABLE and not was_to_rejoin
        if not is_stable or group.chosen_protocol() != group.protocol_name:
            self._rebalance.begin(group, effects)
            return
        # The assignment still fits: the others need not notice. Versions that cannot say "skip the assignment" are told
        # of a leader that is gone, so that a returning leader does not assign.
        group.write(effects)
        reply = group.generation_for(member)
        if command.may_skip_assignment:
            reply = replace(reply, skip_assignment=group.leader == new_id)
        else:
            reply = replace(reply, leader=led_by or "", members=())
        group.answer_join(new_id, reply, effects)

    # ---- sync, heartbeat, leave

    def sync(self, command: Sync, ticket: Ticket, effects: GroupEffects) -> None:
        """Answer with the assignment once the leader has sent it."""
        group = self._groups.find(command.group_id)
        code = ErrorCode.INVALID_GROUP_ID if not command.group_id else _sync_refusal(group, command)
        if code is not ErrorCode.NONE or group is None:
            effects.answer(ticket, SyncReply(code))
            return
        group.mark_synced(command.member_id, effects)
        if group.phase is ClassicPhase.STABLE:
            effects.answer(ticket, group.assignment_of(command.member_id))
            return
        group.answer_sync(command.member_id, SyncReply(ErrorCode.REBALANCE_IN_PROGRESS), effects)
        group.syncing[command.member_id] = ticket
        if group.leader == command.member_id:
            self._rebalance.assign(group, command.assignments, effects)

    def heartbeat(self, command: Heartbeat, ticket: Ticket, effects: GroupEffects) -> None:
        """Begin the member's session anew, and answer whether it has to rejoin."""
        group = self._groups.find(command.group_id)
        if not command.group_id:
            code = ErrorCode.INVALID_GROUP_ID
        elif group is None:
            code = ErrorCode.UNKNOWN_MEMBER_ID
        else:
            code = group.generation_refusal(command.member_id, command.group_instance_id, command.generation_id)
            if code is ErrorCode.NONE:
                group.restart_session(group.members[command.member_id], effects)
                if group.phase is ClassicPhase.PREPARING:
                    code = ErrorCode.REBALANCE_IN_PROGRESS
        effects.answer(ticket, code)

    def leave(self, command: Leave, ticket: Ticket, effects: GroupEffects) -> None:
        """Remove members; the rest rebalances once."""
        if not command.group_id:
            effects.answer(ticket, CodesReply(ErrorCode.INVALID_GROUP_ID))
            return
        group = self._groups.find(command.group_id)
        if group is None:
            effects.answer(ticket, CodesReply(codes=(ErrorCode.UNKNOWN_MEMBER_ID,) * len(command.members)))
            return
        before = len(group.members)
        codes = tuple(self._leave(group, leaver, effects) for leaver in command.members)
        effects.answer(ticket, CodesReply(codes=codes))
        if len(group.members) < before:
            self._rebalance.begin(group, effects)
        else:
            self._rebalance.settle(group, effects)

    def _leave(self, group: ClassicGroup, leaver: Leaver, effects: GroupEffects) -> ErrorCode:
        member_id = leaver.member_id
        if member_id == NO_MEMBER and leaver.group_instance_id is not None:  # an operator removes a static member
            member_id = group.static_ids.get(leaver.group_instance_id, NO_MEMBER)
        if member_id in group.handed_out:
            group.take_back(member_id, effects)
            return ErrorCode.NONE
        code = group.member_refusal(member_id, leaver.group_instance_id)
        if code is ErrorCode.NONE:
            group.remove(member_id, effects)
        return code


def _sync_refusal(group: ClassicGroup | None, command: Sync) -> ErrorCode:
    if group is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    code = group.generation_refusal(command.member_id, command.group_instance_id, command.generation_id)
    if code is not ErrorCode.NONE:
        return code
    if command.protocol_type not in (None, group.protocol_type):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if command.protocol_name not in (None, group.protocol_name):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return ErrorCode.REBALANCE_IN_PROGRESS if group.phase is ClassicPhase.PREPARING else ErrorCode.NONE
