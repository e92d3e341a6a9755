"""Open files, bounded: a segment's file is opened on first use and let go when too many are open.

A `HeldFile` closes itself when nobody refers to it any more. So a range that a sender is still sending stays
valid after its segment was let go, rolled away or deleted, and nobody has to count.
"""

import errno
from typing import Final, Protocol

from riverlog.log.limits import OPEN_SEGMENT_FILES_MAX
from riverlog.model.descriptors import DescriptorShares
from riverlog.model.ports import Disk, File, FileRange

_CANDIDATES_MAX: Final = 64
"""How many open files are looked at to find one to let go; where all are in use, one more stays open."""


class NotCached(Exception):
    """These bytes are not in memory: who may not wait for the disk has them read beside the loop first."""

    def __init__(self, file: "HeldFile", position: int, count: int) -> None:
        super().__init__(f"{file.path} is not in memory at position {position}")
        self.missing = FileRange(file, position, count)


class HeldFile:
    """A File that lives as long as somebody refers to it: its segment, a plan to sync, a range being sent."""

    __slots__ = ("_among", "_file", "path", "read_cached", "used", "write")

    def __init__(self, file: File, among: "OpenFiles | None" = None) -> None:
        """Hold a file, and be counted among others."""
        self._file = file
        self._among = among
        if among is not None:
            among.alive.add(id(self))
        self.path = file.path
        self.read_cached = file.read_cached
        self.write = file.write
        self.used = True
        """Somebody used it since it was last looked at as one to let go."""

    def size(self) -> int:
        return self._file.size()

    def read(self, position: int, count: int) -> bytes:
        """Read as any File; NotCached where that would have to wait for the disk and may not."""
        if self._among is None or not self._among.cached_only:
            return self._file.read(position, count)
        content = self.read_cached(position, count)
        if content is None:
            raise NotCached(self, position, count)
        return content

    def is_cached(self, position: int, count: int) -> bool:
        return self._file.is_cached(position, count)

    def truncate(self, size: int) -> None:
        self._file.truncate(size)

    def sync(self) -> None:
        self._file.sync()

    def forget(self, position: int, count: int) -> None:
        self._file.forget(position, count)

    def fileno(self) -> int:
        return self._file.fileno()

    def close(self) -> None:
        """Do nothing: others may hold it too, and it closes with its last holder."""

    def __del__(self) -> None:
        self._file.close()
        if self._among is not None:
            self._among.alive.discard(id(self))


def read_file(disk: Disk, path: str, files: "OpenFiles") -> bytes | None:
    """Read a file whole, as one of these; None where there is none."""
    try:
        file = files.hold(disk.open(path))
    except FileNotFoundError:
        return None
    return file.read(0, file.size())


def write_file(disk: Disk, path: str, content: bytes, files: "OpenFiles | None" = None) -> HeldFile:
    """Write a file whole, in place; it is durable when it and its folder were synced."""
    opened = disk.open(path, create=True)
    file = HeldFile(opened) if files is None else files.hold(opened)
    file.truncate(len(content))
    file.write(0, (content,))
    return file


class FileHolder(Protocol):
    """Whatever keeps a file open and can open it again."""

    @property
    def held(self) -> HeldFile | None: ...

    unsynced: bool
    """Whether bytes were written that no sync has covered."""

    def release(self) -> None:
        """Drop the file and whatever can be read from it again, and unregister from the open files."""


class OpenFiles:
    """All open segment files of a node: the one that was not used lately is let go first.

    A file with unsynced bytes stays open: a system reports a failed write-back only to descriptors that were open when
    it failed, and a sync that misses the report would promise what was lost. Only where the descriptors of the process
    come to an end are such files synced at once, and then let go.
    """

    def __init__(self, files_max: int = OPEN_SEGMENT_FILES_MAX, *, descriptors_max: int | None = None) -> None:
        self._descriptors_max = DescriptorShares.of().segment_files if descriptors_max is None else descriptors_max
        self._files_max = min(files_max, self._descriptors_max)
        self.alive: set[int] = set()
        """The ids of all held files: with those of plans, and of ranges being sent."""
        self.cached_only = False
        """Whether reading what is not in memory is refused: set by those who may not wait, for as long as they read."""
        self._holders: dict[FileHolder, None] = {}  # in the order in which they were opened or last looked at

    @property
    def count(self) -> int:
        """Count the files that are open."""
        return len(self._holders)

    @property
    def crowded(self) -> bool:
        """Return whether as many descriptors are in use as may be: then nothing may keep one for long."""
        return len(self.alive) >= self._descriptors_max

    def hold(self, file: File) -> HeldFile:
        """Hold a file that was just opened, and count it while anybody does."""
        return HeldFile(file, self)

    def until_synced(self, files: list[HeldFile]) -> list[HeldFile]:
        """List those of these written files that stay open until the next sync; sync them here if none may."""
        if not self.crowded:
            return files
        for file in files:
            _sync_at_once(file)
        return []

    def opened(self, holder: FileHolder) -> None:
        """Note a file that was just opened, and close another one if they are too many."""
        self._holders[holder] = None
        self._close_old()
        if self.crowded:
            self._make_room(holder)

    def _close_old(self) -> None:
        """Close files that can be done without, from the one that was not used for longest."""
        for _ in range(min(len(self._holders) - 1, _CANDIDATES_MAX)):
            if len(self._holders) <= self._files_max:
                return
            candidate = next(iter(self._holders))
            held = candidate.held
            assert held is not None
            if held.used or candidate.unsynced:
                held.used = False
                self._holders[candidate] = self._holders.pop(candidate)
            else:
                candidate.release()

    def _make_room(self, holder: FileHolder) -> None:
        """Sync the files of others and let them go, until there are descriptors again."""
        for candidate in [each for each in self._holders if each is not holder][:_CANDIDATES_MAX]:
            if not self.crowded:
                return
            if candidate.unsynced:
                assert candidate.held is not None
                _sync_at_once(candidate.held)
                candidate.unsynced = False
            candidate.release()

    def closed(self, holder: FileHolder) -> None:
        """Forget a file that is not held any more, and who held it: it may have been deleted."""
        self._holders.pop(holder, None)


def _sync_at_once(file: HeldFile) -> None:
    """Sync a file on behalf of another one, to which it must not look as if it were its own lack of room."""
    try:
        file.sync()
    except OSError as error:
        raise OSError(errno.EIO, f"{file.path} could not be synced ({error})") from error
