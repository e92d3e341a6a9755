"""The table of a node's log directories and partitions: which are open, and in which directory each one lies.

It looks things up and does no work. Those who open, place and remove partitions write to it, on the node's loop.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from riverlog.log.directory import LogDirectory
from riverlog.model.ids import Offset, TopicPartition
from riverlog.partitions.directory_health import DirectoryHealth
from riverlog.partitions.flusher import Flusher
from riverlog.partitions.partition import Partition
from riverlog.partitions.recovery import Recovery


@dataclass(frozen=True, slots=True, eq=False)
class NodeDirectory:
    """A log directory of this node with its health, and with what flushes and what recovers its logs."""

    logs: LogDirectory
    health: DirectoryHealth
    flusher: Flusher
    recovery: Recovery


class PartitionRegistry:
    """The partitions of a node by name."""

    def __init__(self) -> None:
        self.directories: list[NodeDirectory] = []
        """Those that could be opened, the first of them with the metadata."""
        self.unusable: list[DirectoryHealth] = []
        """The health of those that could not."""
        self.opened: dict[tuple[str, int], Partition] = {}
        self.directory_of: dict[TopicPartition, NodeDirectory] = {}
        """Where every partition lies that has a folder."""
        self.is_complete = False
        """All folders were found: the line above holds."""
        self.leaving: set[TopicPartition] = set()
        """Partitions that were deleted, and whose folders are still there."""
        self.stopping = False

    def list_opened(self) -> list[Partition]:
        """List the partitions that are open; others may open while the list is gone through."""
        return list(self.opened.values())

    @property
    def has_unopened(self) -> bool:
        """Return whether some partitions have a folder but are not open."""
        return len(self.opened) < len(self.directory_of)

    def unopened(self) -> Iterator[TopicPartition]:
        """Name the partitions that have a folder but are not open."""
        return (name for name in tuple(self.directory_of) if name not in self.opened)

    def opened_in(self, directory: NodeDirectory) -> Iterator[Partition]:
        """Find the open partitions of a directory."""
        return (each for each in self.opened.values() if self.directory_of.get(each.name) is directory)

    def high_watermarks(self, directory: NodeDirectory) -> dict[TopicPartition, Offset]:
        """Return how far the open partitions of a directory are committed."""
        return {partition.name: partition.high_watermark for partition in self.opened_in(directory)}

    def health(self) -> list[DirectoryHealth]:
        """Return the health of every directory, also of those that could not be opened."""
        return [*(directory.health for directory in self.directories), *self.unusable]
