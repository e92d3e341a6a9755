"""Consumer groups as offsets and administration see them."""

from riverlog.groups.classic.consumer_metadata import CONSUMER_PROTOCOL_TYPE
from riverlog.groups.commands import (
    NO_MEMBER,
    CommitOffsets,
    DescribedConsumer,
    DescribedConsumerGroup,
    FetchOffsets,
    GroupType,
    ListedGroup,
    MemberClient,
    OffsetToCommit,
)
from riverlog.groups.consumer.assignors.subscriber import Partitions
from riverlog.groups.consumer.group import ConsumerGroup, ConsumerMember
from riverlog.groups.consumer.sessions import ConsumerSessions
from riverlog.groups.consumer.target import preferred_assignor
from riverlog.groups.effects import GroupEffects
from riverlog.groups.membership import Retention
from riverlog.groups.soft_state import GroupsSoftState
from riverlog.groups.state import GroupsState
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NO_TOPIC_ID
from riverlog.model.settings import NodeSettings


class ConsumerMembership:
    """The consumer groups by their ids."""

    def __init__(self, state: GroupsState, soft: GroupsSoftState, settings: NodeSettings) -> None:
        self._state = state
        self._soft = soft
        self._settings = settings
        self._sessions = ConsumerSessions(soft, settings)

    def commit_refusal(self, command: CommitOffsets, effects: GroupEffects) -> ErrorCode:
        """Return whether a member may commit; without members, a tool may."""
        group = self._state.consumers[command.group_id]
        in_transaction = command.producer is not None
        named = command.generation_id >= 0 or command.member_id != NO_MEMBER or command.group_instance_id is not None
        is_anybodys = in_transaction and not named and not command.needs_empty_group
        if (command.generation_id < 0 and not group.members) or is_anybodys:
            return ErrorCode.NONE
        member = group.members.get(command.member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if not (in_transaction or member.is_classic or command.knows_missing_groups):
            return ErrorCode.UNSUPPORTED_VERSION  # the older versions cannot say that an epoch is stale
        return _stale(member) if command.generation_id > member.epoch else ErrorCode.NONE

    def offset_refusal(self, command: CommitOffsets, offset: OffsetToCommit) -> ErrorCode:
        """Return whether a member may commit this offset: one that is behind may, for what it has had since then."""
        member = self._state.consumers[command.group_id].members.get(command.member_id)
        if member is None or command.generation_id == member.epoch:
            return ErrorCode.NONE
        topic = self._soft.topics.topic(offset.topic)
        topic_id = topic.id if offset.topic_id == NO_TOPIC_ID and topic is not None else offset.topic_id
        since = member.owns_since(topic_id, offset.partition)
        return _stale(member) if since is None or command.generation_id < since else ErrorCode.NONE

    def fetch_refusal(self, command: FetchOffsets) -> ErrorCode:
        """Return whether the sender is the member that it says to be, if it says so."""
        if command.member_id is None and command.member_epoch < 0:
            return ErrorCode.NONE
        member = self._state.consumers[command.group_id].members.get(command.member_id or NO_MEMBER)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE if command.member_epoch == member.epoch else _stale(member)

    def delete_offsets_refusal(self, group_id: str) -> ErrorCode:
        """What members read is known topic by topic, so nothing is refused for the whole."""
        return ErrorCode.NONE

    def reads(self, group_id: str, topic: str) -> bool:
        """Return whether a member subscribes to the topic."""
        return self._state.consumers[group_id].reads(topic)

    def retention(self, group_id: str) -> Retention | None:
        """Offsets that nobody needs expire from when they were committed."""
        return Retention()

    def is_empty(self, group_id: str) -> bool:
        """Return whether the group has no members."""
        return not self._state.consumers[group_id].members

    def member_count(self, group_id: str) -> int:
        """Count the group's members."""
        return len(self._state.consumers[group_id].members)

    def forget(self, group_id: str, effects: GroupEffects) -> None:
        """Write that an empty group is no more."""
        group = self._state.consumers[group_id]
        for key in group.tombstones():
            effects.write(key, None)
        self._sessions.dissolve(group)

    def listed(self, group_id: str) -> ListedGroup:
        """Describe the group at a glance."""
        return ListedGroup(group_id, CONSUMER_PROTOCOL_TYPE, self._state.consumers[group_id].phase, GroupType.CONSUMER)

    def described(self, group_id: str) -> DescribedConsumerGroup:
        """Describe the group and its members."""
        if not group_id:
            message = "The id of a group must not be empty."
            return DescribedConsumerGroup(group_id, code=ErrorCode.INVALID_GROUP_ID, message=message)
        group = self._state.consumers.get(group_id)
        if group is None:
            return DescribedConsumerGroup(
                group_id,
                code=ErrorCode.GROUP_ID_NOT_FOUND,
                message=f"There is no consumer group {group_id!r}.",
            )
        return DescribedConsumerGroup(
            group_id,
            group.phase,
            group.epoch,
            group.target_epoch,
            preferred_assignor(group, self._settings.group_consumer_assignors[0]),
            tuple(self._described(group, member) for member in group.members.values()),
        )

    def _described(self, group: ConsumerGroup, member: ConsumerMember) -> DescribedConsumer:
        metadata = member.metadata
        has = {
            topic: frozenset((*member.assigned.get(topic, ()), *member.revoking.get(topic, ())))
            for topic in member.assigned.keys() | member.revoking.keys()
        }
        return DescribedConsumer(
            member.id,
            metadata.instance_id,
            metadata.rack_id,
            member.epoch,
            MemberClient(metadata.client_id, metadata.client_host),
            metadata.subscribed_topic_names,
            metadata.subscribed_topic_regex,
            self._that_exist(has),
            self._that_exist(group.target_of(member.id)),
            member.is_classic,
        )

    def _that_exist(self, partitions: Partitions) -> Partitions:
        topics = self._soft.topics
        return {topic: partitions[topic] for topic in sorted(partitions) if topics.topic_by_id(topic) is not None}


def _stale(member: ConsumerMember) -> ErrorCode:
    return ErrorCode.ILLEGAL_GENERATION if member.is_classic else ErrorCode.STALE_MEMBER_EPOCH
