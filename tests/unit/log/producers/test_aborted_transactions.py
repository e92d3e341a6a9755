"""The index of aborted transactions: what it finds, and what becomes of it with its segment."""

import errno
from dataclasses import replace

import pytest

from riverlog.log.log import Log
from riverlog.log.producers.aborted_checkpoint import ABORTED_FILE
from riverlog.log.producers.aborted_transactions import (
    AbortedIndex,
    AbortedRange,
    AbortedTransactions,
    BadAbortedIndex,
)
from riverlog.log.segments.log_folder import LogFolder
from riverlog.log.segments.open_files import OpenFiles
from riverlog.log.truncation import truncate
from riverlog.model.ids import Offset, ProducerId
from riverlog.model.settings import DEFAULT_TOPIC_CONFIG
from tests.support.disk import MemoryDisk
from tests.support.reading_committed import append, committed_values, end, transactional_batch

FOLDER = "/orders-0"
CONFIG = replace(DEFAULT_TOPIC_CONFIG, segment_bytes=400, index_interval_bytes=100)


def aborted(first: int, last: int, stable: int, producer: int = 7) -> AbortedRange:
    return AbortedRange(ProducerId(producer), Offset(first), Offset(last), Offset(stable))


def open_log(disk: MemoryDisk, *, recovery_point: int = 0, clean: bool = False) -> Log:
    return Log.open(disk, FOLDER, CONFIG, recovery_point=Offset(recovery_point), clean=clean, now_ms=0)


def fill(log: Log) -> None:
    """Write transactions of two producers that overlap; those of the second are aborted."""
    for number in range(12):
        append(log, transactional_batch(7, number, b"kept %d" % number))
        append(log, transactional_batch(8, number, b"lost %d" % number))
        end(log, 7, committed=True)
        end(log, 8, committed=False)


KEPT = [b"kept %d" % number for number in range(12)]


def test_the_files_form_is_kafkas() -> None:
    index = AbortedIndex([aborted(1, 5, 6, producer=3)])
    assert bytes(index.content) == b"\0\0" + b"".join(number.to_bytes(8, "big") for number in (3, 1, 5, 6))
    assert list(AbortedIndex.decode(bytes(index.content), Offset(0))) == [aborted(1, 5, 6, producer=3)]


@pytest.mark.parametrize(
    "content",
    [
        b"\0",
        AbortedIndex([aborted(1, 5, 6)]).content[:-1],
        b"\0\1" + AbortedIndex([aborted(1, 5, 6)]).content[2:],
        AbortedIndex([aborted(6, 5, 6)]).content,
        AbortedIndex([aborted(1, 5, 7)]).content,
        AbortedIndex([aborted(0, 2, 3)]).content,
        AbortedIndex([aborted(1, 6, 7), aborted(1, 6, 7)]).content,
    ],
)
def test_a_file_that_cannot_be_is_not_believed(content: bytes) -> None:
    with pytest.raises(BadAbortedIndex):
        AbortedIndex.decode(bytes(content), Offset(3))


def test_a_range_meets_those_that_overlap_it() -> None:
    transactions = AbortedTransactions(LogFolder(MemoryDisk(), OpenFiles(), "", 100))
    long, short, late = aborted(3, 30, 31), aborted(5, 8, 3), aborted(40, 45, 46)
    transactions.append(Offset(0), [short])
    transactions.append(Offset(20), [long])
    transactions.append(Offset(40), [late])
    assert transactions.find(Offset(0), Offset(0), Offset(3)) == []
    assert transactions.find(Offset(0), Offset(0), Offset(6)) == [long, short]
    assert transactions.find(Offset(0), Offset(9), Offset(10)) == [long]
    assert transactions.find(Offset(20), Offset(31), Offset(40)) == []
    assert transactions.find(Offset(20), Offset(30), Offset(41)) == [long, late]
    assert transactions.find(Offset(40), Offset(46), Offset(99)) == []


def test_readers_of_committed_records_pass_over_aborted_ones() -> None:
    log = open_log(MemoryDisk())
    fill(log)
    assert len(log.segments) > 3
    for bytes_max in (1, 150, 1 << 20):
        assert committed_values(log, bytes_max=bytes_max) == KEPT


def test_nothing_behind_an_open_transaction_is_stable() -> None:
    log = open_log(MemoryDisk())
    fill(log)
    opened = append(log, transactional_batch(9, 0, b"open"))
    append(log, transactional_batch(7, 12, b"behind it"))
    end(log, 7, committed=True)
    assert committed_values(log) == KEPT
    assert log.last_stable_offset(log.log_end_offset) == opened
    log.advance_log_start(Offset(opened + 1))
    assert log.last_stable_offset(log.log_end_offset) == opened + 1
    end(log, 9, committed=False)
    assert committed_values(log, opened + 1) == [b"behind it"]


@pytest.mark.parametrize("recovery_point", [0, 17, 30, 48])
def test_a_crash_costs_no_entry(recovery_point: int) -> None:
    disk = MemoryDisk()
    log = open_log(disk)
    fill(log)
    log.flush()
    for name in disk.list(FOLDER):  # as if nothing of them above the recovery point had reached the medium
        if name.endswith(".txnindex") and int(name[:20]) >= recovery_point:
            disk.remove(f"{FOLDER}/{name}")
    log = open_log(disk, recovery_point=recovery_point)
    assert committed_values(log) == KEPT
    log.close()
    assert committed_values(open_log(disk, recovery_point=48, clean=True)) == KEPT


def test_entries_are_on_the_medium_before_their_markers_count_as_flushed() -> None:
    disk = MemoryDisk()
    log = open_log(disk)
    fill(log)
    log.flush()
    disk.crash()
    assert committed_values(open_log(disk, recovery_point=48)) == KEPT


@pytest.mark.parametrize("seed", range(10))
def test_entries_that_a_killed_process_left_in_the_page_cache_are_synced(seed: int) -> None:
    disk = MemoryDisk(seed)
    log = open_log(disk)
    fill(log)
    disk.kill()
    open_log(disk).close()
    disk.crash()
    assert committed_values(open_log(disk, recovery_point=48)) == KEPT


def test_a_damaged_index_is_made_again() -> None:
    disk = MemoryDisk()
    log = open_log(disk)
    fill(log)
    log.close()
    names = [name for name in disk.list(FOLDER) if name.endswith(".txnindex")]
    assert len(names) > 3
    for name in names:
        disk.open(f"{FOLDER}/{name}").truncate(20)
    log = open_log(disk, recovery_point=48, clean=True)
    assert committed_values(log) == KEPT
    log.close()
    assert committed_values(open_log(disk, recovery_point=48, clean=True)) == KEPT
    assert disk.open(f"{FOLDER}/{names[0]}").size() % 34 == 0


@pytest.mark.parametrize("lost", ["removed", "emptied", "shortened", "altered"])
def test_an_index_that_is_lost_is_missed_and_built_again(lost: str) -> None:
    disk = MemoryDisk()
    log = open_log(disk)
    fill(log)
    log.close()
    names = [f"{FOLDER}/{name}" for name in disk.list(FOLDER) if name.endswith(".txnindex")]
    written = {name: disk.content(name) for name in names}
    for name in names:
        match lost:
            case "removed":
                disk.remove(name)
            case "emptied" | "shortened":
                disk.open(name).truncate(0 if lost == "emptied" else len(written[name]) - 34)
            case _:
                disk.open(name).write(9, (b"\xff",))  # of the producer's id: such an entry could be right
    log = open_log(disk, recovery_point=48, clean=True)
    assert committed_values(log) == KEPT
    log.close()
    assert {name: disk.content(name) for name in names} == written


def test_an_index_that_is_lost_after_a_crash_is_missed_where_nothing_is_replayed() -> None:
    disk = MemoryDisk()
    log = open_log(disk)
    fill(log)
    log.flush()
    for name in disk.list(FOLDER):
        if name.endswith(".txnindex"):
            disk.remove(f"{FOLDER}/{name}")
    assert committed_values(open_log(disk, recovery_point=48)) == KEPT


def test_where_it_is_not_known_how_large_indexes_were_all_are_built_again() -> None:
    disk = MemoryDisk()
    log = open_log(disk)
    fill(log)
    log.close()
    disk.open(f"{FOLDER}/{ABORTED_FILE}").truncate(20)
    for name in disk.list(FOLDER):
        if name.endswith(".txnindex"):
            disk.remove(f"{FOLDER}/{name}")
    assert committed_values(open_log(disk, recovery_point=48, clean=True)) == KEPT


def test_a_log_without_aborted_transactions_has_no_file_about_them() -> None:
    disk = MemoryDisk()
    log = open_log(disk)
    append(log, transactional_batch(7, 0, b"kept"))
    end(log, 7, committed=True)
    log.close()
    assert not disk.exists(f"{FOLDER}/{ABORTED_FILE}")


def test_an_index_is_cut_and_deleted_with_its_log() -> None:
    disk = MemoryDisk()
    log = open_log(disk)
    fill(log)
    log.flush()
    truncate(log, Offset(23), now_ms=0)  # the marker of the sixth abortion
    assert committed_values(log) == KEPT[:6]
    assert log.last_stable_offset(log.log_end_offset) == 21
    end(log, 8, committed=False)
    assert committed_values(log) == KEPT[:6]
    assert log.last_stable_offset(log.log_end_offset) == 24
    truncate(log, Offset(0), now_ms=0)
    assert log.segments.aborted.find(Offset(0), Offset(0), Offset(100)) == []
    log.segments.remove_deleted(1 << 40)
    assert {disk.content(f"{FOLDER}/{name}") for name in disk.list(FOLDER) if ".txnindex" in name} == {b""}


def test_a_write_that_fails_leaves_no_entry() -> None:
    disk = MemoryDisk()
    log = open_log(disk)
    append(log, transactional_batch(7, 0, b"lost"))
    disk.fail(1, errno.ENOSPC, on=("write",))  # the entry is written, the marker is not
    with pytest.raises(OSError, match="space"):
        end(log, 7, committed=False)
    disk.heal()
    assert log.segments.aborted.find(Offset(0), Offset(0), Offset(9)) == []
    assert end(log, 7, committed=False) == 1
    assert list(log.segments.aborted.of(Offset(0))) == [aborted(0, 1, 2)]
