"""Looking into indexes of aborted transactions and snapshots of producers: every entry with its verdict."""

import pytest

from riverlog.log.dump.transactions import DumpedAborted, dump_aborted, dump_snapshot, snapshots_of
from riverlog.log.log import Log
from riverlog.log.producers.aborted_transactions import AbortedIndex, AbortedRange
from riverlog.model.ids import LeaderEpoch, Offset, ProducerEpoch, ProducerId
from riverlog.model.settings import DEFAULT_TOPIC_CONFIG
from riverlog.records.batch import read_header
from riverlog.records.control import Marker, build_marker, read_marker
from riverlog.records.record import BatchBuilder
from tests.support.disk import MemoryDisk

FOLDER, ZERO = "/orders-0", Offset(0)
INDEX = f"{FOLDER}/{0:020d}.txnindex"
ABORTED = AbortedRange(ProducerId(7), Offset(0), Offset(2), Offset(1))


@pytest.fixture
def disk() -> MemoryDisk:
    """Producers 7 and 8 write two batches each; 7 is aborted at 2, 8 committed at 5, and 7 writes again."""
    disk = MemoryDisk()
    log = Log.open(disk, FOLDER, DEFAULT_TOPIC_CONFIG, recovery_point=ZERO, clean=False, now_ms=0)
    written = [
        batch(7, 0),
        batch(8, 0),
        build_marker(Marker(False, 4), ProducerId(7), ProducerEpoch(1), timestamp_ms=3),
        batch(8, 1),
        batch(7, 0, epoch=1),
        build_marker(Marker(True, 4), ProducerId(8), ProducerEpoch(0), timestamp_ms=5),
    ]
    for each in map(memoryview, written):
        header = read_header(each)
        marker = read_marker(each) if header.is_control else None
        log.append(each, header, leader_epoch=LeaderEpoch(0), now_ms=0, marker=marker)
    log.close()
    return disk


def batch(producer_id: int, sequence: int, *, epoch: int = 0) -> bytearray:
    builder = BatchBuilder(
        producer_id=ProducerId(producer_id),
        producer_epoch=ProducerEpoch(epoch),
        base_sequence=sequence,
        transactional=True,
    )
    builder.append(None, b"value", timestamp_ms=sequence)
    return builder.build()


def written_over(disk: MemoryDisk, path: str, content: bytes) -> None:
    file = disk.open(path, create=True)
    file.truncate(0)
    file.write(0, (content,))
    file.close()


def test_what_the_log_writes_is_found_right(disk: MemoryDisk) -> None:
    assert list(dump_aborted(disk, FOLDER, ZERO)) == [DumpedAborted(ABORTED, "")]
    (offset,) = snapshots_of(disk, FOLDER)
    assert offset == 6
    seven, eight = dump_snapshot(disk, FOLDER, offset)
    assert (seven.producer_id, eight.producer_id) == (7, 8)
    assert seven.producer is not None and eight.producer is not None
    assert (seven.producer.epoch, seven.producer.transaction_offset, seven.verdict) == (1, 4, "")
    assert (eight.producer.epoch, eight.producer.transaction_offset, eight.verdict) == (0, -1, "")
    assert [each.base_offset for each in eight.producer.batches] == [1, 3]


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        ({"first_offset": 3}, "it ends before it begins"),
        ({"last_stable_offset": 4}, "the last stable offset lies behind its marker"),
        ({"last_offset": 3}, "no marker of producer 7 lies at offset 3"),
        ({"producer_id": 9}, "no marker of producer 9 lies at offset 2"),
        ({"producer_id": 8, "last_offset": 5}, "its marker says that it was committed"),
    ],
)
def test_entries_that_the_segment_does_not_bear_out_are_wrong(
    disk: MemoryDisk, change: dict[str, int], verdict: str
) -> None:
    entry = ABORTED._replace(**change)  # type: ignore[arg-type]  # plain numbers are quicker to read here
    written_over(disk, INDEX, bytes(AbortedIndex([entry]).content))
    assert list(dump_aborted(disk, FOLDER, ZERO)) == [DumpedAborted(entry, verdict)]


def test_an_entry_that_comes_twice_is_wrong(disk: MemoryDisk) -> None:
    written_over(disk, INDEX, bytes(AbortedIndex([ABORTED, ABORTED]).content))
    assert [each.verdict for each in dump_aborted(disk, FOLDER, ZERO)] == ["", "not behind the entry before it"]


def test_bytes_that_are_no_entry_are_named_and_the_others_read(disk: MemoryDisk) -> None:
    written_over(disk, INDEX, b"\xff" * 34 + bytes(AbortedIndex([ABORTED]).content) + b"torn")
    assert list(dump_aborted(disk, FOLDER, ZERO)) == [
        DumpedAborted(None, "what lies at position 0 is no entry"),
        DumpedAborted(ABORTED, ""),
        DumpedAborted(None, "what lies at position 68 is no entry"),
    ]


def test_a_snapshot_that_is_damaged_or_ahead_of_itself_is_wrong(disk: MemoryDisk) -> None:
    path = f"{FOLDER}/{6:020d}.snapshot"
    content = disk.open(path).read(0, 10_000)
    written_over(disk, f"{FOLDER}/{4:020d}.snapshot", bytes(content))
    ahead, _ = dump_snapshot(disk, FOLDER, Offset(4))
    assert ahead.verdict == "its transaction begins at 4, behind the snapshot"
    written_over(disk, path, bytes(content[:-1]))
    (damaged,) = dump_snapshot(disk, FOLDER, Offset(6))
    assert (damaged.producer, damaged.verdict) == (None, "the producer snapshot is damaged")


def test_an_index_that_is_gone_or_shorter_than_it_was_is_wrong(disk: MemoryDisk) -> None:
    disk.remove(INDEX)
    (missing,) = dump_aborted(disk, FOLDER, ZERO)
    assert missing.entry is None
    assert missing.verdict.startswith("0 of its 34 bytes are there")
