"""Temporary files: what Spark is about to rename. They are kept as any file is, so that a node that is killed between
CREATE and RENAME finds them again; the content of small ones is in memory as well. Bounded in bytes, number and age.
"""

from typing import NamedTuple

from riverlog.checkpoints.files.paths import is_below
from riverlog.checkpoints.limits import (
    CHECKPOINT_TEMPORARY_BYTES_MAX,
    CHECKPOINT_TEMPORARY_FILES_MAX,
    CHECKPOINT_TEMPORARY_MS_MAX,
)


class _Noted(NamedTuple):
    size: int
    modified_ms: int


class Temporaries:
    """The temporary files of a tree, the oldest first."""

    def __init__(self) -> None:
        self._noted: dict[str, _Noted] = {}
        self.bytes = 0
        """Of those whose content is in memory."""

    def fits(self, size: int) -> bool:
        """Return whether so many bytes more may be held in memory."""
        return self.bytes + size <= CHECKPOINT_TEMPORARY_BYTES_MAX

    def note(self, path: str, size: int, modified_ms: int) -> None:
        """Count a file, with so many bytes in memory."""
        assert path not in self._noted
        self._noted[path] = _Noted(size, modified_ms)
        self.bytes += size

    def forget(self, path: str) -> None:
        """Stop counting a file; nothing where there is none."""
        noted = self._noted.pop(path, None)
        if noted is not None:
            self.bytes -= noted.size

    def outdated(self, now_ms: int) -> list[str]:
        """Name those that are to be deleted before another comes: the oldest of too many, and what nobody renamed."""
        excess = len(self._noted) + 1 - CHECKPOINT_TEMPORARY_FILES_MAX
        found: list[str] = []
        for path, noted in self._noted.items():
            if len(found) >= excess and now_ms - noted.modified_ms <= CHECKPOINT_TEMPORARY_MS_MAX:
                break
            found.append(path)
        return found

    def below(self, folder: str) -> list[str]:
        """Name those in a folder and in the folders in it."""
        return [path for path in self._noted if is_below(path, folder)]
