"""Transactions in a log that is cleaned: what goes, and how long markers stay."""

from dataclasses import replace

import pytest

from riverlog.log.compaction.cleaned_transactions import CleanedTransactions
from riverlog.log.log import Log
from riverlog.log.producers.aborted_transactions import AbortedRange
from riverlog.model.ids import LeaderEpoch, Offset, ProducerEpoch, ProducerId
from riverlog.model.settings import DEFAULT_TOPIC_CONFIG
from riverlog.records.batch import BatchHeader, assign, read_header
from riverlog.records.control import Marker, build_marker
from riverlog.records.record import read_batches
from tests.support.batches import batch_of
from tests.support.compacting import compact
from tests.support.disk import MemoryDisk
from tests.support.reading_committed import append, committed_values, end, transactional_batch

FOLDER = "/data/orders-0"
CONFIG = replace(DEFAULT_TOPIC_CONFIG, cleanup_compact=True, delete_retention_ms=1_000)
NOW = 50_000
COMMIT, ABORT = Marker(True, 0), Marker(False, 0)
GONE = AbortedRange(ProducerId(7), Offset(2), Offset(5), Offset(6))


def header(offset: int, *, producer: int = 7) -> BatchHeader:
    batch = transactional_batch(producer, 0, b"value")
    assign(batch, Offset(offset), LeaderEpoch(0))
    return read_header(batch)


def marker_header(offset: int, *, producer: int = 7) -> BatchHeader:
    batch = memoryview(build_marker(ABORT, ProducerId(producer), ProducerEpoch(0), timestamp_ms=0))
    assign(batch, Offset(offset), LeaderEpoch(0))
    return read_header(batch)


def test_batches_between_its_first_and_its_marker_are_aborted() -> None:
    transactions = CleanedTransactions([GONE])
    assert [transactions.is_aborted(header(offset)) for offset in range(1, 8)] == [
        False, True, True, True, True, False, False,
    ]  # fmt: skip
    assert not transactions.is_aborted(header(3, producer=8))
    assert not transactions.is_aborted(read_header(batch_of())._replace(base_offset=Offset(3)))


def test_an_abortion_is_over_when_none_of_its_batches_is_left() -> None:
    for is_left in (True, False):
        transactions = CleanedTransactions([GONE])
        if is_left:
            transactions.note(header(3))
        assert transactions.is_over(marker_header(5), ABORT) is not is_left
        assert transactions.left_in(Offset(0), Offset(9)) == [GONE] * is_left
        assert transactions.left_in(Offset(6), Offset(9)) == []


def test_a_commit_is_over_when_no_batch_stands_before_it() -> None:
    transactions = CleanedTransactions([])
    transactions.note(header(3))
    assert transactions.is_over(marker_header(4, producer=8), COMMIT)
    assert not transactions.is_over(marker_header(5), COMMIT)
    assert transactions.is_over(marker_header(6), COMMIT)


class Shop:
    """A compacted log with transactions."""

    def __init__(self) -> None:
        self.disk = MemoryDisk()
        self.log = self.open(recovery_point=0)

    def open(self, *, recovery_point: int) -> Log:
        return Log.open(
            self.disk, FOLDER, CONFIG, recovery_point=Offset(recovery_point), clean=recovery_point > 0, now_ms=NOW
        )

    def compact(self, now_ms: int) -> list[tuple[int, bool, int]]:
        """Clean the log; say what is left in it: offsets, whether it is a marker, how many records."""
        self.log.roll(NOW)
        compact(self.disk, self.log, now_ms=now_ms)
        found = self.log.read(Offset(0), bytes_max=1 << 20, upto=self.log.log_end_offset).records
        data = b"" if found is None else found.file.read(found.position, found.size)
        return [(each.base_offset, each.is_control, len(records)) for each, records in read_batches(data)]

    def restart_without_snapshots(self) -> None:
        end = self.log.log_end_offset
        self.log.close()
        for name in self.disk.list(FOLDER):
            if name.endswith(".snapshot"):
                self.disk.remove(f"{FOLDER}/{name}")
        self.log = self.open(recovery_point=end)


@pytest.mark.parametrize("committed", [True, False])
def test_a_marker_stays_as_long_as_a_batch_of_its_transaction(committed: bool) -> None:
    shop = Shop()
    append(shop.log, transactional_batch(7, 0, b"1", key=b"a"))
    end(shop.log, 7, committed=committed)
    append(shop.log, transactional_batch(8, 0, b"2", key=b"a"))
    end(shop.log, 8, committed=True)
    for now_ms in (NOW, NOW + 2_000, NOW + 4_000):
        left = shop.compact(now_ms)
        assert left == [(0, False, 0), (1, True, 1), (2, False, 1), (3, True, 1)], "a retry of it may still come"
    shop.restart_without_snapshots()
    assert committed_values(shop.log) == [b"2"]
    assert shop.log.last_stable_offset(shop.log.log_end_offset) == 4


def test_a_marker_goes_when_all_of_its_transaction_did_and_time_has_passed() -> None:
    shop = Shop()
    append(shop.log, transactional_batch(7, 0, b"1", key=b"a"))
    end(shop.log, 7, committed=False, epoch=1)  # whose epoch makes a retry of the batch impossible
    append(shop.log, transactional_batch(8, 0, b"2", key=b"a"))
    end(shop.log, 8, committed=True)
    assert shop.compact(NOW) == [(1, True, 1), (2, False, 1), (3, True, 1)]
    assert list(shop.log.segments.aborted.of(Offset(0))) != [], "its batch was there when the cleaning began"
    assert shop.compact(NOW + 1) == [(1, True, 1), (2, False, 1), (3, True, 1)]
    assert list(shop.log.segments.aborted.of(Offset(0))) == []
    assert shop.compact(NOW + 1_000) == [(1, True, 1), (2, False, 1), (3, True, 1)]
    assert shop.compact(NOW + 1_001) == [(1, True, 0), (2, False, 1), (3, True, 1)], "it still fences earlier epochs"
    shop.restart_without_snapshots()
    producer = shop.log.producers.get(ProducerId(7))
    assert producer is not None
    assert producer.epoch == 1
    shop.log.producers.expire(1 << 60)
    assert [offset for offset, _, _ in shop.compact(NOW + 1_002)] == [2, 3]


def test_what_a_transaction_committed_replaces_and_is_replaced_and_what_was_aborted_does_not() -> None:
    shop = Shop()
    append(shop.log, transactional_batch(7, 0, b"old", key=b"a"))
    append(shop.log, transactional_batch(8, 0, b"aborted", key=b"a"))
    end(shop.log, 8, committed=False)
    append(shop.log, transactional_batch(7, 1, b"new", key=b"a"))
    append(shop.log, transactional_batch(7, 2, None, key=b"b"))
    end(shop.log, 7, committed=True)
    shop.log.roll(NOW)
    append(shop.log, transactional_batch(9, 0, b"open", key=b"a"))
    shop.compact(NOW)
    assert committed_values(shop.log) == [b"new", None]
    shop.compact(NOW + 1_000)
    assert committed_values(shop.log) == [b"new"]


def test_an_open_transaction_keeps_its_segment_from_being_cleaned() -> None:
    shop = Shop()
    append(shop.log, transactional_batch(7, 0, b"1", key=b"a"))
    append(shop.log, transactional_batch(7, 1, b"2", key=b"a"))
    assert shop.compact(NOW) == [(0, False, 1), (1, False, 1)]
