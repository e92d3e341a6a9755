"""The folder of one partition's log, and what all segments in it share."""

from dataclasses import dataclass, field
from typing import Final

from riverlog.log.segments.open_files import OpenFiles
from riverlog.log.segments.quarantine import Quarantine
from riverlog.model.ids import Offset
from riverlog.model.ports import Disk

LOG_SUFFIX: Final = ".log"
INDEX_SUFFIX: Final = ".index"
TIME_INDEX_SUFFIX: Final = ".timeindex"
SNAPSHOT_SUFFIX: Final = ".snapshot"
DELETED_SUFFIX: Final = ".deleted"
CLEANED_SUFFIX: Final = ".cleaned"
SWAP_SUFFIX: Final = ".swap"


@dataclass(frozen=True, slots=True)
class LogFolder:
    """Where the segments of a log lie, and how they are read and written."""

    disk: Disk
    files: OpenFiles
    """The open files among which theirs are."""
    path: str
    index_interval_bytes: int
    """The bytes between two index entries."""
    quarantine: Quarantine = field(default_factory=Quarantine)
    """The damage that is known in this log."""


def path_of(folder: str, offset: Offset, suffix: str) -> str:
    """Name a segment's file as Kafka does: 20 digits and a suffix."""
    return f"{folder}/{offset:020d}{suffix}"


def file_bytes(disk: Disk, path: str) -> int:
    """Return the size of a file that nobody holds open."""
    file = disk.open(path)
    try:
        return file.size()
    finally:
        file.close()
