"""Committing, fetching, deleting and expiring offsets.

Who may commit is the group's protocol's to say; what is remembered is in `committed_offsets.py`. Here is what lies
between: the codes per partition, and when an offset is no longer needed.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from riverlog.groups.commands import (
    CodesReply,
    CommitOffsets,
    CommittedOffset,
    DeleteOffsets,
    FetchOffsets,
    FetchOffsetsReply,
    OffsetsOfTopic,
    OffsetToCommit,
    TopicsDeleted,
    TransactionEnded,
)
from riverlog.groups.effects import GoneForgotten, GroupEffects
from riverlog.groups.limits import (
    OFFSET_BYTES_FORGOTTEN_PER_TURN_MAX,
    OFFSETS_EXPIRED_PER_TURN_MAX,
    OFFSETS_FORGOTTEN_PER_TURN_MAX,
)
from riverlog.groups.membership import GroupsOfProtocol, Retention
from riverlog.groups.records import GroupRecord, OffsetCommitKey, OffsetCommitValue, TransactionMarker
from riverlog.groups.soft_state import GroupsSoftState
from riverlog.groups.state import GroupsState
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NO_EPOCH, NO_TOPIC_ID, LeaderEpoch, Offset, TopicId, TopicPartition
from riverlog.model.machine import Ticket
from riverlog.model.setting import LONG_MAX
from riverlog.model.settings import NodeSettings

_CHARACTER_BYTES_MAX: Final = 4


class GroupOffsets:
    """The offsets of all groups; all state is in what it was given."""

    def __init__(
        self,
        state: GroupsState,
        soft: GroupsSoftState,
        membership: Callable[[str], GroupsOfProtocol],
        settings: NodeSettings,
    ) -> None:
        self._state = state
        self._soft = soft
        self._offsets = state.offsets
        self._membership = membership
        self._settings = settings

    def commit(self, command: CommitOffsets, ticket: Ticket, effects: GroupEffects) -> None:
        """Remember offsets; in a transaction, for when it is committed."""
        group = self._membership(command.group_id)
        code = group.commit_refusal(command, effects)
        if command.producer is not None and not command.group_id:
            code = ErrorCode.INVALID_GROUP_ID
        if code is ErrorCode.NONE:
            codes = [self._commit(command, group, each, effects) for each in command.offsets]
        else:
            codes = [code] * len(command.offsets)
        effects.answer(ticket, CodesReply(codes=tuple(codes)))

    def _commit(
        self, command: CommitOffsets, group: GroupsOfProtocol, to_commit: OffsetToCommit, effects: GroupEffects
    ) -> ErrorCode:
        code = group.offset_refusal(command, to_commit)
        if code is not ErrorCode.NONE:
            return code
        metadata = to_commit.metadata or ""
        if len(metadata) > self._settings.offset_metadata_max_bytes:
            return ErrorCode.OFFSET_METADATA_TOO_LARGE
        now_ms = effects.now.wall_ms
        key = OffsetCommitKey(command.group_id, to_commit.topic, to_commit.partition)
        value = OffsetCommitValue(
            offset=to_commit.offset,
            leader_epoch=to_commit.leader_epoch,
            metadata=metadata,
            commit_timestamp=now_ms,
            topic_id=to_commit.topic_id,
        )
        if command.retention_ms >= 0:  # the version of a record that can say so knows neither epochs nor topic ids
            expires_ms = min(now_ms + command.retention_ms, LONG_MAX)
            value = replace(value, expire_timestamp=expires_ms, leader_epoch=NO_EPOCH, topic_id=NO_TOPIC_ID)
        if command.producer is None:
            effects.write(key, value)
        else:
            effects.facts.append(GroupRecord(key, value, command.producer.id, command.producer.epoch))
        return ErrorCode.NONE

    def end_transaction(self, command: TransactionEnded, ticket: Ticket, effects: GroupEffects) -> None:
        """Commit what a transaction has pending, or forget it."""
        producer = command.producer
        effects.facts.append(
            TransactionMarker(producer.id, producer.epoch, command.committed, command.coordinator_epoch)
        )
        effects.answer(ticket, None)

    def fetch(self, command: FetchOffsets, ticket: Ticket, effects: GroupEffects) -> None:
        """Return what was committed."""
        code = self._membership(command.group_id).fetch_refusal(command)
        if code is not ErrorCode.NONE:
            effects.answer(ticket, FetchOffsetsReply(code))
            return
        topics = command.topics
        if topics is None:
            topics = tuple(
                OffsetsOfTopic(topic, (partition,)) for topic, partition in sorted(self._offsets.of(command.group_id))
            )
        offsets = tuple(self._committed(command, topic, number) for topic in topics for number in topic.partitions)
        effects.answer(ticket, FetchOffsetsReply(offsets=offsets))

    def _committed(self, command: FetchOffsets, topic: OffsetsOfTopic, number: int) -> CommittedOffset:
        partition = TopicPartition(topic.topic, number)
        if command.require_stable and self._offsets.is_pending(command.group_id, partition):
            return CommittedOffset(*partition, code=ErrorCode.UNSTABLE_OFFSET_COMMIT)
        value = self._offsets.of(command.group_id).get(partition)
        if value is None or _is_of_another_topic(value, topic.topic_id):
            return CommittedOffset(*partition)
        return CommittedOffset(
            *partition,
            offset=Offset(value.offset),
            leader_epoch=LeaderEpoch(value.leader_epoch),
            metadata=value.metadata,
            topic_id=TopicId(value.topic_id),
        )

    def delete(self, command: DeleteOffsets, ticket: Ticket, effects: GroupEffects) -> None:
        """Forget offsets of partitions that the group does not read."""
        group = self._membership(command.group_id)
        code = group.delete_offsets_refusal(command.group_id)
        if code is not ErrorCode.NONE:
            effects.answer(ticket, CodesReply(code))
            return
        known = self._offsets.known(command.group_id)
        codes: list[ErrorCode] = []
        for partition in command.partitions:
            is_read = group.reads(command.group_id, partition.topic)
            codes.append(ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if is_read else ErrorCode.NONE)
            if partition in known and not is_read:
                known.remove(partition)
                _forget(command.group_id, partition, effects)
        effects.answer(ticket, CodesReply(codes=tuple(codes)))

    def delete_all(self, group_id: str, effects: GroupEffects) -> None:
        """Forget all that a group has committed."""
        for partition in sorted(self._offsets.known(group_id)):
            _forget(group_id, partition, effects)

    def topics_deleted(self, command: TopicsDeleted, ticket: Ticket, effects: GroupEffects) -> None:
        """Begin to forget what was committed for topics that are gone."""
        self._soft.gone_topics |= command.topics
        self._soft.groups_to_search = sorted(self._offsets.groups(), reverse=True)
        effects.answer(ticket, None)
        self.forget_gone(effects)

    def forget_gone(self, effects: GroupEffects) -> None:
        """Forget a part of what was committed for topics that are gone; the next turn goes on while there is more."""
        soft, looked_at = self._soft, 0
        while soft.groups_to_search:
            if looked_at >= OFFSETS_EXPIRED_PER_TURN_MAX or has_forgotten_enough(effects):
                effects.set_timer(GoneForgotten(), 1)
                return
            group_id = soft.groups_to_search[-1]
            looked_at += 1 + len(self._offsets.of(group_id))
            for partition in self._gone(group_id):
                if has_forgotten_enough(effects):
                    break  # the next turn goes on with this group
                _forget(group_id, partition, effects)
            else:
                soft.groups_to_search.pop()
        soft.gone_topics.clear()

    def _gone(self, group_id: str) -> Iterator[TopicPartition]:
        """Name a group's partitions of topics that are gone, unless the topic is back and has an offset again."""
        for partition in self._offsets.of_topics(group_id, self._soft.gone_topics):
            topic = self._soft.topics.topic(partition.topic)
            values = self._offsets.values(group_id, partition)
            if topic is None or all(value.topic_id != topic.id for value in values):
                yield partition

    def expire(self, group_id: str, effects: GroupEffects) -> bool:
        """Forget a group's offsets whose time is over, as many as one turn may; tell whether none is left."""
        group = self._membership(group_id)
        retention = group.retention(group_id)
        none_is_left = True
        for partition, value in self._offsets.of(group_id).items():
            is_needed = (
                retention is None
                or group.reads(group_id, partition.topic)
                or self._offsets.is_pending(group_id, partition)
                or not self._is_over(value, retention, effects.now.wall_ms)
            )
            if is_needed or has_forgotten_enough(effects):
                none_is_left = False
            else:
                _forget(group_id, partition, effects)
        return none_is_left and group_id not in self._offsets.pending

    def _is_over(self, value: OffsetCommitValue, retention: Retention, now_ms: int) -> bool:
        if value.expire_timestamp >= 0:
            return now_ms >= value.expire_timestamp
        since_ms = value.commit_timestamp if retention.since_ms is None else retention.since_ms
        return now_ms - since_ms >= self._settings.offsets_retention_minutes * 60_000


def _is_of_another_topic(value: OffsetCommitValue, topic_id: TopicId) -> bool:
    """A topic that was deleted and made anew has another id; what was committed for the old one says nothing."""
    return NO_TOPIC_ID not in (topic_id, value.topic_id) and topic_id != value.topic_id


def has_forgotten_enough(effects: GroupEffects) -> bool:
    """Return whether what is forgotten in a turn should stand in a batch now: names may be long, and it has to fit."""
    return (
        len(effects.facts) >= OFFSETS_FORGOTTEN_PER_TURN_MAX
        or effects.forgotten_bytes >= OFFSET_BYTES_FORGOTTEN_PER_TURN_MAX
    )


def _forget(group_id: str, partition: TopicPartition, effects: GroupEffects) -> None:
    effects.forgotten_bytes += len(group_id) if group_id.isascii() else _CHARACTER_BYTES_MAX * len(group_id)
    effects.write(OffsetCommitKey(group_id, partition.topic, partition.partition), None)
