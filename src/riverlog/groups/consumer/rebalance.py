"""How a consumer group gets from one assignment to the next: the steps, each of which adds to a draft of the group.

    subscribe or remove ... renew: another epoch ... assign: a target for it ... reconcile: one member after another

Nobody waits for anybody in these steps; members learn what has come of them at their next heartbeat.
"""

from collections.abc import Iterable
from dataclasses import replace

from riverlog.groups.consumer.assignors.subscriber import Partitions
from riverlog.groups.consumer.draft import Draft
from riverlog.groups.consumer.group import (
    JOINING,
    NOTHING_OWNED,
    ConsumerMember,
    ConsumerMemberState,
    target_record,
)
from riverlog.groups.consumer.reconciliation import reconciled
from riverlog.groups.consumer.sessions import ConsumerSessions
from riverlog.groups.consumer.subscriptions import matching
from riverlog.groups.consumer.target import new_target, preferred_assignor
from riverlog.groups.effects import AssignmentDue, GroupEffects, RevocationEnds
from riverlog.groups.records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)
from riverlog.groups.soft_state import GroupsSoftState
from riverlog.groups.topics import digest, found
from riverlog.model.settings import NodeSettings


class ConsumerRebalance:
    """The steps, for any consumer group; all state is in what it was given."""

    def __init__(self, soft: GroupsSoftState, settings: NodeSettings) -> None:
        self._soft = soft
        self._settings = settings
        self.sessions = ConsumerSessions(soft, settings)

    # ---- members come, change and go

    def subscribe(
        self, draft: Draft, member_id: str, metadata: ConsumerGroupMemberMetadataValue, effects: GroupEffects
    ) -> bool:
        """Write what a member says of itself; tell whether it subscribes to anything else than before."""
        old = draft.group.members.get(member_id, ConsumerMember(member_id)).metadata
        if member_id not in draft.group.members or metadata != old:
            draft.write(ConsumerGroupMemberMetadataKey(draft.group.id, member_id), metadata)
        pattern = metadata.subscribed_topic_regex
        if pattern is not None and pattern not in draft.group.patterns:
            self._write_pattern(draft, pattern, matching(pattern, self._all_topic_names()), effects)
        if old.subscribed_topic_regex != pattern:
            self._drop_patterns(draft, (old.subscribed_topic_regex,))
        return (old.subscribed_topic_names, old.subscribed_topic_regex) != (metadata.subscribed_topic_names, pattern)

    def replace_static(self, draft: Draft, old: ConsumerMember, new_id: str) -> ConsumerMember:
        """Take a static member back under another id; it keeps what it has and what it is to have."""
        group_id, target = draft.group.id, draft.group.target_of(old.id)
        self._remove(draft, old.id)
        member = replace(old, id=new_id, epoch=JOINING, previous_epoch=JOINING)
        draft.write(ConsumerGroupMemberMetadataKey(group_id, new_id), member.metadata)
        draft.write(ConsumerGroupTargetAssignmentMemberKey(group_id, new_id), target_record(target))
        draft.write(ConsumerGroupCurrentMemberAssignmentKey(group_id, new_id), member.record())
        return member

    def remove(self, draft: Draft, member_ids: Iterable[str], effects: GroupEffects) -> None:
        """Take members out and begin another epoch without them; their partitions are free at once."""
        members = [draft.group.members[member_id] for member_id in member_ids]
        for member in members:
            self._remove(draft, member.id)
        self._drop_patterns(draft, {member.metadata.subscribed_topic_regex for member in members})
        self.renew(draft, effects, changed=True)

    def _remove(self, draft: Draft, member_id: str) -> None:
        group_id = draft.group.id
        draft.write(ConsumerGroupCurrentMemberAssignmentKey(group_id, member_id), None)
        draft.write(ConsumerGroupTargetAssignmentMemberKey(group_id, member_id), None)
        draft.write(ConsumerGroupMemberMetadataKey(group_id, member_id), None)
        self.sessions.forget(group_id, member_id)

    # ---- patterns

    def match_anew(self, draft: Draft, names: frozenset[str] | None, effects: GroupEffects) -> None:
        """Match the group's patterns with topics that have changed, or with all."""
        for pattern, value in list(draft.group.patterns.items()):
            if names is None:
                matched = matching(pattern, self._all_topic_names())
            else:
                existing = {topic.name for topic in found(self._soft.topics, names)}
                matched = frozenset(value.topics) - names | matching(pattern, existing)
            if matched != frozenset(value.topics):
                self._write_pattern(draft, pattern, matched, effects)

    def _write_pattern(self, draft: Draft, pattern: str, matched: frozenset[str], effects: GroupEffects) -> None:
        draft.write(
            ConsumerGroupRegularExpressionKey(draft.group.id, pattern),
            ConsumerGroupRegularExpressionValue(tuple(sorted(matched)), timestamp=effects.now.wall_ms),
        )

    def _drop_patterns(self, draft: Draft, patterns: Iterable[str | None]) -> None:
        """Forget patterns that nobody uses any more."""
        used = {member.metadata.subscribed_topic_regex for member in draft.group.members.values()}
        for pattern in sorted({each for each in patterns if each is not None} - used):
            draft.write(ConsumerGroupRegularExpressionKey(draft.group.id, pattern), None)

    def _all_topic_names(self) -> Iterable[str]:
        return (topic.name for topic in self._soft.topics.all_topics())

    # ---- another epoch, another target

    def update(self, draft: Draft, effects: GroupEffects, *, resubscribed: bool) -> None:
        """Take into account what a member has just said, and, the first time after a replay, what topics there are."""
        soft = self.sessions.soft(draft.group.id, effects)
        if not soft.is_current:
            self.match_anew(draft, None, effects)
        if resubscribed or not soft.is_current:
            self.renew(draft, effects, changed=resubscribed)
        else:
            self.assign(draft, effects)
        soft.is_current = True

    def renew(self, draft: Draft, effects: GroupEffects, *, changed: bool) -> None:
        """Begin another epoch if the group is new, has changed or its topics have; assign if it is time."""
        group = draft.group
        topics = digest(found(self._soft.topics, group.subscribed_topics()))
        if changed or topics != group.metadata_hash or group.epoch == JOINING:
            draft.write(ConsumerGroupMetadataKey(group.id), ConsumerGroupMetadataValue(group.epoch + 1, topics))
            soft = self.sessions.soft(group.id, effects)
            soft.changed = effects.now.instant
            soft.hurried.clear()
        if draft.group.members:
            self.assign(draft, effects)

    def assign(self, draft: Draft, effects: GroupEffects) -> None:
        """Make a target for the group's epoch, unless it has one or the last was made only just now."""
        group = draft.group
        if group.target_epoch >= group.epoch:
            return
        age_ms = effects.now.wall_ms - group.target_made_ms
        rest_ms = self.sessions.config(group.id).consumer_assignment_interval_ms - age_ms
        if age_ms >= 0 and rest_ms > 0:
            effects.set_timer(AssignmentDue(group.id), rest_ms)
            return
        self._soft.timers.cancel(AssignmentDue(group.id))
        assignor = preferred_assignor(group, self._settings.group_consumer_assignors[0])
        target = new_target(group, self._soft.topics, assignor)
        for member_id, partitions in target.items():
            if group.target.get(member_id) != partitions:
                draft.write(ConsumerGroupTargetAssignmentMemberKey(group.id, member_id), target_record(partitions))
        draft.write(
            ConsumerGroupTargetAssignmentMetadataKey(group.id),
            ConsumerGroupTargetAssignmentMetadataValue(group.epoch, effects.now.wall_ms),
        )

    def reconcile(
        self, draft: Draft, member_id: str, reported: Partitions | None, effects: GroupEffects, *, resubscribed: bool
    ) -> ConsumerMember:
        """Take a member a step further."""
        group = draft.group
        member = group.members[member_id]
        if member.has_reached(group.target_epoch) and not resubscribed:
            return member
        subscribed = frozenset(topic.id for topic in found(self._soft.topics, group.topics_of(member.metadata)))
        stepped = reconciled(
            member,
            target=group.target_of(member_id),
            target_epoch=group.target_epoch,
            subscribed=subscribed,
            reported=reported,
            owners=group.owners,
        )
        if stepped != member:
            self.place(draft, stepped, effects)
        return stepped

    def place(self, draft: Draft, member: ConsumerMember, effects: GroupEffects) -> None:
        """Write where a member stands; from now on it has so long to give up what it was asked to."""
        group_id = draft.group.id
        draft.write(ConsumerGroupCurrentMemberAssignmentKey(group_id, member.id), member.record())
        if member.state is ConsumerMemberState.UNREVOKED and not member.is_classic:
            patience = effects.in_ms(max(0, member.metadata.rebalance_timeout_ms))
            self._soft.timers.set(RevocationEnds(group_id, member.id), patience)
        else:
            self._soft.timers.cancel(RevocationEnds(group_id, member.id))


def left_for_a_while(member: ConsumerMember, epoch: int) -> ConsumerMember:
    """Return a static member that will come back: it keeps what it has, and may have read none of it yet."""
    kept = {topic: dict.fromkeys(epochs, 0) for topic, epochs in member.assigned.items()}
    return replace(member, epoch=epoch, state=ConsumerMemberState.STABLE, assigned=kept, revoking=NOTHING_OWNED)
