"""Making a log durable in three steps, so that the wait can happen beside the loop.

On the loop the log says what is to be done (`Log.pending_sync`), a worker does it (`SyncPlan.run`) while appends go
on, and back on the loop the log raises its flushed offset (`Log.synced`). What the plan covers is what was there
when it was made. If `run` raises, the bytes may be lost whatever a second attempt says: there is none.
"""

from dataclasses import dataclass, field

from riverlog.log.checkpoint import replace_file
from riverlog.model.ids import Offset
from riverlog.model.ports import Disk, File


@dataclass(slots=True)
class SyncPlan:
    """Files to sync, names to make durable, small files to replace: all of it covers the offsets below `upto`."""

    disk: Disk
    upto: Offset
    files: list[File] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)
    replacements: list[tuple[str, bytes]] = field(default_factory=list)

    def run(self) -> None:
        """Do it all, waiting for the medium; may run in a worker thread."""
        for file in self.files:
            file.sync()
        for folder in self.folders:
            self.disk.sync_folder(folder)
        for path, content in self.replacements:
            replace_file(self.disk, path, content)
