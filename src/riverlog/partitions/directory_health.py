"""The health of one log directory: whole, full, or gone.

Healthy -> Full      a write found no room, or the reserve was reached; reads and retention go on
Full    -> Healthy   room is back; nothing needs a restart
any     -> Failed    the medium refused something, or a flush failed; final, because after a failed flush nobody
                     knows what was kept, and trying again may lie

What else goes wrong (no descriptors, no memory, a file that may not be opened or is gone) is no news about the
directory: the call is refused, and the next one may succeed.
"""

from collections.abc import Callable
from typing import Final

from riverlog.log.identity import META_FILE
from riverlog.model.disk_errors import DiskTrouble, judge
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ports import Disk
from riverlog.observe.logging import get_logger
from riverlog.partitions.limits import DISK_RESERVE_BYTES

_LOOKS_PER_WARNING: Final = 60


class DirectoryHealth:
    """Decides whether a directory takes writes, and remembers why not."""

    def __init__(self, disk: Disk, path: str, *, changed: Callable[["DirectoryHealth"], None]) -> None:
        self.path = path
        self.writable = True  # neither full nor offline
        self.slack_bytes = 0  # what may still be written before the next look
        self._disk = disk
        self._changed = changed
        self._full = False
        self._failure: str | None = None
        self._warned: set[int | None] = set()  # kinds of errors that were logged lately
        self._looks = 0
        self._log = get_logger("riverlog.directory_health")

    @property
    def trouble(self) -> str | None:
        """Return in one sentence what is wrong, if anything."""
        if self._failure is not None:
            return f"log directory {self.path} is offline: {self._failure}; repair the disk and restart the node"
        if self._full:
            return f"log directory {self.path} is full; free some room or shorten retention, and writes go on"
        return None

    @property
    def offline(self) -> bool:
        return self._failure is not None

    def room(self) -> tuple[int, int]:
        """Return the size of the file system and what records may still take of it, in bytes: 0 while it is full."""
        usable_bytes = max(0, self._disk.free_bytes(self.path) - DISK_RESERVE_BYTES) if self.writable else 0
        return self._disk.total_bytes(self.path), usable_bytes

    def check_writable(self) -> None:
        """Refuse writes while the directory is full or offline."""
        if not self.writable:
            raise Refusal(ErrorCode.KAFKA_STORAGE_ERROR, self.trouble or "")

    def check_online(self) -> None:
        """Refuse whatever needs the directory at all while it is offline."""
        if self._failure is not None:
            raise Refusal(ErrorCode.KAFKA_STORAGE_ERROR, self.trouble or "")

    def failed(self, error: OSError) -> Refusal:
        """Judge an error of the disk; return the refusal for whoever met it."""
        match judge(error):
            case DiskTrouble.FULL:
                self._become(full=True)
            case DiskTrouble.FAILED:
                self.fail(str(error))
            case DiskTrouble.MISSING if not self._is_there():
                self.fail(f"it is not there any more ({error})")
            case DiskTrouble.MISSING | DiskTrouble.HINDERED:
                self._warn(error)
                return Refusal(ErrorCode.KAFKA_STORAGE_ERROR, f"{error}; try again")
        return Refusal(ErrorCode.KAFKA_STORAGE_ERROR, self.trouble or str(error))

    def fail(self, reason: str) -> None:
        """Take the directory offline for good."""
        if self._failure is None:
            self._failure = reason
            self.writable = False
            self._changed(self)

    def look(self) -> None:
        """Compare the room that is left with the reserve; called from time to time, and when the slack is used up."""
        if self._failure is not None:
            return
        self._looks += 1
        if self._looks % _LOOKS_PER_WARNING == 0:
            self._warned.clear()
        try:
            self.slack_bytes = self._disk.free_bytes(self.path) - DISK_RESERVE_BYTES
        except OSError as error:
            self.failed(error)
        else:
            self._become(full=self.slack_bytes < 0)

    def _is_there(self) -> bool:
        """Return whether the directory is still there, and not unmounted."""
        return self._disk.exists(f"{self.path}/{META_FILE}")

    def _warn(self, error: OSError) -> None:
        """Log an error that concerns one call, each kind of it once in a while."""
        if error.errno not in self._warned:
            self._warned.add(error.errno)
            self._log.warning("call to the disk refused", directory=self.path, detail=str(error))

    def _become(self, *, full: bool) -> None:
        if full is not self._full:
            self._full = full
            self.writable = not full
            self._changed(self)


class WithdrawnHealth:
    """The health of a partition's files once the partition takes no more writes, whatever its directory does.

    What goes wrong with the files of such a partition says nothing about the disk: they are not its own any more.
    """

    writable = False
    offline = True

    def __init__(self, refusal: Refusal) -> None:
        self.slack_bytes = 0
        self._refusal = refusal

    def look(self) -> None:
        """Do nothing: there is nothing to look at."""

    def check_writable(self) -> None:
        """Refuse, always."""
        raise self.failed()

    check_online = check_writable

    def failed(self, _error: OSError | None = None) -> Refusal:
        """Return the refusal."""
        return Refusal(self._refusal.code, self._refusal.message)
