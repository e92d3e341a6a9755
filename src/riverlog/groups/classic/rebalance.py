"""How a classic group gets from one generation to the next, and what happens when time runs out on the way.

    prepare: call everybody to join ... complete: begin a generation with those who came ... the leader's assignment

Every Join and Sync that waits is answered: by the generation, by a newer request of the same member, or by its removal.
"""

from dataclasses import replace

from riverlog.groups.classic.live import FirstRound, JoinEnds, Live, LiveGroup, Member, Phase, SessionEnds, SyncEnds
from riverlog.groups.commands import JoinReply, SyncReply
from riverlog.groups.limits import (
    EXPECTED_MEMBERS_WAIT_MS,
    EXPECTED_MEMBERS_WAIT_MS_MAX,
    JOIN_EXTENSION_MS_MIN,
    STRAGGLERS_WAIT_MS,
)
from riverlog.groups.records import GroupMetadataKey
from riverlog.groups.turn import Turn
from riverlog.model.errors import ErrorCode
from riverlog.model.settings import NodeSettings


class Rebalance:
    """The steps of a rebalance, for any group; all state is in what it was given."""

    def __init__(self, live: Live, settings: NodeSettings) -> None:
        self._live = live
        self._settings = settings

    def begin(self, group: LiveGroup, turn: Turn) -> None:
        """Begin a rebalance, or see whether the one that was begun can go on."""
        if group.phase is Phase.PREPARING:
            self.complete_if_all_joined(group, turn)
        else:
            self.prepare(group, turn)

    def prepare(self, group: LiveGroup, turn: Turn) -> None:
        """Call all members to join; go on at once if all have."""
        for member_id in list(group.syncing):
            self.answer_sync(group, member_id, SyncReply(ErrorCode.REBALANCE_IN_PROGRESS), turn)
        self._live.timers.cancel(SyncEnds(group.id))
        is_first = group.phase is Phase.EMPTY
        group.enter(Phase.PREPARING, turn.now.wall_ms)
        if is_first:
            self._begin_first_round(group, turn)
        elif group.all_have_joined():
            self._complete(group, turn)
        else:
            self._live.timers.set(JoinEnds(group.id), turn.in_ms(group.rebalance_timeout_ms))

    def _begin_first_round(self, group: LiveGroup, turn: Turn) -> None:
        """Give an empty group time for more members: what the settings say, or a moment if some are on their way."""
        delay_ms = self._settings.group_initial_rebalance_delay_ms
        if delay_ms > 0:
            self._wait_for_more(
                group, FirstRound(delay_ms, turn.in_ms(max(delay_ms, group.rebalance_timeout_ms))), turn
            )
        elif self._are_members_expected(group, turn):
            latest = turn.in_ms(EXPECTED_MEMBERS_WAIT_MS_MAX)
            self._wait_for_more(group, FirstRound(EXPECTED_MEMBERS_WAIT_MS, latest, counts_members=True), turn)
        else:
            self._complete(group, turn)

    def _wait_for_more(self, group: LiveGroup, first_round: FirstRound, turn: Turn) -> None:
        group.first_round = first_round
        self._live.timers.set(JoinEnds(group.id), min(turn.in_ms(first_round.wait_ms), first_round.latest))

    def complete_if_all_joined(self, group: LiveGroup, turn: Turn) -> None:
        """Begin the next generation if nobody is missing; a first round takes its time."""
        if group.phase is not Phase.PREPARING or not group.all_have_joined():
            return
        first = group.first_round
        if first is None:
            self._complete(group, turn)
        elif first.counts_members and not self._are_members_expected(group, turn):
            self._wait_for_more(group, replace(first, wait_ms=STRAGGLERS_WAIT_MS, more_came=False), turn)

    def _are_members_expected(self, group: LiveGroup, turn: Turn) -> bool:
        return len(group.members) < self._live.arrivals.expected(group.id, turn.now.instant)

    def settle(self, group: LiveGroup, turn: Turn) -> None:
        """Go on after one is gone who was no member, or for whom there was no place."""
        self.complete_if_all_joined(group, turn)
        if group.phase is Phase.EMPTY and not group.handed_out:
            self._live.groups.pop(group.id, None)

    def _complete(self, group: LiveGroup, turn: Turn) -> None:
        """Begin the next generation with those who have joined, and static members, who may be away for a while."""
        self._live.timers.cancel(JoinEnds(group.id))
        group.first_round = None
        for member in list(group.members.values()):
            if member.id not in group.joining and member.instance_id is None:
                self.remove(group, member.id, turn)
        if group.members and not group.joining:  # nobody could lead: wait for one to come back or for sessions to end
            patience_ms = max(group.rebalance_timeout_ms, JOIN_EXTENSION_MS_MIN)
            self._live.timers.set(JoinEnds(group.id), turn.in_ms(patience_ms))
            return
        group.generation += 1
        if not group.members:
            self._become_empty(group, turn)
            return
        if group.leader not in group.joining:
            group.leader = next(iter(group.joining))
        group.protocol_name = group.chosen_protocol()
        group.subscribed = group.read_subscriptions()
        group.enter(Phase.COMPLETING, turn.now.wall_ms)
        group.unsynced = set(group.members)
        for member in group.members.values():
            member.is_new = False
            member.assignment = b""
            self.answer_join(group, member.id, group.generation_for(member), turn)
            self.restart_session(group, member, turn)
        self._live.timers.set(SyncEnds(group.id), turn.in_ms(group.rebalance_timeout_ms))

    def _become_empty(self, group: LiveGroup, turn: Turn) -> None:
        group.protocol_name = None
        group.subscribed = group.read_subscriptions()
        group.enter(Phase.EMPTY, turn.now.wall_ms)
        turn.write(GroupMetadataKey(group.id), group.record())
        if not group.handed_out:
            del self._live.groups[group.id]

    # ---- time is up

    def session_ended(self, group: LiveGroup, member_id: str, turn: Turn) -> None:
        """Remove a member that was not heard of, unless it is us it waits for."""
        if member_id in group.handed_out:
            self.take_back(group, member_id)
            self.settle(group, turn)
            return
        waits = member_id in group.joining or member_id in group.syncing
        if waits and not group.members[member_id].is_new:
            return  # its session begins anew with the answer
        self.remove(group, member_id, turn)
        self.begin(group, turn)

    def join_ended(self, group: LiveGroup, turn: Turn) -> None:
        """Go on with those who have joined; a first round is prolonged while more members come."""
        first = group.first_round
        if first is not None and first.more_came and turn.now.instant < first.latest:
            self._wait_for_more(group, replace(first, more_came=False), turn)
        else:
            self._complete(group, turn)

    def sync_ended(self, group: LiveGroup, turn: Turn) -> None:
        """Remove members that never asked for their assignment."""
        for member_id in sorted(group.unsynced):
            self.remove(group, member_id, turn)
        self.prepare(group, turn)

    # ---- one member

    def take_back(self, group: LiveGroup, member_id: str) -> None:
        """Forget an id that was handed out."""
        group.handed_out.remove(member_id)
        self._live.timers.cancel(SessionEnds(group.id, member_id))

    def remove(self, group: LiveGroup, member_id: str, turn: Turn) -> None:
        """Take a member out; what follows for the group is the caller's to say."""
        self.answer_join(group, member_id, JoinReply(ErrorCode.UNKNOWN_MEMBER_ID), turn)
        self.answer_sync(group, member_id, SyncReply(ErrorCode.UNKNOWN_MEMBER_ID), turn)
        self._live.timers.cancel(SessionEnds(group.id, member_id))
        group.remove(member_id)

    def answer_join(self, group: LiveGroup, member_id: str, reply: JoinReply, turn: Turn) -> None:
        """Answer a member that waits for a generation, if it does."""
        ticket = group.joining.pop(member_id, None)
        if ticket is not None:
            turn.answer(ticket, reply)

    def answer_sync(self, group: LiveGroup, member_id: str, reply: SyncReply, turn: Turn) -> None:
        """Answer a member that waits for its assignment, if it does."""
        ticket = group.syncing.pop(member_id, None)
        if ticket is not None:
            turn.answer(ticket, reply)
            self.restart_session(group, group.members[member_id], turn)  # while it waited, its session could not end

    def restart_session(self, group: LiveGroup, member: Member, turn: Turn) -> None:
        """The member was heard of, or is given time."""
        self._live.timers.set(SessionEnds(group.id, member.id), turn.in_ms(member.session_timeout_ms))

    def has_synced(self, group: LiveGroup, member_id: str) -> None:
        """Note that a member asks for its assignment."""
        group.unsynced.discard(member_id)
        if not group.unsynced:
            self._live.timers.cancel(SyncEnds(group.id))

    def dissolve(self, group: LiveGroup, turn: Turn) -> None:
        """End the group's life: nobody waits any more, no time runs out. Its record is the caller's business."""
        for member_id in list(group.members):  # if the group lives on as a consumer group, so do its members
            self.answer_join(group, member_id, JoinReply(ErrorCode.REBALANCE_IN_PROGRESS, member_id), turn)
            self.answer_sync(group, member_id, SyncReply(ErrorCode.REBALANCE_IN_PROGRESS), turn)
            self.remove(group, member_id, turn)
        for member_id in list(group.handed_out):
            self.take_back(group, member_id)
        self._live.timers.cancel(JoinEnds(group.id))
        self._live.timers.cancel(SyncEnds(group.id))
        self._live.groups.pop(group.id, None)
