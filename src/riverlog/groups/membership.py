"""What offsets and administration need to know about a group, whichever protocol its members speak."""

from dataclasses import dataclass
from typing import Protocol

from riverlog.groups.commands import CommitOffsets, FetchOffsets, ListedGroup, OffsetToCommit
from riverlog.groups.effects import GroupEffects
from riverlog.model.errors import ErrorCode


@dataclass(frozen=True, slots=True)
class Retention:
    """From when on the time runs after which a group's offsets expire: a moment for all, else each one's commit."""

    since_ms: int | None = None


class GroupsOfProtocol(Protocol):
    """The groups of one protocol, by their ids."""

    def commit_refusal(self, command: CommitOffsets, effects: GroupEffects) -> ErrorCode:
        """Return whether the sender may commit offsets; a member that may is alive."""
        ...

    def offset_refusal(self, command: CommitOffsets, offset: OffsetToCommit) -> ErrorCode:
        """Return whether a sender that may commit may commit this offset."""
        ...

    def fetch_refusal(self, command: FetchOffsets) -> ErrorCode:
        """Return whether the sender may see offsets."""
        ...

    def reads(self, group_id: str, topic: str) -> bool:
        """Return whether the group has members that read the topic, or might."""
        ...

    def retention(self, group_id: str) -> Retention | None:
        """Return from when on offsets of topics that nobody reads expire; None if they do not."""
        ...

    def delete_offsets_refusal(self, group_id: str) -> ErrorCode:
        """Return whether offsets may be deleted at all."""
        ...

    def is_empty(self, group_id: str) -> bool:
        """Return whether the group has no members."""
        ...

    def member_count(self, group_id: str) -> int:
        """Count the group's members."""
        ...

    def forget(self, group_id: str, effects: GroupEffects) -> None:
        """Write that an empty group is no more."""
        ...

    def listed(self, group_id: str) -> ListedGroup:
        """Describe the group at a glance."""
        ...
