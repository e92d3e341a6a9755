"""Making a log durable in three steps, so that the wait can happen beside the loop.

On the loop the log says what is to be done (`Log.pending_sync`), a worker does it (`SyncPlan.run`) while appends go
on, and back on the loop the log raises its flushed offset (`Log.synced`). What the plan covers is what was there
when it was made. If `run` raises FlushFailed, the bytes may be lost whatever a second attempt says: there is none.
After an error that may pass it could not even ask: then it may be run again, and goes on where it was. The small files
can wait: they shorten the next start, and that they cannot be written now is no reason to stop.
"""

from dataclasses import dataclass, field

from riverlog.log.checkpoint import TEMPORARY_SUFFIX, write_durably
from riverlog.model.disk_errors import may_pass
from riverlog.model.ids import Offset
from riverlog.model.ports import Disk, File


@dataclass(slots=True)
class SyncPlan:
    """Files to sync, names to make durable, small files to replace: all of it covers the offsets below `upto`."""

    disk: Disk
    upto: Offset
    files: list[File] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)
    hints: list[tuple[str, int, bytes]] = field(default_factory=list)
    """Bytes to write at positions of files that need not survive: they are checked when they are used."""
    replacements: dict[str, bytes] = field(default_factory=dict)
    """Small files in the folders named above, replaced as a whole, in this order."""
    removals: list[str] = field(default_factory=list)
    """Files that the replacements make useless."""
    postponed: bool = False
    """The hints and the replacements could not be written: there was no room, or no descriptor."""

    def take_over(self, earlier: "SyncPlan") -> None:
        """Do also what an earlier plan could not write, before what this plan will add."""
        assert earlier.postponed
        self.hints += earlier.hints
        self.replacements |= earlier.replacements
        self.removals += earlier.removals

    def run(self) -> None:
        """Do it all, waiting for the medium; may run in a worker thread."""
        while self.files:
            self.files[0].sync()
            del self.files[0]
        self.postponed = False
        try:
            self._write_small_files()
        except OSError as error:
            if not may_pass(error):
                raise
            self.postponed = True
        while self.folders:
            self.disk.sync_folder(self.folders[0])
            del self.folders[0]
        if not self.postponed:
            self._remove()

    def _remove(self) -> None:
        """Remove what is not needed any more; what stays is removed when the log is opened."""
        for path in self.removals:
            try:
                if self.disk.exists(path):
                    self.disk.remove(path)
            except OSError as error:
                if not may_pass(error):
                    raise

    def _write_small_files(self) -> None:
        for path, position, content in self.hints:
            file = self.disk.open(path, create=True)
            try:
                file.write(position, (content,))
            finally:
                file.close()
        for path, content in self.replacements.items():
            write_durably(self.disk, path + TEMPORARY_SUFFIX, content)
        for path in self.replacements:
            self.disk.rename(path + TEMPORARY_SUFFIX, path)
