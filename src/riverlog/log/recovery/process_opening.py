"""Opening a log in another process: what it needs to know goes there, the log itself comes back.

Only reading and checking what a crash left is long, so only a crash makes this worth while. What comes back is the log
as if it had been opened here, without its files: those are opened when they are needed.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from riverlog.log.log import Log
from riverlog.log.recovery.recovery import list_folder
from riverlog.log.segments.log_folder import LOG_SUFFIX, TIME_INDEX_SUFFIX, file_bytes, path_of
from riverlog.log.segments.open_files import OpenFiles
from riverlog.model.ids import Offset, TopicPartition
from riverlog.model.ports import Disk
from riverlog.model.settings import TopicConfig

_READ_FIRST: Final = (LOG_SUFFIX, TIME_INDEX_SUFFIX)


@dataclass(frozen=True, slots=True)
class LogOpening:
    """What is needed to open a partition's log."""

    partition: TopicPartition
    folder: str
    config: TopicConfig
    recovery_point: Offset
    clean: bool
    now_ms: int
    log_start_offset: Offset
    high_watermark: Offset
    folder_is_durable: bool
    compacted: bool

    def open(self, disk: Disk, files: OpenFiles | None = None) -> Log:
        """Open the log, recovering it after a crash."""
        return Log.open(
            disk,
            self.folder,
            self.config,
            recovery_point=self.recovery_point,
            clean=self.clean,
            now_ms=self.now_ms,
            log_start_offset=self.log_start_offset,
            high_watermark=self.high_watermark,
            files=files,
            folder_is_durable=self.folder_is_durable,
            compacted=self.compacted,
        )

    def unread_bytes(self, disk: Disk) -> int:
        """Count the bytes that opening may have to read and check; none after a clean shutdown."""
        if self.clean or not disk.exists(self.folder):
            return 0
        bases = list_folder(disk, self.folder).segments
        above = bases[max(0, bisect_right(bases, self.recovery_point) - 1) :]
        return sum(file_bytes(disk, path_of(self.folder, base, LOG_SUFFIX)) for base in above)

    def is_cached(self, disk: Disk) -> bool:
        """Return whether what opening reads after a clean shutdown is in memory."""
        bases = list_folder(disk, self.folder).segments if disk.exists(self.folder) else ()
        return all(_ends_cached(disk, path_of(self.folder, bases[-1], suffix)) for suffix in _READ_FIRST if bases)


def open_logs(disk: Disk, openings: Iterable[LogOpening]) -> Iterator[tuple[TopicPartition, Log | OSError]]:
    """Open logs one after another, fit to be sent home; one that the disk refuses does not keep the others."""
    for opening in openings:
        try:
            log = opening.open(disk)
            log.segments.release_files()
        except OSError as error:
            yield opening.partition, error
        else:
            yield opening.partition, log


def _ends_cached(disk: Disk, path: str) -> bool:
    try:
        file = disk.open(path)
    except FileNotFoundError:
        return True
    try:
        return file.is_cached(max(0, file.size() - 1), 1)
    finally:
        file.close()
