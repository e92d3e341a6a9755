"""Who of a consumer group was heard of when, and when members are to come again.

Members learn everything at their next heartbeat. So while partitions move, and while somebody is missing, heartbeats
are asked for more often: a member is missed long before its session ends.
"""

from riverlog.groups.consumer.group import ConsumerGroup, ConsumerMember, ConsumerPhase
from riverlog.groups.effects import (
    AssignmentDue,
    ClassicMemberEnds,
    ConsumerSessionEnds,
    GroupEffects,
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
from riverlog.groups.soft_state import ConsumerSoftState, GroupsSoftState
from riverlog.model.group_config import GroupConfig, group_config
from riverlog.model.settings import NodeSettings


class ConsumerSessions:
    """The sessions of all consumer groups; all state is in what it was given."""

    def __init__(self, soft: GroupsSoftState, settings: NodeSettings) -> None:
        self._soft = soft
        self._settings = settings
        self._usual = group_config({}, settings)

    def config(self, group_id: str) -> GroupConfig:
        """Return the settings that hold for a group."""
        overrides = self._soft.topics.group_overrides(group_id)
        return group_config(overrides, self._settings) if overrides else self._usual

    def soft(self, group_id: str, effects: GroupEffects) -> ConsumerSoftState:
        """Return the soft state of a group."""
        return self._soft.consumers.setdefault(group_id, ConsumerSoftState(effects.now.instant))

    def heard_of(self, group_id: str, member: ConsumerMember, effects: GroupEffects) -> None:
        """Begin a member's session anew."""
        classic = member.metadata.classic_member_metadata
        if classic is not None:
            ends = effects.in_ms(classic.session_timeout_ms)
            self._soft.timers.set(ConsumerSessionEnds(group_id, member.id), ends)
            return
        silence_ms = _silence_ms(self.config(group_id))
        effects.set_timer(SilenceNoticed(group_id, member.id), silence_ms)
        silent = self.soft(group_id, effects).silent
        if member.id in silent:
            silent.remove(member.id)
            self._soft.timers.cancel(ConsumerSessionEnds(group_id, member.id))

    def called(self, group_id: str, member: ConsumerMember, effects: GroupEffects) -> None:
        """Allow a member that speaks the classic protocol so long to join and to sync; a second call adds nothing."""
        deadline = ClassicMemberEnds(group_id, member.id)
        if self._soft.timers.get(deadline) is None:
            effects.set_timer(deadline, max(0, member.metadata.rebalance_timeout_ms))

    def synced(self, group_id: str, member_id: str) -> None:
        """Note that a member that speaks the classic protocol has its assignment."""
        self._soft.timers.cancel(ClassicMemberEnds(group_id, member_id))

    def missed(self, group_id: str, member_id: str, effects: GroupEffects) -> None:
        """Note that a member has not been heard of when it should; the others are told to look out."""
        self.soft(group_id, effects).silent.add(member_id)
        config = self.config(group_id)
        left_ms = config.consumer_session_timeout_ms - _silence_ms(config)
        effects.set_timer(ConsumerSessionEnds(group_id, member_id), left_ms)

    def away(self, group_id: str, member_id: str, effects: GroupEffects) -> None:
        """Allow a member that has left for a while one session to come back; nobody need look out for it."""
        self.forget(group_id, member_id)
        ends = effects.in_ms(self.config(group_id).consumer_session_timeout_ms)
        self._soft.timers.set(ConsumerSessionEnds(group_id, member_id), ends)

    def forget(self, group_id: str, member_id: str) -> None:
        """Stop all timers of a member."""
        for deadline in (SilenceNoticed, ConsumerSessionEnds, RevocationEnds, ClassicMemberEnds):
            self._soft.timers.cancel(deadline(group_id, member_id))
        soft = self._soft.consumers.get(group_id)
        if soft is not None:
            soft.silent.discard(member_id)
            soft.unconfirmed.discard(member_id)
            soft.hurried.pop(member_id, None)

    def dissolve(self, group: ConsumerGroup) -> None:
        """End a group's life; its records are the caller's business."""
        for member_id in group.members:
            self.forget(group.id, member_id)
        self._soft.timers.cancel(AssignmentDue(group.id))
        self._soft.consumers.pop(group.id, None)

    def interval_ms(self, group: ConsumerGroup, member: ConsumerMember, effects: GroupEffects) -> int:
        """Return when a member is to come again: soon, while the group has not settled or somebody is missing."""
        usual_ms = self.config(group.id).consumer_heartbeat_interval_ms
        soft = self.soft(group.id, effects)
        is_settled = group.phase is ConsumerPhase.STABLE and effects.now.instant - soft.changed >= usual_ms / 1000
        if is_settled and not soft.silent:
            soft.hurried.pop(member.id, None)
            return usual_ms
        soft.hurried[member.id] += 1
        soon_ms = HURRIED_HEARTBEAT_MS if member.assigned else WAITING_HEARTBEAT_MS
        if soft.hurried[member.id] > HURRIED_HEARTBEATS_MAX:
            soon_ms = UNHURRIED_HEARTBEAT_MS
        fair_ms = len(group.members) * 1000 // HURRIED_HEARTBEATS_PER_SECOND_MAX
        return min(usual_ms, max(soon_ms, fair_ms))


def _silence_ms(config: GroupConfig) -> int:
    """After so long a member should have been heard of: an interval, and half of one for the way."""
    return min(config.consumer_heartbeat_interval_ms * 3 // 2, config.consumer_session_timeout_ms)
