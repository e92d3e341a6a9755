"""Opening a partition's folder: which files belong to it, and where its records end.

After a clean shutdown the end is where the last segment's batches end. After a crash everything from the recovery
point on is read and its checksums verified: the first bytes that are not the next whole batch are a torn write, and
the log is cut there. Below the recovery point all was synced, so what is not there or does not parse is damage: it
is quarantined and left as it is, and what lies behind it is kept; its offsets are never given to other records.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from riverlog.log.checkpoint import TEMPORARY_SUFFIX
from riverlog.log.producers.aborted_checkpoint import ABORTED_FILE
from riverlog.log.producers.aborted_transactions import TRANSACTION_INDEX_SUFFIX
from riverlog.log.segments.flaws import Flaw, TailContent
from riverlog.log.segments.log_folder import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    LOG_SUFFIX,
    SNAPSHOT_SUFFIX,
    SWAP_SUFFIX,
    LogFolder,
)
from riverlog.log.segments.scan import scan_batches
from riverlog.log.segments.segment import Segment
from riverlog.model.ids import Offset
from riverlog.model.ports import Disk
from riverlog.records.batch import BatchHeader, checksum
from riverlog.records.control import Marker, read_marker
from riverlog.records.errors import CorruptBatch

BatchObserver = Callable[[BatchHeader, Marker | None], None]
"""Called with each batch, and with what it says about a transaction."""


@dataclass(slots=True)
class FolderListing:
    """What lies in a partition's folder, by name."""

    segments: list[Offset] = field(default_factory=list)
    snapshots: list[Offset] = field(default_factory=list)
    aborted: list[Offset] = field(default_factory=list)
    """Segments with an index of aborted transactions."""
    knows_aborted: bool = False
    """It is written down which segments have one, and how large it is."""
    swaps: list[Offset] = field(default_factory=list)
    """Cleaned segments that a crash kept from taking their place."""
    half_swaps: list[Offset] = field(default_factory=list)
    """Those that have their own names already, except for their index of aborted transactions."""
    leftovers: list[str] = field(default_factory=list)
    """Files of deletions and replacements that a crash interrupted."""


def list_folder(disk: Disk, folder: str) -> FolderListing:
    """Sort the files of a partition's folder; names that are not ours are left alone."""
    found = FolderListing()
    names = disk.list(folder)
    # Kafka may replace a segment by several; while one of them is not there yet, those behind it do not count.
    first_cleaned = min((name for name in names if name.endswith(CLEANED_SUFFIX)), default=None)
    for name in names:
        stem, dot, suffix = name.rpartition(".")
        is_decided = first_cleaned is None or name[:20] < first_cleaned[:20]
        if name.endswith(LOG_SUFFIX + SWAP_SUFFIX) and name[:20].isdigit() and is_decided:
            found.swaps.append(Offset(int(name[:20])))
        elif name.endswith(TRANSACTION_INDEX_SUFFIX + SWAP_SUFFIX) and _is_half_swapped(name[:20], names):
            found.half_swaps.append(Offset(int(name[:20])))
        elif name.endswith((DELETED_SUFFIX, TEMPORARY_SUFFIX, CLEANED_SUFFIX, SWAP_SUFFIX)):
            found.leftovers.append(f"{folder}/{name}")
        elif name == ABORTED_FILE:
            found.knows_aborted = True
        elif len(stem) == 20 and stem.isascii() and stem.isdigit():
            if dot + suffix == LOG_SUFFIX:
                found.segments.append(Offset(int(stem)))
            elif dot + suffix == SNAPSHOT_SUFFIX:
                found.snapshots.append(Offset(int(stem)))
            elif dot + suffix == TRANSACTION_INDEX_SUFFIX:
                found.aborted.append(Offset(int(stem)))
    return found


def _is_half_swapped(stem: str, names: Collection[str]) -> bool:
    """Return whether a cleaned segment's log has its own name, and neither waits for it nor to be taken over."""
    log = stem + LOG_SUFFIX
    return log in names and log + SWAP_SUFFIX not in names and log + CLEANED_SUFFIX not in names


@dataclass(slots=True)
class Recovered:
    """The segments from the recovery point on, oldest first, and what happened to them."""

    segments: list[Segment] = field(default_factory=list)
    unreachable: list[Offset] = field(default_factory=list)
    """Segments behind a torn write: nothing in them was ever synced."""
    bytes_cut: int = 0


def recover(
    folder: LogFolder,
    bases: Sequence[Offset],
    *,
    recovery_point: Offset,
    now_ms: int,
    begin: Callable[[Segment], None],
    note: BatchObserver,
    dense: bool,
) -> Recovered:
    """Recover the given segments, of which only the first may begin below the recovery point.

    That one is shown to `begin` as it is up to the recovery point, then each whole batch behind that to `note`.
    """
    recovered, quarantine = Recovered(), folder.quarantine
    expected: Offset | None = None
    for slot, base_offset in enumerate(bases):
        if expected is not None and base_offset != expected:
            recovered.unreachable = list(bases[slot:])
            break
        segment = Segment.load(
            folder,
            base_offset,
            now_ms=now_ms,
            upto=recovery_point,
            beyond=TailContent.BATCHES if dense else TailContent.GAPS,
        )
        segment.index_files.remove()
        if slot == 0:
            begin(segment)
        recovered.segments.append(segment)
        ends_early = segment.next_offset < recovery_point
        if not ends_early or (segment.trailing_bytes and quarantine.at(segment.next_offset) is None):
            take_verified(segment, note)
        if segment.next_offset < recovery_point:
            # The segment stays as it is, and the log goes on in another one.
            if quarantine.at(segment.next_offset) is None:
                missing = Flaw(
                    segment.size, segment.size, segment.next_offset, recovery_point, "the file ends before the log did"
                )
                quarantine.add(segment.base_offset, missing)
            expected = None
            continue
        expected = segment.next_offset
        if segment.trailing_bytes:
            # A segment that begins exactly here was begun after these bytes: a failed write left them.
            recovered.bytes_cut += segment.trailing_bytes
            segment.truncate(segment.size)
    return recovered


def take_verified(segment: Segment, note: BatchObserver) -> None:
    """Note the batches behind those already known, for as long as each is the next one and whole."""
    end = segment.size + segment.trailing_bytes
    epoch = -1
    for position, header, batch in scan_batches(segment.file(), segment.size, end):
        # An older epoch behind a newer one is what a truncation left behind that was not synced.
        if not segment.is_next(header) or header.leader_epoch < epoch or checksum(batch) != header.crc:
            break
        epoch = header.leader_epoch
        segment.note_header(position, header)
        note(header, _marker_in(batch) if header.is_control else None)
    segment.trailing_bytes = end - segment.size


def _marker_in(batch: memoryview) -> Marker | None:
    """Read a marker out of a batch that is whole; what is none decides nothing."""
    try:
        return read_marker(batch)
    except CorruptBatch:
        return None
