"""Cleaning a log: the segments below an offset written anew, without the records that newer ones replace.

A `CleaningPlan` says all that the work needs, so that another process can do it. The results stand beside the segments
as `.cleaned` files, on the medium, and nothing that was there is touched: taking them over is `swap.py`. A cleaned
segment ends where those that it replaces end: their last batch stays, if need be without a record. So does the last
batch of each producer, from which a restart learns what a retry may repeat.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from riverlog.log.checkpoint import write_durably
from riverlog.log.compaction.cleaned_transactions import CleanedTransactions
from riverlog.log.compaction.policy import DirtyRange, NewestOffsets, examine, grouped
from riverlog.log.producers.aborted_transactions import TRANSACTION_INDEX_SUFFIX, AbortedIndex, AbortedRange
from riverlog.log.reading import find_aborted
from riverlog.log.retention import SegmentFacts
from riverlog.log.segments.index import RELATIVE_OFFSET_MAX
from riverlog.log.segments.log_folder import CLEANED_SUFFIX, LOG_SUFFIX, LogFolder, path_of
from riverlog.log.segments.open_files import OpenFiles
from riverlog.log.segments.scan import scan_batches
from riverlog.log.segments.segment import Segment
from riverlog.model.ids import TIMESTAMP_MAX, Offset, ProducerEpoch, ProducerId
from riverlog.model.ports import Buffer, Disk
from riverlog.records.batch import BatchHeader, checksum, read_header
from riverlog.records.control import read_marker
from riverlog.records.errors import CorruptBatch
from riverlog.records.walk import RecordSlice, delete_horizon, empty, keep, unfold, walk

if TYPE_CHECKING:
    from riverlog.log.log import Log

_WRITE_BYTES: Final = 1024 * 1024
_POSITION_MAX: Final = 2**31 - 1
"""Indexes have 31 bits for a position."""


class CleanedGroup(NamedTuple):
    """Segments, and how large the one is that can take their place; None where it would be the same."""

    replaced: tuple[SegmentFacts, ...]
    size: int | None
    clean_upto: Offset
    """All below is clean once every group of the run has been taken over."""

    @property
    def size_before(self) -> int:
        """Count the bytes of the segments as they were."""
        return sum(segment.size for segment in self.replaced)


@dataclass(frozen=True, slots=True)
class CleaningPlan:
    """One run over a log."""

    folder: str
    segments: tuple[SegmentFacts, ...]
    """All from the oldest up to the first that may not be cleaned."""
    first_dirty_offset: Offset
    last_batches: Mapping[ProducerId, frozenset[Offset]]
    """The last offset of each batch that its producer may send again."""
    last_epochs: Mapping[ProducerId, ProducerEpoch]
    """The epochs of producers that may send none again: their last markers fence those of earlier epochs."""
    aborted: tuple[AbortedRange, ...]
    """The transactions that are not to be kept."""
    now_ms: int
    delete_retention_ms: int
    segment_bytes: int
    index_interval_bytes: int
    keys_bytes_max: int
    bytes_per_second_max: float

    @property
    def delete_horizon_ms(self) -> int:
        """Return until when tombstones and markers stay that are cleaned for the first time."""
        return min(self.now_ms + self.delete_retention_ms, TIMESTAMP_MAX)


def find_dirt(log: "Log", *, cleaned_offset: Offset, upto: Offset, now_ms: int) -> DirtyRange:
    """Measure how much of a log waits to be cleaned below an offset."""
    return examine(
        log.segment_facts(),
        log.config,
        cleaned_offset=cleaned_offset,
        log_start_offset=log.log_start_offset,
        upto=upto,
        now_ms=now_ms,
    )


def plan_cleaning(
    log: "Log", dirt: DirtyRange, *, now_ms: int, keys_bytes_max: int, bytes_per_second_max: float
) -> CleaningPlan:
    """Plan a run over this log; Refusal where a segment must be left as it is."""
    # A crash must not take the newer record of a key when the older one is gone for it. And beside a new `.cleaned`
    # file a `.swap` counts for nothing: the last one must have its own name for good.
    assert log.sync_planner.closed_is_durable, "closed segments are not durable: flush the log first"
    for segment in log.segments:
        if segment.base_offset < dirt.end_offset and (flaws := segment.integrity.flaws()):
            raise segment.integrity.damaged(flaws[0].position)
    return CleaningPlan(
        folder=log.folder,
        segments=tuple(facts for facts in log.segment_facts() if facts.next_offset <= dirt.end_offset),
        first_dirty_offset=dirt.first_dirty_offset,
        last_batches={
            producer_id: frozenset(written.last_offset for written in producer.batches)
            for producer_id, producer in log.producers.items()
        },
        last_epochs={
            producer_id: producer.epoch for producer_id, producer in log.producers.items() if not producer.batches
        },
        aborted=tuple(find_aborted(log.segments, log.segments.bases[0], dirt.end_offset)),
        now_ms=now_ms,
        delete_retention_ms=log.config.delete_retention_ms,
        segment_bytes=log.config.segment_bytes,
        index_interval_bytes=log.config.index_interval_bytes,
        keys_bytes_max=keys_bytes_max,
        bytes_per_second_max=bytes_per_second_max,
    )


def clean(disk: Disk, cleaning: CleaningPlan, pause: Callable[[float], None]) -> Iterator[CleanedGroup]:
    """Clean group by group, oldest first. Raises CorruptBatch where a segment is not as it should be."""
    work = _CleaningRun(disk, cleaning, pause)
    newest = work.find_newest()
    reached = [segment for segment in cleaning.segments if segment.base_offset < newest.end]
    for group in grouped(reached, bytes_max=cleaning.segment_bytes, offsets_max=RELATIVE_OFFSET_MAX):
        yield CleanedGroup(group, work.clean_group(group, newest), newest.end)


class _CleaningRun:
    def __init__(self, disk: Disk, cleaning: CleaningPlan, pause: Callable[[float], None]) -> None:
        self._disk = disk
        self._cleaning = cleaning
        self._pause = pause
        self._transactions = CleanedTransactions(cleaning.aborted)
        self._bytes_since_pause = 0

    def find_newest(self) -> NewestOffsets:
        """Read the dirty part for the newest offset of each key."""
        cleaning = self._cleaning
        newest = NewestOffsets(cleaning.first_dirty_offset, bytes_max=cleaning.keys_bytes_max)
        for segment in cleaning.segments:
            if segment.next_offset <= newest.end:
                continue
            for header, batch in self._batches(segment):
                if header.last_offset < cleaning.first_dirty_offset:
                    continue
                if header.is_control or self._transactions.is_aborted(header):
                    newest.pass_over(header)
                else:
                    newest.note(header, walk(unfold(batch, header), header))
                if newest.is_full:
                    return newest
        return newest

    def clean_group(self, group: tuple[SegmentFacts, ...], newest: NewestOffsets) -> int | None:
        """Write what stays of a group into one segment; return its size, None where nothing would change."""
        cleaning = self._cleaning
        cleaned = Segment.create(
            LogFolder(self._disk, OpenFiles(), cleaning.folder, cleaning.index_interval_bytes),
            group[0].base_offset,
            now_ms=cleaning.now_ms,
            ending=CLEANED_SUFFIX,
        )
        cleaned.file().truncate(0)
        waiting = bytearray()
        changed = len(group) > 1
        for segment in group:
            for header, batch in self._batches(segment):
                is_last = header.next_offset == group[-1].next_offset
                kept = self._kept(header, batch, newest, is_last=is_last)
                changed = changed or kept is not batch
                if kept is not None:
                    waiting += kept
                if len(waiting) >= _WRITE_BYTES:
                    self._write(cleaned, waiting)
                    waiting.clear()
        self._write(cleaned, waiting)
        if changed:
            cleaned.file().sync()
            for index in cleaned.index_files.write():
                index.sync()
            self._write_aborted(cleaned, group)
        else:
            self._disk.remove(cleaned.path(LOG_SUFFIX))
        cleaned.release()
        return cleaned.size if changed else None

    def _kept(self, header: BatchHeader, batch: Buffer, newest: NewestOffsets, *, is_last: bool) -> Buffer | None:
        """Return what stays of a batch: the batch itself, another one, or nothing."""
        if header.is_control:
            return self._kept_marker(header, batch, newest, is_last=is_last)
        self._transactions.note(header)
        if header.last_offset >= newest.end:
            return batch
        now_ms = self._cleaning.now_ms
        data, kept = b"", list[RecordSlice]()
        if not self._transactions.is_aborted(header):
            data = unfold(batch, header)
            tombstones = not newest.horizon_passed(header, now_ms)
            kept = [record for record in walk(data, header) if newest.keeps(header, record, tombstones=tombstones)]
        if not kept:
            if is_last or header.last_offset in self._cleaning.last_batches.get(header.producer_id, ()):
                return batch if header.record_count == 0 else empty(header)
            return None
        if delete_horizon(header) is None and not all(record.has_value for record in kept):
            return keep(header, data, kept, delete_horizon_ms=self._cleaning.delete_horizon_ms)
        return batch if len(kept) == header.record_count else keep(header, data, kept)

    def _kept_marker(
        self, header: BatchHeader, batch: Buffer, newest: NewestOffsets, *, is_last: bool
    ) -> Buffer | None:
        """Return what stays of a marker: all of it while it is needed, and `delete.retention.ms` longer (KIP-534)."""
        cleaning = self._cleaning
        if header.record_count:
            marker = read_marker(batch)
            if marker is None or not self._transactions.is_over(header, marker) or header.last_offset >= newest.end:
                return batch
            if delete_horizon(header) is None:
                data = unfold(batch, header)
                return keep(header, data, list(walk(data, header)), delete_horizon_ms=cleaning.delete_horizon_ms)
            if not newest.horizon_passed(header, cleaning.now_ms):
                return batch
        if is_last or cleaning.last_epochs.get(header.producer_id) == header.producer_epoch:
            return batch if header.record_count == 0 else empty(header)
        return None

    def _write_aborted(self, cleaned: Segment, group: tuple[SegmentFacts, ...]) -> None:
        """Write the index of aborted transactions, be it empty, where one of the segments had one."""
        names = (path_of(self._cleaning.folder, each.base_offset, TRANSACTION_INDEX_SUFFIX) for each in group)
        if any(map(self._disk.exists, names)):
            left = self._transactions.left_in(group[0].base_offset, group[-1].next_offset)
            write_durably(self._disk, cleaned.path(TRANSACTION_INDEX_SUFFIX), bytes(AbortedIndex(left).content))

    def _write(self, cleaned: Segment, batches: bytearray) -> None:
        if not batches:
            return
        if cleaned.size + len(batches) > _POSITION_MAX:
            raise CorruptBatch(f"{cleaned.path(LOG_SUFFIX)} would be larger than a segment can be")
        found, position = [], 0
        while position < len(batches):
            header = read_header(batches, position)
            found.append((position, header))
            position += header.size
        cleaned.append_all(bytes(batches), found)
        self._spent(len(batches))

    def _batches(self, segment: SegmentFacts) -> Iterator[tuple[BatchHeader, memoryview]]:
        """Walk the batches of a segment, each verified; they must fill it."""
        path = path_of(self._cleaning.folder, segment.base_offset, LOG_SUFFIX)
        file = self._disk.open(path)
        try:
            end = 0
            for position, header, batch in scan_batches(file, 0, segment.size):
                if checksum(batch) != header.crc:
                    break
                yield header, batch
                end = position + header.size
                self._spent(header.size)
            if end != segment.size:
                raise CorruptBatch(f"{path} is damaged at position {end}; the log is not compacted")
        finally:
            file.close()

    def _spent(self, count: int) -> None:
        """Count bytes read or written, and rest where they come faster than allowed."""
        self._bytes_since_pause += count
        if self._bytes_since_pause >= _WRITE_BYTES:
            seconds = self._bytes_since_pause / self._cleaning.bytes_per_second_max
            self._bytes_since_pause = 0
            if seconds > 0.001:
                self._pause(seconds)
