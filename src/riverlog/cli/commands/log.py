"""`log dump`: what lies in segments, indexes and snapshots of producers, each entry with a verdict.

Reads files and changes nothing.
"""

import errno
import json
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import click

from riverlog.cli.metadata_records import METADATA_FOLDER, facts_of
from riverlog.cli.terminal.colours import wrong
from riverlog.cli.terminal.exits import ExitCode, usage_error
from riverlog.cli.terminal.options import Argument, text_output_option
from riverlog.cli.terminal.record_formats import plain
from riverlog.cli.terminal.render import OutputFormat, Row, as_json, as_yaml, plural, size_text, time_text
from riverlog.log.checkpoint import BadCheckpoint
from riverlog.log.dump.batches import DumpedBatch, dump_batches, dump_file, dump_offsets, dump_times, segments_of
from riverlog.log.dump.transactions import DumpedProducer, aborted_sums, dump_aborted, dump_snapshot, snapshots_of
from riverlog.log.producers.aborted_transactions import TRANSACTION_INDEX_SUFFIX, AbortedRange
from riverlog.log.segments.log_folder import INDEX_SUFFIX, LOG_SUFFIX, SNAPSHOT_SUFFIX, TIME_INDEX_SUFFIX, path_of
from riverlog.log.segments.quarantine import QUARANTINE_FILE, Quarantine
from riverlog.model.ids import NO_OFFSET, Offset
from riverlog.records.batch import BatchHeader, Compression
from riverlog.records.control import marker_of
from riverlog.records.errors import CorruptBatch
from riverlog.records.record import Record, read_batch
from riverlog.world.disk import FileSystem

KINDS: Final = (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX)
Entry = tuple[str, Row, str]
"""The kind of an entry, its facts, and what is wrong with it."""

METADATA_SNAPSHOT_SUFFIX: Final = ".checkpoint"
_FILE_NAME: Final = re.compile(r"(\d{20})(\.log|\.index|\.timeindex|\.txnindex|\.snapshot|-\d{10}\.checkpoint)")


class DumpedFile(NamedTuple):
    """A file to look into."""

    folder: str
    base_offset: Offset
    kind: str

    @property
    def path(self) -> str:
        if self.kind == QUARANTINE_FILE:
            return f"{self.folder}/{self.kind}"
        return path_of(self.folder, self.base_offset, self.kind)

    @property
    def is_of_metadata(self) -> bool:
        """Return whether its records are those of the cluster's metadata."""
        return (
            self.kind.endswith(METADATA_SNAPSHOT_SUFFIX)
            or os.path.basename(os.path.abspath(self.folder)) == METADATA_FOLDER
        )


@click.command
@click.argument(
    "paths",
    cls=Argument,
    nargs=-1,
    required=True,
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Segments, indexes, snapshots, partition folders, or whole log directories.",
)
@click.option("--records", is_flag=True, help="Print the records of each batch.")
@click.option("-q", "--quiet", is_flag=True, help="Print only what is wrong, and the summary.")
@text_output_option
def dump(paths: tuple[Path, ...], records: bool, quiet: bool, output: OutputFormat | None) -> int:
    """Print segments, indexes and snapshots of producers, and verify them.

    Every batch's checksum is verified, and every entry of an index is compared with the batch it points at. What a
    node has found damaged and put into quarantine is named. The files may be Kafka's own. The exit code is 5 if
    something is wrong.
    """
    totals = DumpTotals()
    form = output or OutputFormat.TABLE
    for file in [file for path in paths for file in files_at(path)]:
        heading = f"{file.path}\n" if form is OutputFormat.TABLE else ""
        for row in rows_of(file, records=records):
            totals.count(row)
            if quiet and row["problem"] is None:
                continue
            print(heading + rendered(row, form))
            heading = ""
    if form is OutputFormat.TABLE:
        print(totals)
    return ExitCode.FOUND if totals.problems else ExitCode.DONE


def files_at(path: Path) -> list[DumpedFile]:
    """Find what to look into: one file, the files of a partition's folder, or those of all partitions in it."""
    if not path.exists():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    if path.is_dir():
        found = _files_in(path) or [
            file for each in sorted(path.iterdir()) if each.is_dir() for file in _files_in(each)
        ]
        if not found:
            raise usage_error(f"{path} holds no segments, and neither do the folders in it")
        return found
    if path.name == QUARANTINE_FILE:
        return [_quarantine_in(path.parent)]
    name = _FILE_NAME.fullmatch(path.name)
    if name is None:
        kinds = ", ".join((*KINDS, SNAPSHOT_SUFFIX))
        raise usage_error(f"{path} is not named as a segment, index or snapshot: 20 digits and {kinds}")
    return [DumpedFile(str(path.parent), Offset(int(name[1])), name[2])]


def rows_of(file: DumpedFile, *, records: bool) -> Iterator[Row]:
    """Yield every entry of a file, with what is wrong with it or None."""
    for kind, facts, problem in _entries(file, records=records):
        yield {"file": file.path, "kind": kind, **facts, "problem": problem or None}


def _entries(file: DumpedFile, *, records: bool) -> Iterator[Entry]:
    disk, folder, base_offset = FileSystem(), file.folder, file.base_offset
    match file.kind:
        case ".index":
            for offset in dump_offsets(disk, folder, base_offset):
                yield "index", {"offset": offset.last_offset, "position": offset.position}, offset.verdict
        case ".timeindex":
            for time in dump_times(disk, folder, base_offset):
                yield "timeindex", {"timestamp_ms": time.timestamp, "offset": time.last_offset}, time.verdict
        case ".txnindex":
            for aborted in dump_aborted(disk, folder, base_offset):
                yield "txnindex", _aborted_facts(aborted.entry), aborted.verdict
        case ".snapshot":
            for found in dump_snapshot(disk, folder, base_offset):
                yield "producer", _producer_facts(found), found.verdict
        case "quarantine":
            yield from _quarantine_entries(file)
        case ".log":
            for batch in dump_batches(disk, folder, base_offset):
                yield from _batch_entries(batch, records=records, metadata=file.is_of_metadata)
        case _:
            for batch in dump_file(disk, file.path, Offset(0)):
                yield from _batch_entries(batch, records=records, metadata=True)


class DumpTotals:
    """Counts what was seen."""

    def __init__(self) -> None:
        self.files: set[object] = set()
        self.batches = 0
        self.records = 0
        self.bytes = 0
        self.entries = 0
        self.problems = 0

    def count(self, row: Row) -> None:
        """Take one row into account."""
        self.files.add(row["file"])
        self.problems += row["problem"] is not None
        match row:
            case {"kind": "batch", "records": int(records), "size": int(size)}:
                self.batches += 1
                self.records += records
                self.bytes += size
            case {"kind": "index" | "timeindex" | "txnindex"}:
                self.entries += 1
            case _:
                pass

    def __str__(self) -> str:
        verdict = f"{plural(self.problems, 'problem')} found" if self.problems else "nothing is wrong"
        counts = [
            plural(self.batches, "batch", "batches"),
            plural(self.records, "record"),
            size_text(self.bytes),
            plural(self.entries, "index entry", "index entries"),
        ]
        return f"{plural(len(self.files), 'file')}: {', '.join(counts)}; {verdict}"


def rendered(row: Row, form: OutputFormat) -> str:
    """Write one row."""
    match form:
        case OutputFormat.JSON:
            return as_json(row)
        case OutputFormat.YAML:
            return "\n".join(as_yaml([row]))
        case OutputFormat.TABLE:
            verdict = "" if row["problem"] is None else f"  {wrong('WRONG')}: {row['problem']}"
            return f"{_line(row)}{verdict}"


def _files_in(folder: Path) -> list[DumpedFile]:
    files = [
        DumpedFile(str(folder), base_offset, kind)
        for base_offset in sorted(segments_of(FileSystem(), str(folder)))
        for kind in KINDS
    ]
    snapshots = [DumpedFile(str(folder), each, SNAPSHOT_SUFFIX) for each in snapshots_of(FileSystem(), str(folder))]
    metadata = [
        DumpedFile(str(folder), Offset(int(name[1])), name[2])
        for name in map(_FILE_NAME.fullmatch, sorted(os.listdir(folder)))
        if name is not None and name[2].endswith(METADATA_SNAPSHOT_SUFFIX)
    ]
    missed = {
        DumpedFile(str(folder), each, TRANSACTION_INDEX_SUFFIX) for each in aborted_sums(FileSystem(), str(folder))
    }
    wanted = (_quarantine_in(folder), *metadata, *files, *snapshots)
    return [file for file in wanted if os.path.exists(file.path) or file in missed]


def _quarantine_in(folder: Path) -> DumpedFile:
    return DumpedFile(str(folder), Offset(0), QUARANTINE_FILE)


def _quarantine_entries(file: DumpedFile) -> Iterator[Entry]:
    """Yield what a node has found damaged and does not serve."""
    try:
        known = Quarantine.decode(Path(file.path).read_bytes(), file.path)
    except BadCheckpoint as bad:
        yield "quarantine", {"segment": None}, str(bad)
        return
    for base_offset, flaw in known.entries:
        facts: Row = {
            "segment": path_of(file.folder, base_offset, LOG_SUFFIX),
            "position": flaw.position,
            "size": flaw.end - flaw.position,
            "first_offset": flaw.first_offset,
            "last_offset": flaw.next_offset - 1,
        }
        yield "quarantine", facts, f"{flaw.reason}; not served"


def _aborted_facts(entry: AbortedRange | None) -> dict[str, object]:
    if entry is None:
        return {"producer_id": None}
    return {
        "producer_id": entry.producer_id,
        "first_offset": entry.first_offset,
        "last_offset": entry.last_offset,
        "last_stable_offset": entry.last_stable_offset,
    }


def _producer_facts(found: DumpedProducer) -> dict[str, object]:
    producer = found.producer
    if producer is None:
        return {"producer_id": None}
    return {
        "producer_id": found.producer_id,
        "producer_epoch": producer.epoch,
        "coordinator_epoch": producer.coordinator_epoch,
        "transaction_offset": None if producer.transaction_offset == NO_OFFSET else producer.transaction_offset,
        "heard_ms": producer.heard_ms,
        "batches": [
            {
                "first_sequence": each.first_sequence,
                "last_sequence": each.last_sequence,
                "base_offset": each.base_offset,
                "last_offset": each.last_offset,
            }
            for each in producer.batches
        ],
    }


def _batch_entries(found: DumpedBatch, *, records: bool, metadata: bool) -> Iterator[Entry]:
    header = found.header
    if header is None:
        zeros = found.verdict.startswith("zeros")  # what was allocated beforehand and not yet written
        facts: Row = {"position": found.position, "size": found.size, "content": found.verdict}
        yield "tail", facts, "" if zeros else f"{found.size} bytes that are no whole batch"
        return
    yield "batch", _facts(header, found), found.verdict
    if not records or found.batch is None or found.verdict:
        return
    try:
        for record in read_batch(found.batch):
            if metadata:
                said = facts_of(record, control=header.is_control)
                facts = {"offset": record.offset, "timestamp_ms": record.timestamp}
                yield "record", {**facts, "type": said.type, "fields": said.fields}, said.problem
                continue
            facts = {
                "offset": record.offset,
                "timestamp_ms": record.timestamp,
                "key": plain(record.key),
                "value": plain(record.value),
                "headers": [{"key": each.key, "value": plain(each.value)} for each in record.headers],
                **(_marker_facts(record) if header.is_control else {}),
            }
            yield "record", facts, ""
    except CorruptBatch as error:
        yield "record", {"offset": header.base_offset}, str(error)


def _marker_facts(record: Record) -> dict[str, object]:
    """Return what a control record means, where that is known."""
    marker = marker_of(record)
    if marker is None:
        return {}
    return {"marker": "commit" if marker.committed else "abort", "coordinator_epoch": marker.coordinator_epoch}


def _facts(header: BatchHeader, found: DumpedBatch) -> dict[str, object]:
    known = header.compression in Compression.__members__.values()
    return {
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "position": found.position,
        "size": found.size,
        "records": header.record_count,
        "codec": Compression(header.compression).name.lower() if known else str(header.compression),
        "timestamp_type": header.timestamp_type.name.lower(),
        "first_timestamp_ms": header.first_timestamp,
        "max_timestamp_ms": header.max_timestamp,
        "leader_epoch": header.leader_epoch,
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "base_sequence": header.base_sequence,
        "transactional": header.is_transactional,
        "control": header.is_control,
        "crc": header.crc,
    }


def _line(row: Row) -> str:
    """Write one row for a person; everything is still there, but for what says nothing."""
    match row["kind"]:
        case "batch":
            producer = ""
            if row["producer_id"] != -1:
                producer = f" producer={row['producer_id']}/{row['producer_epoch']} sequence={row['base_sequence']}"
            marks = "".join(f" {mark}" for mark in ("transactional", "control") if row[mark])
            return (
                f"  batch {row['base_offset']}..{row['last_offset']} position={row['position']} size={row['size']} "
                f"records={row['records']} codec={row['codec']} time={_time(row['max_timestamp_ms'])} "
                f"epoch={row['leader_epoch']}{producer}{marks} crc={row['crc']:08x}"
            )
        case "record" if "marker" in row:
            return (
                f"    {row['offset']} {_time(row['timestamp_ms'])} {row['marker']} "
                f"coordinator_epoch={row['coordinator_epoch']}"
            )
        case "record" if "fields" in row:
            fields = row["fields"]
            assert isinstance(fields, dict)
            said = "".join(f" {name}={_text(value)}" for name, value in fields.items())
            return f"    {row['offset']} {_time(row['timestamp_ms'])} {row['type']}{said}"
        case "record" if "timestamp_ms" in row:
            headers = row["headers"]
            assert isinstance(headers, Sequence)
            shown = "".join(f" {_text(each['key'])}:{_text(each['value'])}" for each in headers)
            return (
                f"    {row['offset']} {_time(row['timestamp_ms'])} key={_text(row['key'])} value={_text(row['value'])}"
                f"{shown and ' headers' + shown}"
            )
        case "index":
            return f"  offset={row['offset']} position={row['position']}"
        case "timeindex":
            return f"  time={_time(row['timestamp_ms'])} offset={row['offset']}"
        case "txnindex" | "producer" if row["producer_id"] is None:
            return "  nothing can be learnt from it"
        case "txnindex":
            return (
                f"  producer={row['producer_id']} offsets {row['first_offset']}..{row['last_offset']} "
                f"last_stable_offset={row['last_stable_offset']}"
            )
        case "producer":
            return _producer_line(row)
        case "quarantine" if row["segment"] is not None:
            return (
                f"  offsets {row['first_offset']}..{row['last_offset']} in {row['segment']} "
                f"position={row['position']} size={row['size']}"
            )
        case "quarantine":
            return "  nothing can be learnt from it"
        case "tail":
            return f"  position={row['position']} size={row['size']} {row['content']}"
        case _:
            return f"    {row['offset']}"


def _producer_line(row: Row) -> str:
    batches = row["batches"]
    assert isinstance(batches, Sequence)
    shown = " ".join(
        f"{each['first_sequence']}..{each['last_sequence']}@{each['base_offset']}..{each['last_offset']}"
        for each in batches
    )
    is_open = "" if row["transaction_offset"] is None else f" open transaction from {row['transaction_offset']}"
    return (
        f"  producer={row['producer_id']}/{row['producer_epoch']} coordinator_epoch={row['coordinator_epoch']} "
        f"heard={_time(row['heard_ms'])}{is_open} sequences {shown or 'none'}"
    )


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _time(timestamp_ms: object) -> str:
    assert isinstance(timestamp_ms, int)
    return time_text(timestamp_ms, "milliseconds") or "none"
