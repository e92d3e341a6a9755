"""A led partition: the high watermark, those who wait for it, and epochs."""

import asyncio
import errno
from collections.abc import Callable, Coroutine
from dataclasses import replace
from uuid import UUID

import pytest

from riverlog.drivers.flusher import Flusher
from riverlog.drivers.partition import Partition
from riverlog.drivers.turn import Turn
from riverlog.drivers.volume import Volume
from riverlog.log.log import Log
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import LeaderEpoch, Offset, TopicId, TopicPartition
from riverlog.model.settings import DEFAULT_TOPIC_CONFIG, Durability
from tests.support.batches import batch_of
from tests.support.disk import MemoryDisk
from tests.support.virtual_time import run

NOW = 10_000


def on_virtual_time(scenario: Callable[[], Coroutine[None, None, None]]) -> Callable[[], None]:
    def test() -> None:
        run(scenario())

    return test


class Hand:
    """A flusher whose flushes the test carries out."""

    def __init__(self) -> None:
        self.asked = 0

    def flush(self, partition: Partition) -> None:
        self.asked += 1

    def carry_out(self, partition: Partition) -> None:
        partition.log.flush()
        partition.flushed()


class LongTurn(Turn):
    """A turn that ends when the test says so."""

    def _schedule(self) -> None:
        pass


def a_partition(**config: object) -> tuple[Partition, Hand]:
    disk = MemoryDisk()
    settings = replace(DEFAULT_TOPIC_CONFIG, **config)  # type: ignore[arg-type]
    log = Log.open(disk, "/data/orders-0", settings, recovery_point=Offset(0), clean=True, now_ms=NOW)
    hand = Hand()
    flusher: Flusher = hand  # type: ignore[assignment]
    volume = Volume(disk, "/data", changed=lambda _volume: None)
    name, topic_id = TopicPartition("orders", 0), TopicId(UUID(int=1))
    return Partition(name, topic_id, log, LeaderEpoch(3), volume=volume, flusher=flusher, turn=LongTurn()), hand


def gather(partition: Partition, value: bytes, **fields: int) -> Offset:
    return partition.gather(memoryview(batch_of([value], **fields)), now_ms=NOW).last_offset  # type: ignore[arg-type]


def append(partition: Partition, *values: bytes) -> None:
    partition.append(memoryview(batch_of(values)), now_ms=NOW)


def test_in_the_page_cache_is_committed_with_durability_os() -> None:
    partition, hand = a_partition(durability=Durability.OS)
    append(partition, b"a", b"b")
    assert partition.high_watermark == 2
    assert hand.asked == 0


@on_virtual_time
async def test_on_the_medium_is_committed_with_durability_fsync() -> None:
    partition, hand = a_partition(durability=Durability.FSYNC)
    codes: list[ErrorCode] = []
    append(partition, b"a")
    partition.when_committed(Offset(0), codes.append, seconds_max=30)
    assert (partition.high_watermark, codes, hand.asked) == (0, [], 1)
    with pytest.raises(Refusal) as refused:
        partition.read(Offset(1), bytes_max=100, upto=partition.high_watermark, at_least_one=True)
    assert refused.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
    hand.carry_out(partition)
    assert (partition.high_watermark, codes) == (1, [ErrorCode.NONE])


def test_flush_messages_1_means_what_it_says_and_more_means_later() -> None:
    partition, hand = a_partition(durability=Durability.OS, flush_messages=1)
    append(partition, b"a")
    assert (partition.high_watermark, hand.asked) == (0, 1)
    partition, hand = a_partition(durability=Durability.OS, flush_messages=3)
    append(partition, b"a", b"b")
    assert (partition.high_watermark, hand.asked) == (2, 0)
    append(partition, b"c")
    assert (partition.high_watermark, hand.asked) == (3, 1)


def test_flush_ms_is_noticed_and_kept() -> None:
    partition, hand = a_partition(durability=Durability.OS, flush_ms=1_000)
    append(partition, b"a")
    partition.flush_if_due(now_ms=NOW)
    partition.flush_if_due(now_ms=NOW + 999)
    assert hand.asked == 0
    partition.flush_if_due(now_ms=NOW + 1_000)
    assert hand.asked == 1
    hand.carry_out(partition)
    partition.flush_if_due(now_ms=NOW + 9_000)
    assert hand.asked == 1


def test_a_closed_segment_is_flushed_soon() -> None:
    partition, hand = a_partition(durability=Durability.OS, segment_bytes=200)
    append(partition, b"a" * 100)
    partition.flush_if_due(now_ms=NOW)
    assert hand.asked == 0
    append(partition, b"b" * 100)
    partition.flush_if_due(now_ms=NOW)
    assert hand.asked == 1


def test_readers_are_woken_until_they_let_go() -> None:
    partition, _hand = a_partition(durability=Durability.OS)
    woken: list[int] = []
    let_go = partition.when_readable(lambda: woken.append(1))
    append(partition, b"a")
    assert woken == [1]
    let_go()
    let_go()
    append(partition, b"b")
    assert woken == [1]


@on_virtual_time
async def test_nobody_waits_for_longer_than_they_said() -> None:
    partition, hand = a_partition(durability=Durability.FSYNC)
    told: dict[str, ErrorCode] = {}
    append(partition, b"a")
    partition.when_committed(Offset(0), lambda code: told.__setitem__("patient", code), seconds_max=30)
    append(partition, b"b")
    partition.when_committed(Offset(1), lambda code: told.__setitem__("hasty", code), seconds_max=1)
    await asyncio.sleep(2)
    assert told == {"hasty": ErrorCode.REQUEST_TIMED_OUT}
    hand.carry_out(partition)
    assert told["patient"] is ErrorCode.NONE
    append(partition, b"c")
    partition.when_committed(Offset(2), lambda code: told.__setitem__("late", code), seconds_max=30)
    await asyncio.sleep(29)
    assert "late" not in told
    await asyncio.sleep(2)
    assert told["late"] is ErrorCode.REQUEST_TIMED_OUT


@on_virtual_time
async def test_those_who_wait_are_told_when_it_will_never_come() -> None:
    for end, code in (
        (Partition.remove, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (Partition.storage_failed, ErrorCode.KAFKA_STORAGE_ERROR),
    ):
        partition, _hand = a_partition(durability=Durability.FSYNC)
        codes: list[ErrorCode] = []
        append(partition, b"a")
        partition.when_committed(Offset(0), codes.append, seconds_max=30)
        end(partition)
        assert codes == [code]


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


def test_a_compacted_topic_takes_no_record_without_a_key() -> None:
    partition, _ = a_partition(cleanup_compact=True)
    with pytest.raises(Refusal, match="has no key") as refused:
        append(partition, b"nobody's")
    assert refused.value.code is ErrorCode.INVALID_RECORD
    assert partition.log.log_end_offset == 0


def test_what_was_gathered_is_committed_when_the_turn_ends() -> None:
    partition, _hand = a_partition(durability=Durability.OS)
    append(partition, b"first")
    told: list[tuple[str, ErrorCode]] = []
    for number in range(3):
        offset = gather(partition, b"value")
        partition.when_committed(offset, lambda code, who=f"all {number}": told.append((who, code)), seconds_max=0)
        partition.when_written(offset, lambda code, who=f"one {number}": told.append((who, code)))
    assert (partition.high_watermark, told) == (1, [])
    partition._turn.end()
    assert partition.high_watermark == 4
    assert {code for _, code in told} == {ErrorCode.NONE}
    assert len(told) == 6
    partition.when_written(Offset(2), lambda code: told.append(("late", code)))
    assert told[-1] == ("late", ErrorCode.NONE)


@on_virtual_time
async def test_many_may_wait_who_have_no_time_at_all() -> None:
    partition, _hand = a_partition(durability=Durability.FSYNC)
    told: list[ErrorCode] = []
    for value in (b"one", b"two"):
        partition.when_committed(gather(partition, value), told.append, seconds_max=0)
    await asyncio.sleep(0)
    assert told == [ErrorCode.REQUEST_TIMED_OUT] * 2


@on_virtual_time
async def test_exactly_those_are_refused_whose_batches_could_not_be_written() -> None:
    """With a duplicate of a batch that is written but not flushed, which waits behind them and is still good."""
    partition, hand = a_partition(durability=Durability.FSYNC)
    told: dict[str, ErrorCode] = {}

    def tell(who: str) -> Callable[[ErrorCode], None]:
        return lambda code: told.__setitem__(who, code)

    fields = {"producer_id": 7, "producer_epoch": 0}
    kept = gather(partition, b"kept", base_sequence=0, **fields)
    partition.when_committed(kept, tell("kept"), seconds_max=30)
    partition._turn.end()
    for number in (1, 2):
        lost = gather(partition, b"lost", base_sequence=number, **fields)
        partition.when_committed(lost, tell(f"lost {number}"), seconds_max=30)
    partition.when_written(lost, tell("acks 1"))
    again = gather(partition, b"kept", base_sequence=0, **fields)
    assert again == kept
    partition.when_committed(again, tell("again"), seconds_max=30)
    partition.log._disk.fail(0, errno.ENOSPC, on=("write",))
    partition._turn.end()
    assert told == dict.fromkeys(["lost 1", "lost 2", "acks 1"], ErrorCode.KAFKA_STORAGE_ERROR)
    assert partition.log.log_end_offset == 1
    hand.carry_out(partition)
    assert told["kept"] is told["again"] is ErrorCode.NONE
    partition._volume.look()
    assert gather(partition, b"next", base_sequence=1, **fields) == 1


def test_a_batch_that_could_not_be_written_with_others_is_refused_at_once() -> None:
    partition, _hand = a_partition(durability=Durability.OS)
    append(partition, b"first")
    told: list[ErrorCode] = []
    partition.when_written(gather(partition, b"other"), told.append)
    partition.log._disk.fail(0, errno.EIO, on=("write",))
    with pytest.raises(Refusal) as refused:
        append(partition, b"second")
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert told == [ErrorCode.KAFKA_STORAGE_ERROR]
    assert partition.high_watermark == 1


def test_a_partition_that_leaves_writes_what_it_gathered_first() -> None:
    partition, _hand = a_partition(durability=Durability.OS)
    told: list[ErrorCode] = []
    partition.when_committed(gather(partition, b"value"), told.append, seconds_max=0)
    partition.remove()
    assert told == [ErrorCode.NONE]
    partition.log.release()
    partition._turn.end()
    assert partition.log.log_end_offset == 1
