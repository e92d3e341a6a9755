"""Looking into what a partition's folder says about transactions and producers, as `batches.py` looks into the rest."""

from collections.abc import Iterator
from typing import NamedTuple

from riverlog.log.checkpoint import BadCheckpoint, read_file
from riverlog.log.dump.batches import DumpedBatch, dump_batches
from riverlog.log.producers.aborted_checkpoint import ABORTED_FILE, IndexSum, decode_sums
from riverlog.log.producers.aborted_transactions import ENTRY_BYTES, TRANSACTION_INDEX_SUFFIX, AbortedRange, decode
from riverlog.log.producers.state import BadSnapshot, Producers, ProducerState
from riverlog.log.recovery.recovery import list_folder
from riverlog.log.segments.log_folder import SNAPSHOT_SUFFIX, path_of
from riverlog.model.ids import Offset, ProducerId
from riverlog.model.ports import Disk
from riverlog.records.control import read_marker
from riverlog.records.errors import CorruptBatch


class DumpedAborted(NamedTuple):
    """An entry of an index of aborted transactions; none where the bytes are no entry."""

    entry: AbortedRange | None
    verdict: str


class DumpedProducer(NamedTuple):
    """A producer of a snapshot; a snapshot that cannot be read comes as none, with the reason."""

    producer_id: ProducerId
    producer: ProducerState | None
    verdict: str


def snapshots_of(disk: Disk, folder: str) -> list[Offset]:
    """List the offsets at which a folder's producers are written down."""
    return sorted(list_folder(disk, folder).snapshots)


def aborted_sums(disk: Disk, folder: str) -> dict[Offset, IndexSum]:
    """Read how large the indexes of aborted transactions should be; nothing where that cannot be read."""
    path = f"{folder}/{ABORTED_FILE}"
    try:
        return decode_sums(read_file(disk, path) or b"", path)
    except BadCheckpoint:
        return {}


def dump_aborted(disk: Disk, folder: str, base_offset: Offset) -> Iterator[DumpedAborted]:
    """Walk the entries of an index of aborted transactions, each compared with the marker it names.

    If all of them could be right but others were there before, that comes last, as no entry.
    """
    content = read_file(disk, path_of(folder, base_offset, TRANSACTION_INDEX_SUFFIX)) or b""
    controls = {
        found.header.last_offset: found
        for found in dump_batches(disk, folder, base_offset)
        if found.header is not None and found.header.is_control and not found.verdict
    }
    behind = base_offset
    sound = True
    for start in range(0, len(content), ENTRY_BYTES):
        entry = decode(content[start : start + ENTRY_BYTES])
        if entry is None:
            sound = False
            yield DumpedAborted(None, f"what lies at position {start} is no entry")
            continue
        verdict = _verdict(entry, behind, controls.get(entry.last_offset))
        sound &= not verdict
        yield DumpedAborted(entry, verdict)
        behind = Offset(entry.last_offset + 1)
    known = aborted_sums(disk, folder).get(base_offset)
    if sound and known is not None and not known.begins(content):
        lost = f"{len(content)} of its {known.size} bytes are there" if len(content) < known.size else "it was altered"
        yield DumpedAborted(None, f"{lost}; a node builds it again when it is read")


def dump_snapshot(disk: Disk, folder: str, offset: Offset) -> Iterator[DumpedProducer]:
    """Walk the producers of a snapshot."""
    try:
        producers = Producers.decode(read_file(disk, path_of(folder, offset, SNAPSHOT_SUFFIX)) or b"")
    except BadSnapshot as bad:
        yield DumpedProducer(ProducerId(-1), None, str(bad))
        return
    for producer_id, producer in producers.items():
        began = producer.transaction_offset
        verdict = f"its transaction begins at {began}, behind the snapshot" if began >= offset else ""
        yield DumpedProducer(producer_id, producer, verdict)


def _verdict(entry: AbortedRange, behind: Offset, found: DumpedBatch | None) -> str:
    if not entry.first_offset <= entry.last_offset:
        return "it ends before it begins"
    if entry.last_offset < behind:
        return "not behind the entry before it"
    if entry.last_stable_offset > entry.last_offset + 1:
        return "the last stable offset lies behind its marker"
    if found is None or found.header is None or found.header.producer_id != entry.producer_id:
        return f"no marker of producer {entry.producer_id} lies at offset {entry.last_offset}"
    assert found.batch is not None
    try:
        marker = read_marker(found.batch)
    except CorruptBatch as corrupt:
        return str(corrupt)
    return "its marker says that it was committed" if marker is not None and marker.committed else ""
