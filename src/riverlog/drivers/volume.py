"""The health of one log directory: whole, full, or gone.

Healthy -> Full      a write found no room, or the reserve was reached; reads and retention go on
Full    -> Healthy   room is back; nothing needs a restart
any     -> Failed    the medium refused a write or a flush; final, because after a failed flush nobody
                     knows what was kept, and trying again may lie
"""

from collections.abc import Callable

from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.limits import DISK_RESERVE_BYTES
from riverlog.model.ports import NO_ROOM, Disk


class Volume:
    """Decides whether a directory takes writes, and remembers why not."""

    def __init__(self, disk: Disk, path: str, *, changed: Callable[["Volume"], None]) -> None:
        self.path = path
        self.writable = True  # neither full nor offline
        self.slack_bytes = 0  # what may still be written before somebody must look again
        self._disk = disk
        self._changed = changed
        self._full = False
        self._failure: str | None = None

    @property
    def trouble(self) -> str | None:
        """Say in one sentence what is wrong, if anything."""
        if self._failure is not None:
            return f"log directory {self.path} is offline: {self._failure}; repair the disk and restart the node"
        if self._full:
            return f"log directory {self.path} is full; free some room or shorten retention, and writes go on"
        return None

    @property
    def offline(self) -> bool:
        return self._failure is not None

    def room(self) -> tuple[int, int]:
        """Give the size of the file system and what is free of it, in bytes."""
        return self._disk.total_bytes(self.path), self._disk.free_bytes(self.path)

    def check_writable(self) -> None:
        """Refuse writes while the directory is full or offline."""
        if not self.writable:
            raise Refusal(ErrorCode.KAFKA_STORAGE_ERROR, self.trouble or "")

    def check_online(self) -> None:
        """Refuse whatever needs the directory at all while it is offline."""
        if self._failure is not None:
            raise Refusal(ErrorCode.KAFKA_STORAGE_ERROR, self.trouble or "")

    def failed(self, error: OSError) -> Refusal:
        """Judge an error of the disk and give the refusal for whoever met it."""
        if error.errno in NO_ROOM:
            self._become(full=True)
        else:
            self.fail(str(error))
        return Refusal(ErrorCode.KAFKA_STORAGE_ERROR, self.trouble or str(error))

    def fail(self, reason: str) -> None:
        """Take the directory offline for good."""
        if self._failure is None:
            self._failure = reason
            self.writable = False
            self._changed(self)

    def look(self) -> None:
        """Compare the room that is left with the reserve; called from time to time, and when the slack is used up."""
        if self._failure is None:
            self.slack_bytes = self._disk.free_bytes(self.path) - DISK_RESERVE_BYTES
            self._become(full=self.slack_bytes < 0)

    def _become(self, *, full: bool) -> None:
        if full is not self._full:
            self._full = full
            self.writable = not full
            self._changed(self)
