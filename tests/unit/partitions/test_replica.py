"""A replica: what it gives up and when it is flushed, and clients with another idea of its epoch."""

import pytest

from riverlog.log.log import Log
from riverlog.log.segment_deletion import enforce_retention
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import Offset
from riverlog.model.settings import Durability
from tests.support.disk import MemoryDisk
from tests.unit.partitions.test_partition import NOW, a_partition, append, gather


def test_flush_ms_is_noticed_and_kept() -> None:
    partition, hand = a_partition(durability=Durability.OS, flush_ms=1_000)
    append(partition, b"a")
    partition.flush_if_due(uptime_ms=NOW)
    partition.flush_if_due(uptime_ms=NOW + 999)
    assert hand.asked == 0
    partition.flush_if_due(uptime_ms=NOW + 1_000)
    assert hand.asked == 1
    hand.carry_out(partition)
    partition.flush_if_due(uptime_ms=NOW + 9_000)
    assert hand.asked == 1


def test_a_closed_segment_is_flushed_soon() -> None:
    partition, hand = a_partition(durability=Durability.OS, segment_bytes=400)
    append(partition, b"a" * 100)
    partition.flush_if_due(uptime_ms=NOW)
    assert hand.asked == 0
    append(partition, b"b" * 300)
    partition.flush_if_due(uptime_ms=NOW)
    assert hand.asked == 1


def test_another_epoch_is_fenced_or_unknown() -> None:
    partition, _hand = a_partition()
    partition.check_epoch(-1)
    partition.check_epoch(3)
    with pytest.raises(Refusal) as older:
        partition.check_epoch(2)
    with pytest.raises(Refusal) as newer:
        partition.check_epoch(4)
    assert older.value.code is ErrorCode.FENCED_LEADER_EPOCH
    assert newer.value.code is ErrorCode.UNKNOWN_LEADER_EPOCH


def test_records_are_deleted_up_to_the_high_watermark_and_no_further() -> None:
    partition, _hand = a_partition(durability=Durability.OS)
    append(partition, b"a", b"b", b"c")
    assert partition.delete_records(Offset(2)) == 2
    assert partition.delete_records(Offset(1)) == 2
    with pytest.raises(Refusal) as refused:
        partition.delete_records(Offset(4))
    assert refused.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
    assert partition.delete_records(Offset(-1)) == 3


@pytest.mark.parametrize("seed", range(6))
async def test_a_producer_is_known_when_all_its_records_went_and_the_power_failed(seed: int) -> None:
    partition, hand = a_partition(durability=Durability.FSYNC, retention_ms=0)
    disk: MemoryDisk = partition.log._disk  # type: ignore[assignment]
    disk.sync_folder("/")
    gather(partition, b"value", producer_id=7, producer_epoch=0, base_sequence=0)
    partition._turn.end()
    hand.carry_out(partition)
    deleted = await partition.retain(now_ms=NOW + 1, producers_older_than_ms=0)
    assert [segment.next_offset for segment in deleted] == [1]
    disk.random.seed(seed)
    disk.crash()
    folder, config = partition.log.folder, partition.log.config
    log = Log.open(disk, folder, config, recovery_point=Offset(1), clean=False, now_ms=NOW)
    assert [producer_id for producer_id, _ in log.producers.items()] == [7]


def test_files_of_deleted_segments_go_after_their_delay() -> None:
    partition, _ = a_partition(durability=Durability.OS, segment_bytes=200, retention_ms=0, file_delete_delay_ms=60_000)
    append(partition, b"a" * 100)
    append(partition, b"b" * 100)
    log = partition.log
    assert enforce_retention(log, NOW + 1_000_000, upto=partition.high_watermark)
    for uptime_ms, there in ((5, True), (60_004, True), (60_005, False)):
        partition.remove_deleted(uptime_ms=uptime_ms)
        assert any(name.endswith(".deleted") for name in log._disk.list(log.folder)) is there
