"""Classic groups as offsets and administration see them; among them groups that only ever committed offsets."""

from riverlog.groups.classic.consumer_metadata import CONSUMER_PROTOCOL_TYPE
from riverlog.groups.classic.group import ClassicGroup, ClassicPhase
from riverlog.groups.classic.groups import ClassicGroups
from riverlog.groups.commands import (
    NO_MEMBER,
    CommitOffsets,
    DescribedGroup,
    DescribedMember,
    FetchOffsets,
    GroupType,
    ListedGroup,
    OffsetToCommit,
)
from riverlog.groups.effects import GroupEffects
from riverlog.groups.membership import Retention
from riverlog.groups.records import GroupMetadataKey
from riverlog.groups.state import GroupsState
from riverlog.model.errors import ErrorCode


class ClassicMembership:
    """The classic groups by their ids."""

    def __init__(self, state: GroupsState, groups: ClassicGroups) -> None:
        self._state = state
        self._groups = groups

    def commit_refusal(self, command: CommitOffsets, effects: GroupEffects) -> ErrorCode:
        """Return whether a member, a simple consumer or a tool may commit; a member that may is alive."""
        group = self._groups.find(command.group_id)
        in_transaction = command.producer is not None
        named = command.generation_id >= 0 or command.member_id != NO_MEMBER or command.group_instance_id is not None
        if group is None:
            if command.generation_id < 0:
                return ErrorCode.NONE
            if self._state.offsets.has_group(command.group_id):
                return ErrorCode.UNKNOWN_MEMBER_ID
            knows = command.knows_missing_groups and not in_transaction
            return ErrorCode.GROUP_ID_NOT_FOUND if knows else ErrorCode.ILLEGAL_GENERATION
        if command.generation_id < 0 and group.phase is ClassicPhase.EMPTY:
            return ErrorCode.NONE
        if not named:
            may_commit = in_transaction and not command.needs_empty_group
            return ErrorCode.NONE if may_commit else ErrorCode.UNKNOWN_MEMBER_ID
        code = group.generation_refusal(command.member_id, command.group_instance_id, command.generation_id)
        if code is not ErrorCode.NONE or in_transaction:
            return code
        if group.phase is ClassicPhase.COMPLETING:  # the member knows the generation, but not what it was assigned
            return ErrorCode.REBALANCE_IN_PROGRESS
        group.restart_session(group.members[command.member_id], effects)
        return ErrorCode.NONE

    def offset_refusal(self, command: CommitOffsets, offset: OffsetToCommit) -> ErrorCode:
        """A member's generation holds for all that it reads."""
        return ErrorCode.NONE

    def fetch_refusal(self, command: FetchOffsets) -> ErrorCode:
        """Anybody may see what a classic group has committed."""
        return ErrorCode.NONE

    def delete_offsets_refusal(self, group_id: str) -> ErrorCode:
        """Return whether offsets may be deleted; of members that are not consumers it is not known what they read."""
        group = self._groups.find(group_id)
        if not group_id:
            return ErrorCode.INVALID_GROUP_ID
        if group is None:
            return ErrorCode.NONE if self._state.offsets.has_group(group_id) else ErrorCode.GROUP_ID_NOT_FOUND
        is_opaque = group.phase is not ClassicPhase.EMPTY and group.protocol_type != CONSUMER_PROTOCOL_TYPE
        return ErrorCode.NON_EMPTY_GROUP if is_opaque else ErrorCode.NONE

    def reads(self, group_id: str, topic: str) -> bool:
        """Return whether a member subscribes to the topic, or might."""
        group = self._groups.find(group_id)
        return group is not None and group.phase is not ClassicPhase.EMPTY and group.reads(topic)

    def retention(self, group_id: str) -> Retention | None:
        """Return from when on offsets expire: in a group without members, from when it lost them."""
        group = self._groups.find(group_id)
        if group is None or group.protocol_type is None:
            return Retention()
        if group.phase is ClassicPhase.EMPTY:
            return Retention(None if group.since_ms < 0 else group.since_ms)
        is_known_what_it_reads = group.phase is ClassicPhase.STABLE and group.subscribed is not None
        return Retention() if is_known_what_it_reads else None

    def is_empty(self, group_id: str) -> bool:
        """Return whether the group has no members."""
        group = self._groups.find(group_id)
        return group is None or group.phase is ClassicPhase.EMPTY

    def member_count(self, group_id: str) -> int:
        """Count the group's members."""
        group = self._groups.find(group_id)
        return 0 if group is None else len(group.members)

    def forget(self, group_id: str, effects: GroupEffects) -> None:
        """Write that an empty group is no more."""
        self._groups.dissolve(group_id, effects)
        if group_id in self._state.classic:
            effects.write(GroupMetadataKey(group_id), None)

    def listed(self, group_id: str) -> ListedGroup:
        """Describe the group at a glance; one that only has offsets is Empty and of no protocol type."""
        group = self._groups.find(group_id) or ClassicGroup(group_id)
        return ListedGroup(group_id, group.protocol_type or "", group.phase, GroupType.CLASSIC)

    def described(self, group_id: str) -> DescribedGroup:
        """Describe the group and its members; what they say about themselves holds while the group is stable."""
        group = self._groups.find(group_id)
        if group is None and group_id not in self._state.consumers and self._state.offsets.has_group(group_id):
            group = ClassicGroup(group_id)
        if group is None:
            return missing_group(group_id)
        protocol_name = group.protocol_name if group.phase is ClassicPhase.STABLE else None
        return DescribedGroup(
            group_id,
            group.phase,
            group.protocol_type or "",
            protocol_name or "",
            tuple(
                DescribedMember(each.id, each.instance_id, each.client, each.metadata(protocol_name), each.assignment)
                for each in group.members.values()
            ),
        )


def missing_group(group_id: str) -> DescribedGroup:
    """Describe a group that does not exist, or is no classic one."""
    return DescribedGroup(
        group_id,
        ClassicPhase.DEAD,
        code=ErrorCode.GROUP_ID_NOT_FOUND,
        message=f"There is no classic group {group_id!r}.",
    )
