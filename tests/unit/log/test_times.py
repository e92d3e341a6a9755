"""Finding records by time in a log of which some are gone."""

from dataclasses import replace

from riverlog.log.log import Log
from riverlog.model.ids import LeaderEpoch, Offset
from riverlog.model.settings import DEFAULT_TOPIC_CONFIG
from riverlog.records.batch import check_produced, read_header
from riverlog.records.record import BatchBuilder
from riverlog.records.walk import _batch
from tests.support.compacting import compact
from tests.support.disk import MemoryDisk

CONFIG = replace(DEFAULT_TOPIC_CONFIG, cleanup_compact=True, delete_retention_ms=0)


def a_compacted_log(*batches: list[tuple[bytes, bytes | None, int]], twice: bool = False) -> Log:
    disk = MemoryDisk()
    log = Log.open(disk, "/data/orders-0", CONFIG, recovery_point=Offset(0), clean=True, now_ms=1)
    for entries in batches:
        builder = BatchBuilder()
        for key, value, timestamp_ms in entries:
            builder.append(key, value, timestamp_ms=timestamp_ms)
        batch = memoryview(builder.build())
        log.append(batch, check_produced(batch, batch_bytes_max=1 << 20), leader_epoch=LeaderEpoch(0), now_ms=1)
    log.roll(1)
    compact(disk, log, now_ms=10_000)
    if twice:
        compact(disk, log, now_ms=10_000)
    return log


def test_a_record_that_is_gone_is_not_found() -> None:
    log = a_compacted_log([(b"a", b"1", 100), (b"b", b"1", 200)], [(b"a", b"2", 300)])
    assert log.offset_for_time(50) == (1, 200, 0)
    assert log.offset_for_time(201) == (2, 300, 0)


def test_a_batch_with_a_horizon_tells_its_records_times() -> None:
    log = a_compacted_log([(b"a", None, 100), (b"b", b"1", 200)])
    assert log.offset_for_time(50) == (0, 100, 0)
    assert log.offset_for_time(150) == (1, 200, 0)


def test_an_empty_batch_is_passed_over_however_late_it_was() -> None:
    log = a_compacted_log([(b"b", b"1", 100)], [(b"a", None, 900)], twice=True)
    assert log.offset_for_time(50) == (0, 100, 0)
    assert log.offset_for_time(500) is None
    assert log.max_timestamp() == (0, 100, 0)


def test_a_log_without_any_record_has_no_latest() -> None:
    log = a_compacted_log([(b"a", None, 900)], twice=True)
    assert log.max_timestamp() is None


def test_the_latest_record_is_one_that_the_log_still_has() -> None:
    log = a_compacted_log([(b"a", b"1", 900), (b"b", b"1", 100), (b"c", b"1", 200)], [(b"d", b"1", 150)])
    log.advance_log_start(Offset(1))
    assert log.max_timestamp() == (2, 200, 0)
    log.advance_log_start(Offset(3))
    assert log.max_timestamp() == (3, 150, 0)
    log.advance_log_start(Offset(4))
    assert log.max_timestamp() is None


def test_a_time_that_leaves_64_bits_is_no_time() -> None:
    log = Log.open(MemoryDisk(), "/data/orders-0", DEFAULT_TOPIC_CONFIG, recovery_point=Offset(0), clean=True, now_ms=1)
    base, beyond = (1 << 63) - 10, 100
    records = b"".join(
        bytes([2 * len(body)]) + body
        for body in (bytes([0, 0, 0, 1, 1, 0]), bytes([0, 2 * beyond & 0x7F | 0x80, 1, 2, 1, 1, 0]))
    )
    builder = BatchBuilder()
    builder.append(None, None, timestamp_ms=1)
    builder.append(None, None, timestamp_ms=1)
    batch = builder.build()
    header = read_header(batch)._replace(first_timestamp=base, max_timestamp=base + 9)
    raw = memoryview(_batch(header, records))
    log.append(raw, read_header(raw), leader_epoch=LeaderEpoch(0), now_ms=base)
    assert log.offset_for_time(base + 5) is None
    assert log.offset_for_time(base) == (0, base, 0)
