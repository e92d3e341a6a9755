"""What of a log is not on the medium yet, and the plans that bring it there, one at a time."""

from collections.abc import Sequence

from riverlog.log.epoch_checkpoint import encode_epochs
from riverlog.log.producers.aborted_checkpoint import ABORTED_FILE
from riverlog.log.producers.snapshots import Snapshots
from riverlog.log.producers.state import Producers
from riverlog.log.recovery.replay import EPOCHS_FILE
from riverlog.log.segments.quarantine import QUARANTINE_FILE
from riverlog.log.segments.segment import Segment
from riverlog.log.segments.segments import Segments
from riverlog.log.sync import SyncPlan
from riverlog.model.epochs import Epochs
from riverlog.model.ids import Offset
from riverlog.model.ports import File


class SyncPlanner:
    """Collects what is to be made durable of one log."""

    __slots__ = (
        "_closed_segments", "_plan", "_postponed", "_segments", "_unsynced_folder", "first_name_synced",
        "snapshots", "unsynced_epochs",
    )  # fmt: skip

    def __init__(self, segments: Segments, closed: list[Segment], *, clean: bool, is_new: bool) -> None:
        """Begin with a log that was just opened, with these closed segments that were recovered."""
        self._segments = segments
        self._plan: SyncPlan | None = None
        self._postponed: SyncPlan | None = None
        """The last plan, if it found no room for its small files."""
        self._unsynced_folder = is_new  # the name of the log's own folder may not be durable yet
        self.first_name_synced = clean
        """No crash can take the first segment's name any more: the first roll, on the loop, need not wait for that."""
        self._closed_segments = closed
        """Closed segments with unsynced bytes; the active one is always looked at."""
        self.unsynced_epochs = False
        self.snapshots = Snapshots(segments.folder.path)
        segments.unsynced_names |= not clean

    @property
    def closed_is_durable(self) -> bool:
        """Return whether closed segments and the names of all files are on the medium, and not only on their way there.

        No segment closes without a new name: that of the next one.
        """
        return self._plan is None and not self._segments.unsynced_names

    def plan(self, upto: Offset, epochs: Epochs, producers: Producers | None, *, closing: bool = False) -> SyncPlan:
        """Plan what must be done to make everything below an offset durable.

        Without producers while they know of batches that are not in the log yet. How large the indexes of aborted
        transactions are is written down with the producers, and when the log is closing.
        """
        self.check_idle()
        segments = self._segments
        folder, quarantine = segments.folder, segments.quarantine
        unsynced = [segment for segment in (*self._closed_segments, segments.active) if segment.unsynced]
        files: list[File] = [segment.file() for segment in unsynced]  # an OSError leaves everything as it is
        files += segments.aborted.take_unsynced()
        hints = segments.active.index_files.tails()
        plan = self._plan = SyncPlan(folder.disk, upto, files)
        if self._postponed is not None:
            plan.take_over(self._postponed)
            self._postponed = None
        for segment in unsynced:
            segment.unsynced = False
        plan.files += segments.unsynced_files
        plan.hints += hints
        if self.unsynced_epochs:
            plan.replacements[f"{folder.path}/{EPOCHS_FILE}"] = encode_epochs(epochs)
        closing |= self.snapshots.add_to(plan, segments.active.size, producers)
        if closing and segments.aborted.has_new_sums:
            plan.replacements[f"{folder.path}/{ABORTED_FILE}"] = segments.aborted.encode_sums()
        if quarantine.unsaved:
            plan.replacements[f"{folder.path}/{QUARANTINE_FILE}"] = quarantine.encode()
            quarantine.unsaved = False
        if segments.unsynced_names or plan.replacements:
            plan.folders.append(folder.path)
        if self._unsynced_folder:
            plan.folders.append(folder.path.rpartition("/")[0])
        self._closed_segments = []
        self.unsynced_epochs = False
        segments.unsynced_files = []
        segments.unsynced_names = False
        self._unsynced_folder = False
        return plan

    def plan_first_name(self, upto: Offset) -> SyncPlan:
        """Plan to make the first segment's name durable, and no more below the offset to which everything is."""
        self.check_idle()
        folder = self._segments.folder
        plan = self._plan = SyncPlan(folder.disk, upto, folders=[folder.path])
        return plan

    def finish(self, plan: SyncPlan) -> None:
        """Note that a plan was carried out."""
        assert plan is self._plan
        self._plan = None
        self.first_name_synced = True
        if plan.postponed:
            self._postponed = plan

    def check_idle(self) -> None:
        """Assert that no plan is being carried out."""
        assert self._plan is None, "a sync is running: let it finish first"

    def sync_first_name(self) -> None:
        """Sync the first segment's name before there is a second one.

        Where a crash left that one without the first, the log would seem to begin with it.
        """
        if not self.first_name_synced:
            folder = self._segments.folder
            folder.disk.sync_folder(folder.path)
            self.first_name_synced = True

    def closed(self, segment: Segment, producers: Producers) -> None:
        """Note a segment behind which another one has begun."""
        self._closed_segments.append(segment)
        self.snapshots.begin_segment(segment.next_offset, producers)

    def forget(self, bases: Sequence[Offset]) -> None:
        """Forget the segments that begin at these offsets: they are gone."""
        self._closed_segments = [each for each in self._closed_segments if each.base_offset not in bases]
        self.snapshots.forget(bases)

    def restart(self) -> None:
        """Forget the small files that were to be written: the log was cut."""
        self.snapshots.restart()
        self._postponed = None
