"""Crashes, failures and damage at every possible moment: nothing flushed is lost, nothing wrong is served."""

import errno
from collections.abc import Callable
from dataclasses import replace

import pytest

from riverlog.log.log import Log
from riverlog.log.truncation import truncate
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import LeaderEpoch, Offset
from riverlog.model.settings import DEFAULT_TOPIC_CONFIG, Durability
from riverlog.records.batch import check_produced
from tests.support.batches import batch_of, records_of
from tests.support.disk import Crashed, MemoryDisk, MemoryFile

FOLDER = "/data/orders-0"
ACTIVE = f"{FOLDER}/{0:020d}.log"
CONFIG = replace(DEFAULT_TOPIC_CONFIG, segment_bytes=600, index_interval_bytes=100)
ONE_SEGMENT = replace(CONFIG, segment_bytes=1 << 20)
NOW = 10_000
BATCH_BYTES = 75


def new_disk(seed: int = 0) -> MemoryDisk:
    disk = MemoryDisk(seed)
    disk.make_folder("/data")
    disk.sync_folder("/")
    return disk


def open_log(disk: MemoryDisk, recovery_point: int = 0, *, clean: bool = False, one_segment: bool = False) -> Log:
    config = ONE_SEGMENT if one_segment else CONFIG
    return Log.open(disk, FOLDER, config, recovery_point=Offset(recovery_point), clean=clean, now_ms=NOW)


def append(log: Log, number: int) -> None:
    batch = batch_of([b"value %d" % number], timestamp_ms=number, producer_id=1, producer_epoch=0, base_sequence=number)
    header = check_produced(batch, batch_bytes_max=1 << 20)
    appended = log.append(batch, header, leader_epoch=LeaderEpoch(number // 10), now_ms=NOW)
    assert appended.base_offset == number


def values(log: Log, offset: int | None = None) -> list[bytes]:
    """Read from an offset to the end, one batch at a time."""
    found = []
    at = log.log_start_offset if offset is None else Offset(offset)
    while at < log.log_end_offset:
        records = records_of(log.read(at, bytes_max=1, upto=log.log_end_offset).records)
        found += [record.value or b"" for record in records]
        at = Offset(records[-1].offset + 1)
    return found


def numbered(count: int) -> list[bytes]:
    return [b"value %d" % number for number in range(count)]


def work(log: Log, flushed: list[int]) -> None:
    """Append, sync now and then, and go on appending; note what is promised to be durable."""
    for number in range(log.log_end_offset, log.log_end_offset + 24):
        append(log, number)
        if number % 7 == 6:
            log.flush()
            flushed.append(log.flushed_offset)


@pytest.mark.parametrize("seed", range(2))
def test_a_crash_at_any_disk_operation_keeps_what_was_flushed(seed: int) -> None:
    steps = 0
    survived = -1
    while True:
        disk = new_disk(seed)
        flushed = [0]
        disk.crash_after(steps)
        try:
            log = open_log(disk)
            work(log, flushed)
            log.close()
            disk.heal()
        except Crashed:
            pass
        else:
            break
        disk.crash()
        log = open_log(disk, recovery_point=flushed[-1] if steps % 2 else 0)
        assert log.damage == []
        assert log.log_end_offset >= flushed[-1]
        assert values(log) == numbered(log.log_end_offset)
        survived = max(survived, log.log_end_offset)
        work(log, flushed)
        assert values(log) == numbered(log.log_end_offset)
        steps += 1
    assert steps > 100
    assert survived > 0


@pytest.mark.parametrize(("error", "lasting"), [(errno.EIO, True), (errno.ENOSPC, False)])
def test_a_failure_at_any_disk_operation_loses_nothing_flushed(error: int, lasting: bool) -> None:
    steps = 0
    while True:
        disk = new_disk(steps)
        flushed = [0]
        first_failing = disk.steps + steps
        disk.fail(steps, error, lasting=lasting)
        log = None
        try:
            log = open_log(disk)
            work(log, flushed)
            log.close()
        except OSError:
            pass
        else:
            if disk.steps <= first_failing:
                break
            log = None  # it could do without what failed, and is closed
        disk.heal()
        if log is not None:
            # What was appended before can still be read, and nothing else.
            assert values(log) == numbered(log.log_end_offset)
            log.release()
        disk.crash()
        log = open_log(disk, recovery_point=flushed[-1])
        assert log.damage == []
        assert log.log_end_offset >= flushed[-1]
        assert values(log) == numbered(log.log_end_offset)
        steps += 1
    assert steps > 100


def test_recovery_reads_little_below_the_recovery_point(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("riverlog.log.producers.snapshots._INTERVAL_BYTES", 20_000)
    disk = new_disk()
    log = open_log(disk, one_segment=True)
    for number in range(2_000):
        append(log, number)
        if number % 100 == 99:
            log.flush()
    size = log.size
    assert len([name for name in disk.list(FOLDER) if name.endswith(".snapshot")]) == 1
    read_from_log: list[int] = []
    original = MemoryFile.read

    def read(file: MemoryFile, position: int, count: int) -> bytes:
        if file.path.endswith(".log"):
            read_from_log.append(count)
        return original(file, position, count)

    monkeypatch.setattr(MemoryFile, "read", read)
    log = open_log(disk, recovery_point=1_990, one_segment=True)
    assert log.log_end_offset == 2_000
    assert sum(read_from_log) < size / 3
    assert values(log, 1_900) == numbered(2_000)[1_900:]


@pytest.mark.parametrize("durability", Durability)
def test_what_a_killed_process_left_in_the_page_cache_is_synced_before_it_counts(durability: Durability) -> None:
    config = replace(CONFIG, durability=durability)
    for seed in range(10):
        disk = new_disk(seed)
        killed = open_log(disk)
        for number in range(20):
            append(killed, number)
        log = Log.open(disk, FOLDER, config, recovery_point=Offset(0), clean=False, now_ms=NOW)
        assert log.log_end_offset == 20
        if durability is Durability.OS:
            assert log.flushed_offset == 0
            log.flush()
        assert log.flushed_offset == 20
        disk.crash()
        assert values(open_log(disk)) == numbered(20)


def test_a_failed_append_changes_nothing_and_the_next_one_takes_its_place() -> None:
    disk = new_disk()
    log = open_log(disk)
    for number in range(20):
        disk.fail(0, errno.ENOSPC, on=("write", "create"))
        with pytest.raises(OSError, match="No space"):
            append(log, number)
        assert log.log_end_offset == number
        append(log, number)
    log.close()
    log = open_log(disk, 20, clean=True)
    assert values(log) == numbered(20)
    assert log.bytes_cut == 0


def test_a_torn_tail_is_cut_at_every_byte_of_the_last_batch() -> None:
    disk = new_disk()
    log = open_log(disk, one_segment=True)
    for number in range(5):
        append(log, number)
    log.flush()
    content = _content(disk, ACTIVE)
    whole = log.read(Offset(0), bytes_max=1 << 20, upto=Offset(4)).size
    for rest in (b"", b"\xff" * 100):
        for size in range(whole, len(content)):
            _replace(disk, ACTIVE, content[:size] + rest)
            log = open_log(disk, one_segment=True)
            assert values(log) == numbered(4)
            assert log.bytes_cut == size + len(rest) - whole
            assert _content(disk, ACTIVE) == content[:whole]
            append(log, 4)
            assert values(log) == numbered(5)


def test_zeros_behind_the_last_batch_are_simply_the_end() -> None:
    disk = new_disk()
    log = open_log(disk, one_segment=True)
    append(log, 0)
    log.flush()
    _replace(disk, ACTIVE, _content(disk, ACTIVE) + bytes(4_096))
    log = open_log(disk, one_segment=True)
    assert log.log_end_offset == 1
    assert log.damage == []


def test_a_flipped_bit_above_the_recovery_point_ends_the_log_there() -> None:
    disk = new_disk()
    log = open_log(disk, one_segment=True)
    for number in range(5):
        append(log, number)
    log.flush()
    disk.damage(ACTIVE, len(_content(disk, ACTIVE)) // 2)
    log = open_log(disk, one_segment=True)
    assert values(log) == numbered(2)


@pytest.mark.parametrize("clean", [False, True])
@pytest.mark.parametrize("one_segment", [False, True])
def test_damage_below_the_recovery_point_is_neither_cut_nor_served(clean: bool, one_segment: bool) -> None:
    for position in range(60, 400, 9):
        disk = new_disk()
        log = open_log(disk, one_segment=one_segment)
        for number in range(30):
            append(log, number)
        log.close()
        content = _content(disk, ACTIVE)
        disk.damage(ACTIVE, position)
        log = open_log(disk, 30, clean=clean, one_segment=one_segment)
        assert log.log_end_offset == 30
        seen, refused = _read_each(log, 30)
        assert seen == {number: value for number, value in enumerate(numbered(30)) if number not in refused}, position
        assert len(refused) == len(log.damage) == 1
        assert len(_content(disk, ACTIVE)) == len(content)
        append(log, 30)
        assert values(log, 30) == [b"value 30"]


def _read_each(log: Log, end: int) -> tuple[dict[int, bytes], set[int]]:
    """Read every offset by itself: what is there, and what is refused."""
    seen: dict[int, bytes] = {}
    refused: dict[int, ErrorCode] = {}
    for offset in range(end):
        try:
            records = records_of(log.read(Offset(offset), bytes_max=1, upto=log.log_end_offset).records)
        except Refusal as refusal:
            refused[offset] = refusal.code
        else:
            seen |= {record.offset: record.value or b"" for record in records}
    assert set(refused.values()) <= {ErrorCode.CORRUPT_MESSAGE}
    return seen, set(refused)


def test_missing_bytes_below_the_recovery_point_are_reported_and_their_offsets_not_reused() -> None:
    disk = new_disk()
    log = open_log(disk, one_segment=True)
    for number in range(10):
        append(log, number)
    log.flush()
    _replace(disk, ACTIVE, _content(disk, ACTIVE)[:300])
    log = open_log(disk, 10, one_segment=True)
    assert len(log.damage) == 1
    assert log.log_end_offset == 10
    seen, refused = _read_each(log, 10)
    assert refused == set(range(4, 10))
    assert seen == {number: b"value %d" % number for number in range(len(seen))}
    batch = batch_of([b"new"])
    header = check_produced(batch, batch_bytes_max=1 << 20)
    assert log.append(batch, header, leader_epoch=LeaderEpoch(9), now_ms=NOW).base_offset == 10
    assert values(log, 10) == [b"new"]


def test_a_log_whose_files_are_gone_goes_on_where_it_was() -> None:
    disk = new_disk()
    log = open_log(disk, 50)
    assert (log.log_start_offset, log.log_end_offset) == (0, 50)
    assert len(log.damage) == 1
    seen, refused = _read_each(log, 50)
    assert (seen, refused) == ({}, set(range(50)))
    log.advance_log_start(Offset(50))
    assert log.damage == []


@pytest.mark.parametrize("suffix", ["index", "timeindex"])
@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize(
    "spoil",
    [
        lambda content: b"",
        lambda content: content[: len(content) // 2],
        lambda content: content[:-4],
        lambda content: bytes(len(content)),
        lambda content: content[::-1],
        lambda content: content + bytes(96),
        lambda content: content[:8] + bytes([content[8] ^ 1]) + content[9:] if len(content) > 8 else b"x",
        lambda content: bytes((byte + 1) % 256 for byte in content),
    ],
)
def test_spoilt_indexes_cost_time_but_change_no_answer(
    suffix: str, clean: bool, spoil: Callable[[bytes], bytes]
) -> None:
    disk = new_disk()
    log = open_log(disk)
    for number in range(40):
        append(log, number)
    log.close()
    for name in disk.list(FOLDER):
        if name.endswith("." + suffix):
            _replace(disk, f"{FOLDER}/{name}", spoil(_content(disk, f"{FOLDER}/{name}")))
    log = open_log(disk, 40 if clean else 21, clean=clean)
    assert values(log) == numbered(40)
    for number in range(40):
        assert records_of(log.read(Offset(number), bytes_max=1, upto=Offset(40)).records)[0].offset == number
        found = log.offset_for_time(number)
        assert found is not None
        assert found.offset == number
    assert log.offset_for_time(40) is None


def test_missing_files_are_found_out_again() -> None:
    disk = new_disk()
    log = open_log(disk)
    for number in range(40):
        append(log, number)
    epochs = log.epochs.entries()
    log.close()
    for name in disk.list(FOLDER):
        if not name.endswith(".log"):
            disk.remove(f"{FOLDER}/{name}")
    log = open_log(disk, 40, clean=True)
    assert log.epochs.entries() == epochs
    batch = batch_of([b"value 38"], timestamp_ms=38, producer_id=1, producer_epoch=0, base_sequence=38)
    header = check_produced(batch, batch_bytes_max=1 << 20)
    assert log.append(batch, header, leader_epoch=LeaderEpoch(4), now_ms=NOW).duplicate
    append(log, 40)


def test_a_truncation_that_a_crash_undid_does_not_mix_two_histories() -> None:
    for seed in range(40):
        disk = new_disk(seed)
        log = open_log(disk, one_segment=True)
        for number in range(10):
            append(log, number)
        log.flush()
        truncate(log, Offset(5), now_ms=NOW)
        for number in range(5, 8):
            batch = batch_of([b"other %d" % number], timestamp_ms=number)
            header = check_produced(batch, batch_bytes_max=1 << 20)
            log.append(batch, header, leader_epoch=LeaderEpoch(7), now_ms=NOW)
        disk.crash()
        log = open_log(disk, 5, one_segment=True)
        tail = values(log, 5)
        assert tail in (
            [b"value %d" % n for n in range(5, 10)][: len(tail)],
            [b"other %d" % n for n in range(5, 8)][: len(tail)],
        )


def _content(disk: MemoryDisk, path: str) -> bytes:
    file = disk.open(path)
    try:
        return file.read(0, file.size())
    finally:
        file.close()


def _replace(disk: MemoryDisk, path: str, content: bytes) -> None:
    file = disk.open(path)
    file.truncate(0)
    file.write(0, [content])
    file.sync()
    file.close()
