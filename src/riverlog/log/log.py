"""One partition's log: batches in, ranges of bytes out.

Everything here runs on the loop and never waits, except `open`, `close`, `flush` and what a `SyncPlan` does
elsewhere. `gather` gives a batch its offsets, `write` brings all that was gathered into the file with one call to the
system; `append` does both. If that fails with OSError, nothing has changed that a reader could see; the caller takes
the directory offline. Offsets only grow and are never used twice. Bytes are served as they lie in the file, after
their checksums were verified once.
"""

from collections.abc import Sequence
from typing import Final

from riverlog.log.assigned_batches import check_assigned
from riverlog.log.checkpoint import replace_file
from riverlog.log.limits import GATHERED_BYTES_PER_LOG_MAX
from riverlog.log.producers.aborted_transactions import AbortedRange
from riverlog.log.reading import NOTHING, LogRead, bound_of, find_aborted, read, read_latest, read_time
from riverlog.log.recovery.opening import OpenedFolder, open_folder
from riverlog.log.retention import SegmentFacts
from riverlog.log.segments.flaws import Flaw
from riverlog.log.segments.gathered_write import AppendResult, GatheredBatch
from riverlog.log.segments.log_folder import SNAPSHOT_SUFFIX, path_of
from riverlog.log.segments.open_files import OpenFiles
from riverlog.log.segments.quarantine import QUARANTINE_FILE
from riverlog.log.segments.rolling import check_fits, is_full
from riverlog.log.segments.segment import Segment
from riverlog.log.segments.segments import facts_of
from riverlog.log.sync import SyncPlan
from riverlog.log.sync_planner import SyncPlanner
from riverlog.log.times import FoundTime, check_times
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import NO_TIMESTAMP, LeaderEpoch, Offset
from riverlog.model.ports import Disk
from riverlog.model.settings import Durability, TopicConfig
from riverlog.records.batch import LOG_APPEND_TIME, BatchHeader, assign, stamp
from riverlog.records.control import Marker

_NO_START: Final = Offset(0)


class Log:
    """A partition's records. Made by `Log.open`."""

    def __init__(self, config: TopicConfig, opened: OpenedFolder, *, is_new: bool) -> None:
        segments = opened.segments
        self.folder = segments.folder.path
        self._disk = segments.folder.disk
        self.config = config
        """The topic's settings; `configure` changes them."""
        self.segments = segments
        self.quarantine = segments.quarantine
        """The damage that is known."""
        self.log_start_offset = Offset(0)
        self.log_end_offset = Offset(0)
        self.flushed_offset = Offset(0)
        """All below is on the medium."""
        self.epochs, self.producers = opened.past.epochs, opened.past.producers
        self.bytes_cut = opened.bytes_cut
        """How many bytes of torn writes were cut off when the log was opened."""
        self.sync_planner = SyncPlanner(segments, opened.unsynced, clean=opened.clean, is_new=is_new)
        self._gathered: list[
            GatheredBatch
        ] = []  # they have their offsets, from the log's end on, but no place in the file
        self._gathered_bytes = 0
        self.start_not_believed: Offset | None = None
        """The log start that was written down and cannot be: it lies beyond all that was ever known to be here."""
        self.swapping = False
        """A cleaned segment is taking the place of others; until it is done none is deleted."""
        self.unchanged_end: Offset | None = None
        """Where the log ended when it was opened cleanly: if it still does, closing has nothing to write."""

    @classmethod
    def open(
        cls,
        disk: Disk,
        folder: str,
        config: TopicConfig,
        *,
        recovery_point: Offset,
        clean: bool,
        now_ms: int,
        log_start_offset: Offset = _NO_START,
        high_watermark: Offset | None = None,
        files: OpenFiles | None = None,
        folder_is_durable: bool = False,
        compacted: bool = False,
    ) -> "Log":
        """Open the log in this folder, which is created if it is missing; recover it after a crash.

        One that was compacted, be it by Kafka, may have gaps between its segments. A log start above all records is
        believed if the recovery point or the high watermark was there; without a high watermark it always is.
        """
        opened = open_folder(
            disk,
            OpenFiles() if files is None else files,
            folder,
            recovery_point=recovery_point,
            clean=clean,
            index_interval_bytes=config.index_interval_bytes,
            dense=not (compacted or config.cleanup_compact),
            now_ms=now_ms,
        )
        log = cls(config, opened, is_new=not (opened.clean or folder_is_durable))
        known_end = None if high_watermark is None else max(recovery_point, high_watermark)
        log._find_ends(recovery_point, log_start_offset, known_end, clean=opened.clean, now_ms=now_ms)
        opened.past.remove_snapshots(opened.segments)
        log.epochs.truncate_end(log.log_end_offset)
        log.sync_planner.unsynced_epochs = opened.past.has_new_epochs
        if log.flushed_offset < log.log_end_offset and config.durability is Durability.FSYNC:
            # All that is here counts as committed from now on: it is shown, and retries count as duplicates of it.
            log.flush()
        return log

    def _find_ends(
        self,
        recovery_point: Offset,
        log_start_offset: Offset,
        known_end: Offset | None,
        *,
        clean: bool,
        now_ms: int,
    ) -> None:
        segments = self.segments
        end = segments.active.next_offset if len(segments) else Offset(0)
        if known_end is not None and max(end, known_end) < log_start_offset and self.size:
            self.start_not_believed, log_start_offset = log_start_offset, _NO_START
        # Offsets that were given away or given up are not given to other records.
        floor = max(recovery_point, log_start_offset)
        if end < log_start_offset:
            # Nothing here is needed, and the gap behind it would look like a torn write at the next recovery.
            segments.delete(0, len(segments), delay_ms=0)
        first_offset = segments.note_lost(max(end, log_start_offset), recovery_point, floor)
        if end < floor or not len(segments):
            if self.quarantine.unsaved:
                # Once another segment follows, what is missing before it is not looked for, in a compacted log at all.
                replace_file(self._disk, f"{self.folder}/{QUARANTINE_FILE}", self.quarantine.encode())
                self.quarantine.unsaved = False
            segments.begin(floor, now_ms=now_ms)
        self.log_end_offset = segments.active.next_offset
        self.log_start_offset = min(max(log_start_offset, first_offset), self.log_end_offset)
        self.flushed_offset = min(recovery_point, self.log_end_offset)
        self.unchanged_end = self.log_end_offset if clean else None

    def close(self) -> None:
        """Sync everything and write down what opening again would otherwise have to find out."""
        plan = self.begin_close()
        plan.run()
        self.closed(plan)

    def begin_close(self) -> SyncPlan:
        """Plan what must be done to close the log; nothing may be appended any more. Again: nothing is left to do."""
        self.write()
        changed = self.log_end_offset != self.unchanged_end
        for segment in self.segments.known() if changed else ():
            if not segment.closed:
                self.segments.close(segment)
        plan = self.sync_planner.plan(self.log_end_offset, self.epochs, self.producers, closing=True)
        if changed:
            # It has a checksum: one that a power loss takes costs a scan.
            plan.hints.append((path_of(self.folder, self.log_end_offset, SNAPSHOT_SUFFIX), 0, self.producers.encode()))
        return plan

    def closed(self, plan: SyncPlan) -> None:
        """Note that the plan for closing was carried out, and release all files."""
        self.synced(plan)
        self.unchanged_end = self.log_end_offset
        self.release()

    def release(self) -> None:
        """Release all files and write nothing: for a log that is deleted, or whose disk has failed."""
        self._gathered = []
        for segment in self.segments.known():
            segment.release()

    # What is there

    @property
    def damage(self) -> list[str]:
        """List the known damage of what the log holds, a sentence each."""
        return [f"{self.folder}/{known}" for known in self.quarantine.behind(self.log_start_offset)]

    def configure(self, config: TopicConfig) -> None:
        """Go by other settings of the topic from now on."""
        self.config = config
        self.segments.set_index_interval(config.index_interval_bytes)

    @property
    def size(self) -> int:
        """Count the bytes of all batches."""
        return sum(segment.size for segment in self.segments)

    def last_stable_offset(self, high_watermark: Offset) -> Offset:
        """Return the offset below which all is committed and every transaction decided."""
        unstable = self.producers.transactions.first_unstable_offset
        if unstable is None or unstable >= high_watermark:
            return high_watermark
        return max(unstable, self.log_start_offset)

    @property
    def has_gathered(self) -> bool:
        """Return whether some batches have their offsets, and are not in the file yet."""
        return bool(self._gathered)

    # Appending

    def append(
        self,
        batch: memoryview,
        header: BatchHeader,
        *,
        leader_epoch: LeaderEpoch,
        now_ms: int,
        marker: Marker | None = None,
    ) -> AppendResult:
        """Append one checked batch, giving it its offsets in place.

        Raises Refusal where its time or sequence is wrong, OSError where the disk fails; then nothing is appended.
        """
        appended = self.gather(batch, header, leader_epoch=leader_epoch, now_ms=now_ms, marker=marker)
        self.write()
        return appended

    def gather(
        self,
        batch: memoryview,
        header: BatchHeader,
        *,
        leader_epoch: LeaderEpoch,
        now_ms: int,
        marker: Marker | None = None,
    ) -> AppendResult:
        """Assign one checked batch its offsets, in place, and keep it for `write`: its bytes must stay as they are.

        Raises Refusal where its time or sequence is wrong, which says nothing about those gathered before it; OSError
        where the disk fails, and then those are lost too. A marker was checked by the caller.
        """
        if header.producer_id >= 0 and marker is None:
            written = self.producers.check(header)
            if written is not None:
                stamped = written.appended_ms if self.config.message_timestamp_log_append_time else NO_TIMESTAMP
                return AppendResult(written.base_offset, written.last_offset, stamped, True)
        config = self.config
        if config.message_timestamp_log_append_time:
            stamp(batch, now_ms)
            begun = reached = stamped = now_ms
        else:
            begun, reached, stamped = header.first_timestamp, header.max_timestamp, NO_TIMESTAMP
            if (
                reached - now_ms > config.message_timestamp_after_max_ms
                or now_ms - begun > config.message_timestamp_before_max_ms
                or header.attributes & LOG_APPEND_TIME
            ):
                check_times(header, config, now_ms=now_ms)
        gathered = self._gathered
        size = len(batch)
        base_offset = Offset(gathered[-1][2] + 1) if gathered else self.log_end_offset
        last_offset = Offset(base_offset + header.last_offset_delta)
        active = self.segments.active
        if is_full(active, config, self._gathered_bytes + size, last_offset, reached, now_ms):
            self.write()
            active = self._roll_for(size, now_ms)
        assign(batch, base_offset, leader_epoch)
        if header.producer_id >= 0:
            self.producers.remember_gathered(header, base_offset, now_ms, marker)
        self._gathered.append((batch, base_offset, last_offset, begun, reached))
        self._gathered_bytes += size
        # What a segment or an epoch begins with is written at once: the next batch must know of it.
        if active.size == 0 or self._gathered_bytes > GATHERED_BYTES_PER_LOG_MAX or leader_epoch > self.epochs.latest:
            self.write()
            if leader_epoch > self.epochs.latest:
                self.sync_planner.unsynced_epochs = self.epochs.begin(leader_epoch, base_offset)
        return AppendResult(base_offset, last_offset, stamped, False)

    def write(self) -> None:
        """Write what was gathered behind the log's end, all of it with one call; after an OSError none of it counts."""
        if not self._gathered:
            return
        gathered, self._gathered = self._gathered, []
        self._gathered_bytes = 0
        segments = self.segments
        try:
            if self.producers.aborted:
                self._index_aborted()
            segments.active.append(gathered)
        except OSError:
            self.producers.forget_gathered(self.log_end_offset)
            if segments.aborted:
                segments.aborted.truncate(segments.active.base_offset, self.log_end_offset)
            raise
        self.producers.keep_gathered()
        self.log_end_offset = segments.active.next_offset

    def _index_aborted(self) -> None:
        """Write down the transactions that markers abort; before those, so that none is ever without its entry."""
        segments = self.segments
        segments.aborted.append(segments.active.base_offset, self.producers.aborted)
        segments.unsynced_names = True
        self.producers.aborted = []

    def append_assigned(self, batches: memoryview, *, now_ms: int) -> Offset:
        """Append batches that have their offsets and epochs already, as a follower gets them; return the new end.

        Only whole batches from the log's end on are taken; raises Refusal where the next bytes are something else.
        """
        assert not self._gathered
        found = check_assigned(batches, self.log_end_offset)
        if not found:
            return self.log_end_offset
        last_position, last, _ = found[-1]
        size = last_position + last.size
        last_timestamp = max(header.max_timestamp for _, header, _ in found)
        active = self.segments.active
        if is_full(active, self.config, size, last.last_offset, last_timestamp, now_ms):
            active = self._roll_for(size, now_ms)
        active.append_all(batches[:size], [(position, header) for position, header, _ in found])
        self.log_end_offset = last.next_offset
        for _, header, marker in found:
            self.sync_planner.unsynced_epochs |= self.epochs.begin(header.leader_epoch, header.base_offset)
            if header.producer_id >= 0:
                self.producers.remember(header, header.base_offset, now_ms, marker)
        if self.producers.aborted:
            self._index_aborted()
        return self.log_end_offset

    def _roll_for(self, size: int, now_ms: int) -> Segment:
        check_fits(self.config, size)
        self.roll(now_ms)
        return self.segments.active

    def roll(self, now_ms: int) -> bool:
        """Close the active segment and begin another; an empty one stays. Say whether there is a new one."""
        self.write()
        closed = self.segments.active
        if closed.size == 0:
            return False
        self.sync_planner.sync_first_name()
        self.segments.begin(self.log_end_offset, now_ms=now_ms)
        self.sync_planner.closed(closed, self.producers)
        return True

    # Reading

    def read(self, offset: Offset, *, bytes_max: int, upto: Offset, at_least_one: bool = True) -> LogRead:
        """Find the bytes from this offset on that lie below `upto`, as `reading.read` does."""
        if not self.log_start_offset <= offset <= self.log_end_offset:
            raise Refusal(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"offset {offset} is not between {self.log_start_offset} and {self.log_end_offset}",
            )
        if offset >= upto:
            return NOTHING
        return read(self.segments, offset, bytes_max=bytes_max, upto=upto, at_least_one=at_least_one)

    def aborted_in(self, found: LogRead, offset: Offset) -> list[AbortedRange]:
        """Name the aborted transactions with records in what was read from an offset on, the earliest first."""
        return find_aborted(self.segments, offset, bound_of(self.segments, found)) if self.segments.aborted else []

    def offset_for_time(self, timestamp_ms: int) -> FoundTime | None:
        """Find the first record that is as late as this or later; None where there is none."""
        return read_time(self.segments, timestamp_ms, from_offset=self.log_start_offset)

    def max_timestamp(self) -> FoundTime | None:
        """Find the first record with the latest timestamp of all."""
        return read_latest(self.segments, from_offset=self.log_start_offset)

    def note_flaws(self, scrubbed: SegmentFacts, flaws: Sequence[Flaw]) -> bool:
        """Quarantine what was found wrong in a segment; False where it is no longer the one that was looked at."""
        slot = self.segments.slot_of(scrubbed.base_offset)
        if facts_of(self.segments[slot])[:3] != scrubbed[:3]:
            return False
        for flaw in flaws:
            self.quarantine.add(scrubbed.base_offset, flaw)
        return True

    def segment_facts(self) -> list[SegmentFacts]:
        """Describe all segments, the active one last."""
        return [facts_of(segment) for segment in self.segments]

    # Making durable

    def pending_sync(self) -> SyncPlan:
        """Plan what must be done to make everything appended so far durable; one plan at a time."""
        return self.sync_planner.plan(self.log_end_offset, self.epochs, None if self._gathered else self.producers)

    def pending_first_name(self) -> SyncPlan:
        """Plan to make the first segment's name durable: its bytes may be many, and need not be."""
        return self.sync_planner.plan_first_name(self.flushed_offset)

    def synced(self, plan: SyncPlan) -> None:
        """Note that a plan was carried out."""
        assert self.flushed_offset <= plan.upto <= self.log_end_offset
        self.sync_planner.finish(plan)
        self.flushed_offset = plan.upto

    def flush(self) -> None:
        """Sync everything now, and wait for it."""
        plan = self.pending_sync()
        plan.run()
        self.synced(plan)

    def advance_log_start(self, offset: Offset) -> None:
        """Drop the records below this offset; their segments go with the next retention."""
        if not 0 <= offset <= self.log_end_offset:
            raise Refusal(ErrorCode.OFFSET_OUT_OF_RANGE, f"offset {offset} is not between 0 and {self.log_end_offset}")
        if offset > self.log_start_offset:
            self.log_start_offset = offset
            self.sync_planner.unsynced_epochs |= self.epochs.truncate_start(offset)
