"""The phases of a classic group: how it gets from one generation to the next.

   Empty <---------------------- all left ---------------------+
     |  first join                                             |
     v                                                         |
PreparingRebalance --- all have joined, or time is up ---> CompletingRebalance
     ^        ^                                                |  the leader's assignment
     |        +------ join, leave, session ended --------------+
     +------------------------ the same --------------------- Stable
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import assert_never

from riverlog.groups.classic.group import ClassicGroup, ClassicPhase, FirstRound
from riverlog.groups.commands import SyncReply
from riverlog.groups.effects import ClassicDeadline, GroupEffects, JoinEnds, SessionEnds, SyncEnds
from riverlog.groups.limits import (
    EXPECTED_MEMBERS_WAIT_MS,
    EXPECTED_MEMBERS_WAIT_MS_MAX,
    JOIN_EXTENSION_MS_MIN,
    STRAGGLERS_WAIT_MS,
)
from riverlog.groups.soft_state import GroupsSoftState
from riverlog.model.errors import ErrorCode
from riverlog.model.settings import NodeSettings


class ClassicRebalance:
    """Moves classic groups from phase to phase; all state is in the groups."""

    def __init__(self, soft: GroupsSoftState, settings: NodeSettings) -> None:
        self._soft = soft
        self._settings = settings

    def begin(self, group: ClassicGroup, effects: GroupEffects) -> None:
        """Begin a rebalance, or go on with the one that was begun if all have joined."""
        if group.phase is ClassicPhase.PREPARING:
            self._complete_if_all_joined(group, effects)
        else:
            self._prepare(group, effects)

    def settle(self, group: ClassicGroup, effects: GroupEffects) -> None:
        """Go on without somebody who was no member, or for whom there was no room."""
        self._complete_if_all_joined(group, effects)
        if group.phase is ClassicPhase.EMPTY and not group.handed_out:
            self._soft.groups.pop(group.id, None)

    def assign(self, group: ClassicGroup, assignments: Mapping[str, bytes], effects: GroupEffects) -> None:
        """End the rebalance with the leader's assignment: write it and hand it out."""
        for member in group.members.values():
            member.assignment = assignments.get(member.id, b"")
        group.enter(ClassicPhase.STABLE, effects)
        group.write(effects)
        for member_id in list(group.syncing):
            group.answer_sync(member_id, group.assignment_of(member_id), effects)

    def time_is_up(self, deadline: ClassicDeadline, effects: GroupEffects) -> None:
        """Go on without those who did not come in time."""
        group = self._soft.groups[deadline.group_id]
        match deadline:
            case SessionEnds():
                self._end_session(group, deadline.member_id, effects)
            case JoinEnds():
                self._end_join(group, effects)
            case SyncEnds():
                for member_id in sorted(group.unsynced):
                    group.remove(member_id, effects)
                self._prepare(group, effects)
            case _:
                assert_never(deadline)

    def _end_session(self, group: ClassicGroup, member_id: str, effects: GroupEffects) -> None:
        """Remove a silent member, unless it waits for the group."""
        if member_id in group.handed_out:
            group.take_back(member_id, effects)
            self.settle(group, effects)
            return
        waits = member_id in group.joining or member_id in group.syncing
        if waits and not group.members[member_id].is_new:
            return  # its session begins anew with the answer
        group.remove(member_id, effects)
        self.begin(group, effects)

    def _end_join(self, group: ClassicGroup, effects: GroupEffects) -> None:
        """Go on with those who have joined; a first round is prolonged while more members come."""
        first = group.first_round
        if first is not None and first.more_came and effects.now.instant < first.latest:
            _wait_for_more(group, replace(first, more_came=False), effects)
        else:
            self._complete(group, effects)

    # ---- prepare: call all members to join

    def _prepare(self, group: ClassicGroup, effects: GroupEffects) -> None:
        for member_id in list(group.syncing):
            group.answer_sync(member_id, SyncReply(ErrorCode.REBALANCE_IN_PROGRESS), effects)
        effects.timers.cancel(SyncEnds(group.id))
        is_first = group.phase is ClassicPhase.EMPTY
        group.enter(ClassicPhase.PREPARING, effects)
        if is_first:
            self._begin_first_round(group, effects)
        elif group.all_have_joined():
            self._complete(group, effects)
        else:
            effects.set_timer(JoinEnds(group.id), group.rebalance_timeout_ms)

    def _begin_first_round(self, group: ClassicGroup, effects: GroupEffects) -> None:
        """Wait in an empty group for more members: as long as the settings say, or a moment if some are expected."""
        delay_ms = self._settings.group_initial_rebalance_delay_ms
        if delay_ms > 0:
            latest = effects.in_ms(max(delay_ms, group.rebalance_timeout_ms))
            _wait_for_more(group, FirstRound(delay_ms, latest), effects)
        elif self._expects_members(group, effects):
            latest = effects.in_ms(EXPECTED_MEMBERS_WAIT_MS_MAX)
            _wait_for_more(group, FirstRound(EXPECTED_MEMBERS_WAIT_MS, latest, counts_members=True), effects)
        else:
            self._complete(group, effects)

    def _expects_members(self, group: ClassicGroup, effects: GroupEffects) -> bool:
        return len(group.members) < self._soft.expected_members.count(group.id, effects.now.instant)

    # ---- complete: begin a generation with those who came

    def _complete_if_all_joined(self, group: ClassicGroup, effects: GroupEffects) -> None:
        if group.phase is not ClassicPhase.PREPARING or not group.all_have_joined():
            return
        first = group.first_round
        if first is None:
            self._complete(group, effects)
        elif first.counts_members and not self._expects_members(group, effects):
            _wait_for_more(group, replace(first, wait_ms=STRAGGLERS_WAIT_MS, more_came=False), effects)

    def _complete(self, group: ClassicGroup, effects: GroupEffects) -> None:
        """Begin the next generation with those who have joined, and static members, who may be away for a while."""
        effects.timers.cancel(JoinEnds(group.id))
        group.first_round = None
        for member in list(group.members.values()):
            if member.id not in group.joining and member.instance_id is None:
                group.remove(member.id, effects)
        if group.members and not group.joining:  # nobody could lead: wait for one to come back or for sessions to end
            effects.set_timer(JoinEnds(group.id), max(group.rebalance_timeout_ms, JOIN_EXTENSION_MS_MIN))
            return
        group.generation += 1
        if not group.members:
            self._become_empty(group, effects)
            return
        if group.leader not in group.joining:
            group.leader = next(iter(group.joining))
        group.protocol_name = group.chosen_protocol()
        group.subscribed = group.read_subscriptions()
        group.enter(ClassicPhase.COMPLETING, effects)
        group.unsynced = set(group.members)
        for member in group.members.values():
            member.is_new = False
            member.assignment = b""
            group.answer_join(member.id, group.generation_for(member), effects)
            group.restart_session(member, effects)
        effects.set_timer(SyncEnds(group.id), group.rebalance_timeout_ms)

    def _become_empty(self, group: ClassicGroup, effects: GroupEffects) -> None:
        group.protocol_name = None
        group.subscribed = group.read_subscriptions()
        group.enter(ClassicPhase.EMPTY, effects)
        group.write(effects)
        if not group.handed_out:
            del self._soft.groups[group.id]


def _wait_for_more(group: ClassicGroup, first_round: FirstRound, effects: GroupEffects) -> None:
    group.first_round = first_round
    effects.timers.set(JoinEnds(group.id), min(effects.in_ms(first_round.wait_ms), first_round.latest))
