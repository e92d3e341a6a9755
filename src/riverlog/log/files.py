"""Open files, bounded: a segment's file is opened on first use and let go when too many are open.

A `HeldFile` closes itself when nobody refers to it any more. So a range that a sender is still sending stays
valid after its segment was let go, rolled away or deleted, and nobody has to count.
"""

from typing import Final, Protocol

from riverlog.model.limits import OPEN_SEGMENT_FILES_MAX
from riverlog.model.ports import Disk, File

_CANDIDATES_MAX: Final = 64
"""How many open files are looked at to find one to let go; where all are in use, one more stays open."""


class HeldFile:
    """A File that lives as long as somebody refers to it: its segment, a plan to sync, a range being sent."""

    __slots__ = ("_file", "path", "used", "write")

    def __init__(self, file: File) -> None:
        self._file = file
        self.path = file.path
        self.write = file.write
        self.used = True
        """Somebody used it since it was last looked at as one to let go."""

    def size(self) -> int:
        return self._file.size()

    def read(self, position: int, count: int) -> bytes:
        return self._file.read(position, count)

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


def write_file(disk: Disk, path: str, content: bytes) -> HeldFile:
    """Write a file whole, in place; it is durable when it and its folder were synced."""
    file = HeldFile(disk.open(path, create=True))
    file.truncate(len(content))
    file.write(0, (content,))
    return file


class Holder(Protocol):
    """Whatever keeps a file open and can open it again."""

    @property
    def held(self) -> HeldFile | None: ...

    @property
    def unsynced(self) -> bool:
        """Tell whether bytes were written that no sync has covered."""
        ...

    def let_go(self) -> None:
        """Drop the file and whatever can be read from it again, and tell the open files."""
        ...


class OpenFiles:
    """All open segment files of a node: the one that was not used lately is let go first.

    A file with unsynced bytes stays open whatever the bound says: a system reports a failed write-back only to
    descriptors that were open when it failed, and a sync that misses the report would promise what was lost.
    """

    def __init__(self, files_max: int = OPEN_SEGMENT_FILES_MAX) -> None:
        self._files_max = files_max
        self._holders: dict[Holder, None] = {}  # in the order in which they were opened or last looked at

    @property
    def count(self) -> int:
        """Count the files that are open."""
        return len(self._holders)

    def opened(self, holder: Holder) -> None:
        """Take note of a file just opened, and let another one go if they are too many."""
        self._holders[holder] = None
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
                candidate.let_go()

    def let_go(self, holder: Holder) -> None:
        """Take note that a file is not held any more, and know nothing of who held it: it may have been deleted."""
        self._holders.pop(holder, None)
