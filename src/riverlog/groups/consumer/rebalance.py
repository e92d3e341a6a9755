"""How a consumer group gets from one assignment to the next: the steps, each of which adds to a draft of the group.

    subscribe or remove ... renew: another epoch ... assign: a target for it ... reconcile: one member after another

Nobody waits for anybody in these steps; members learn what has come of them at their next heartbeat.
"""

from collections.abc import Iterable
from dataclasses import replace

from riverlog.groups.classic.live import Live
from riverlog.groups.consumer.assignors.subscriber import Partitions
from riverlog.groups.consumer.draft import Draft
from riverlog.groups.consumer.group import (
    JOINING,
    NOTHING_OWNED,
    Member,
    MemberState,
    target_record,
)
from riverlog.groups.consumer.live import AssignmentDue, RevocationEnds
from riverlog.groups.consumer.reconciliation import reconciled
from riverlog.groups.consumer.sessions import ConsumerSessions
from riverlog.groups.consumer.subscriptions import matching
from riverlog.groups.consumer.target import new_target, preferred_assignor
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
from riverlog.groups.topics import digest, found
from riverlog.groups.turn import Turn
from riverlog.model.settings import NodeSettings


class ConsumerRebalance:
    """The steps, for any consumer group; all state is in what it was given."""

    def __init__(self, live: Live, settings: NodeSettings) -> None:
        self._live = live
        self._settings = settings
        self.sessions = ConsumerSessions(live, settings)

    # ---- members come, change and go

    def subscribe(self, draft: Draft, member_id: str, metadata: ConsumerGroupMemberMetadataValue, turn: Turn) -> bool:
        """Write what a member says of itself; tell whether it subscribes to anything else than before."""
        old = draft.group.members.get(member_id, Member(member_id)).metadata
        if member_id not in draft.group.members or metadata != old:
            draft.write(ConsumerGroupMemberMetadataKey(draft.group.id, member_id), metadata)
        pattern = metadata.subscribed_topic_regex
        if pattern is not None and pattern not in draft.group.patterns:
            self._write_pattern(draft, pattern, matching(pattern, self._all_topic_names()), turn)
        if old.subscribed_topic_regex != pattern:
            self._drop_patterns(draft, (old.subscribed_topic_regex,))
        return (old.subscribed_topic_names, old.subscribed_topic_regex) != (metadata.subscribed_topic_names, pattern)

    def replace_static(self, draft: Draft, old: Member, new_id: str) -> Member:
        """Let a static member come back under another id; it keeps what it has and what it is to have."""
        group_id, target = draft.group.id, draft.group.target_of(old.id)
        self._remove(draft, old.id)
        member = replace(old, id=new_id, epoch=JOINING, previous_epoch=JOINING)
        draft.write(ConsumerGroupMemberMetadataKey(group_id, new_id), member.metadata)
        draft.write(ConsumerGroupTargetAssignmentMemberKey(group_id, new_id), target_record(target))
        draft.write(ConsumerGroupCurrentMemberAssignmentKey(group_id, new_id), member.record())
        return member

    def remove(self, draft: Draft, member_ids: Iterable[str], turn: Turn) -> None:
        """Take members out and begin another epoch without them; their partitions are free at once."""
        members = [draft.group.members[member_id] for member_id in member_ids]
        for member in members:
            self._remove(draft, member.id)
        self._drop_patterns(draft, {member.metadata.subscribed_topic_regex for member in members})
        self.renew(draft, turn, changed=True)

    def _remove(self, draft: Draft, member_id: str) -> None:
        group_id = draft.group.id
        draft.write(ConsumerGroupCurrentMemberAssignmentKey(group_id, member_id), None)
        draft.write(ConsumerGroupTargetAssignmentMemberKey(group_id, member_id), None)
        draft.write(ConsumerGroupMemberMetadataKey(group_id, member_id), None)
        self.sessions.forget(group_id, member_id)

    # ---- patterns

    def match_anew(self, draft: Draft, names: frozenset[str] | None, turn: Turn) -> None:
        """Match the group's patterns with topics that have changed, or with all."""
        for pattern, value in list(draft.group.patterns.items()):
            if names is None:
                matched = matching(pattern, self._all_topic_names())
            else:
                existing = {topic.name for topic in found(self._live.topics, names)}
                matched = frozenset(value.topics) - names | matching(pattern, existing)
            if matched != frozenset(value.topics):
                self._write_pattern(draft, pattern, matched, turn)

    def _write_pattern(self, draft: Draft, pattern: str, matched: frozenset[str], turn: Turn) -> None:
        draft.write(
            ConsumerGroupRegularExpressionKey(draft.group.id, pattern),
            ConsumerGroupRegularExpressionValue(tuple(sorted(matched)), timestamp=turn.now.wall_ms),
        )

    def _drop_patterns(self, draft: Draft, patterns: Iterable[str | None]) -> None:
        """Forget patterns that nobody uses any more."""
        used = {member.metadata.subscribed_topic_regex for member in draft.group.members.values()}
        for pattern in sorted({each for each in patterns if each is not None} - used):
            draft.write(ConsumerGroupRegularExpressionKey(draft.group.id, pattern), None)

    def _all_topic_names(self) -> Iterable[str]:
        return (topic.name for topic in self._live.topics.all_topics())

    # ---- another epoch, another target

    def update(self, draft: Draft, turn: Turn, *, resubscribed: bool) -> None:
        """Take into account what a member has just said, and, the first time after a replay, what topics there are."""
        live = self.sessions.live(draft.group.id, turn)
        if not live.is_current:
            self.match_anew(draft, None, turn)
        if resubscribed or not live.is_current:
            self.renew(draft, turn, changed=resubscribed)
        else:
            self.assign(draft, turn)
        live.is_current = True

    def renew(self, draft: Draft, turn: Turn, *, changed: bool) -> None:
        """Begin another epoch if the group is new, has changed or its topics have; assign if it is time."""
        group = draft.group
        topics = digest(found(self._live.topics, group.subscribed_topics()))
        if changed or topics != group.metadata_hash or group.epoch == JOINING:
            draft.write(ConsumerGroupMetadataKey(group.id), ConsumerGroupMetadataValue(group.epoch + 1, topics))
            live = self.sessions.live(group.id, turn)
            live.changed = turn.now.instant
            live.hurried.clear()
        if draft.group.members:
            self.assign(draft, turn)

    def assign(self, draft: Draft, turn: Turn) -> None:
        """Make a target for the group's epoch, unless it has one or the last was made only just now."""
        group = draft.group
        if group.target_epoch >= group.epoch:
            return
        age_ms = turn.now.wall_ms - group.target_made_ms
        rest_ms = self.sessions.config(group.id).consumer_assignment_interval_ms - age_ms
        if age_ms >= 0 and rest_ms > 0:
            self._live.timers.set(AssignmentDue(group.id), turn.in_ms(rest_ms))
            return
        self._live.timers.cancel(AssignmentDue(group.id))
        assignor = preferred_assignor(group, self._settings.group_consumer_assignors[0])
        target = new_target(group, self._live.topics, assignor)
        for member_id, partitions in target.items():
            if group.target.get(member_id) != partitions:
                draft.write(ConsumerGroupTargetAssignmentMemberKey(group.id, member_id), target_record(partitions))
        draft.write(
            ConsumerGroupTargetAssignmentMetadataKey(group.id),
            ConsumerGroupTargetAssignmentMetadataValue(group.epoch, turn.now.wall_ms),
        )

    def reconcile(
        self, draft: Draft, member_id: str, reported: Partitions | None, turn: Turn, *, resubscribed: bool
    ) -> Member:
        """Let a member take its next step."""
        group = draft.group
        member = group.members[member_id]
        if member.has_reached(group.target_epoch) and not resubscribed:
            return member
        subscribed = frozenset(topic.id for topic in found(self._live.topics, group.topics_of(member.metadata)))
        stepped = reconciled(
            member,
            target=group.target_of(member_id),
            target_epoch=group.target_epoch,
            subscribed=subscribed,
            reported=reported,
            owners=group.owners,
        )
        if stepped != member:
            self.place(draft, stepped, turn)
        return stepped

    def place(self, draft: Draft, member: Member, turn: Turn) -> None:
        """Write where a member stands; from now on it has so long to give up what it was asked to."""
        group_id = draft.group.id
        draft.write(ConsumerGroupCurrentMemberAssignmentKey(group_id, member.id), member.record())
        if member.state is MemberState.UNREVOKED and not member.is_classic:
            patience = turn.in_ms(max(0, member.metadata.rebalance_timeout_ms))
            self._live.timers.set(RevocationEnds(group_id, member.id), patience)
        else:
            self._live.timers.cancel(RevocationEnds(group_id, member.id))


def left_for_a_while(member: Member, epoch: int) -> Member:
    """Give a static member that will come back: it keeps what it has, and may have read none of it yet."""
    kept = {topic: dict.fromkeys(epochs, 0) for topic, epochs in member.assigned.items()}
    return replace(member, epoch=epoch, state=MemberState.STABLE, assigned=kept, revoking=NOTHING_OWNED)
