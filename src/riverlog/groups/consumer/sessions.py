"""Who of a consumer group was heard of when, and when members are to come again.

Members learn everything at their next heartbeat. So while partitions move, and while somebody is missing, heartbeats
are asked for more often: a member is missed long before its session ends.
"""

from riverlog.groups.classic.live import Live
from riverlog.groups.consumer.group import ConsumerGroup, GroupPhase, Member
from riverlog.groups.consumer.live import (
    AssignmentDue,
    ClassicMemberEnds,
    ConsumerSessionEnds,
    LiveConsumers,
    RevocationEnds,
    SilenceNoticed,
)
from riverlog.groups.limits import (
    HURRIED_HEARTBEAT_MS,
    HURRIED_HEARTBEATS_MAX,
    HURRIED_HEARTBEATS_PER_SECOND_MAX,
    UNHURRIED_HEARTBEAT_MS,
    WAITING_HEARTBEAT_MS,
)
from riverlog.groups.turn import Turn
from riverlog.model.group_config import GroupConfig, group_config
from riverlog.model.settings import NodeSettings


class ConsumerSessions:
    """The sessions of all consumer groups; all state is in what it was given."""

    def __init__(self, live: Live, settings: NodeSettings) -> None:
        self._live = live
        self._settings = settings
        self._usual = group_config({}, settings)

    def config(self, group_id: str) -> GroupConfig:
        """Give the settings that hold for a group."""
        overrides = self._live.topics.group_overrides(group_id)
        return group_config(overrides, self._settings) if overrides else self._usual

    def live(self, group_id: str, turn: Turn) -> LiveConsumers:
        """Give the live part of a group."""
        return self._live.consumers.setdefault(group_id, LiveConsumers(turn.now.instant))

    def heard_of(self, group_id: str, member: Member, turn: Turn) -> None:
        """Begin a member's session anew."""
        classic = member.metadata.classic_member_metadata
        if classic is not None:
            ends = turn.in_ms(classic.session_timeout_ms)
            self._live.timers.set(ConsumerSessionEnds(group_id, member.id), ends)
            return
        silence_ms = _silence_ms(self.config(group_id))
        self._live.timers.set(SilenceNoticed(group_id, member.id), turn.in_ms(silence_ms))
        silent = self.live(group_id, turn).silent
        if member.id in silent:
            silent.remove(member.id)
            self._live.timers.cancel(ConsumerSessionEnds(group_id, member.id))

    def called(self, group_id: str, member: Member, turn: Turn) -> None:
        """Give a member that speaks the classic protocol so long to join and to sync; a second call gives no more."""
        deadline = ClassicMemberEnds(group_id, member.id)
        if self._live.timers.get(deadline) is None:
            self._live.timers.set(deadline, turn.in_ms(max(0, member.metadata.rebalance_timeout_ms)))

    def synced(self, group_id: str, member_id: str) -> None:
        """Note that a member that speaks the classic protocol has its assignment."""
        self._live.timers.cancel(ClassicMemberEnds(group_id, member_id))

    def missed(self, group_id: str, member_id: str, turn: Turn) -> None:
        """Note that a member has not been heard of when it should; the others are told to look out."""
        self.live(group_id, turn).silent.add(member_id)
        config = self.config(group_id)
        left_ms = config.consumer_session_timeout_ms - _silence_ms(config)
        self._live.timers.set(ConsumerSessionEnds(group_id, member_id), turn.in_ms(left_ms))

    def away(self, group_id: str, member_id: str, turn: Turn) -> None:
        """Give a member that has left for a while one session to come back; nobody need look out for it."""
        self.forget(group_id, member_id)
        ends = turn.in_ms(self.config(group_id).consumer_session_timeout_ms)
        self._live.timers.set(ConsumerSessionEnds(group_id, member_id), ends)

    def forget(self, group_id: str, member_id: str) -> None:
        """Let no time run out any more for a member."""
        for deadline in (SilenceNoticed, ConsumerSessionEnds, RevocationEnds, ClassicMemberEnds):
            self._live.timers.cancel(deadline(group_id, member_id))
        live = self._live.consumers.get(group_id)
        if live is not None:
            live.silent.discard(member_id)
            live.untold.discard(member_id)
            live.hurried.pop(member_id, None)

    def dissolve(self, group: ConsumerGroup) -> None:
        """End a group's life; its records are the caller's business."""
        for member_id in group.members:
            self.forget(group.id, member_id)
        self._live.timers.cancel(AssignmentDue(group.id))
        self._live.consumers.pop(group.id, None)

    def interval_ms(self, group: ConsumerGroup, member: Member, turn: Turn) -> int:
        """Say when a member is to come again: soon, while the group has not settled or somebody is missing."""
        usual_ms = self.config(group.id).consumer_heartbeat_interval_ms
        live = self.live(group.id, turn)
        is_settled = group.phase is GroupPhase.STABLE and turn.now.instant - live.changed >= usual_ms / 1000
        if is_settled and not live.silent:
            live.hurried.pop(member.id, None)
            return usual_ms
        live.hurried[member.id] += 1
        soon_ms = HURRIED_HEARTBEAT_MS if member.assigned else WAITING_HEARTBEAT_MS
        if live.hurried[member.id] > HURRIED_HEARTBEATS_MAX:
            soon_ms = UNHURRIED_HEARTBEAT_MS
        fair_ms = len(group.members) * 1000 // HURRIED_HEARTBEATS_PER_SECOND_MAX
        return min(usual_ms, max(soon_ms, fair_ms))


def _silence_ms(config: GroupConfig) -> int:
    """After so long a member should have been heard of: an interval, and half of one for the way."""
    return min(config.consumer_heartbeat_interval_ms * 3 // 2, config.consumer_session_timeout_ms)
