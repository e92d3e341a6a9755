"""A led partition: the high watermark, those who wait for it, and epochs."""

import asyncio
import contextlib
import errno
from collections.abc import Callable
from dataclasses import replace
from random import Random
from struct import Struct
from uuid import UUID

import pytest

from riverlog.log.log import Log
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import LeaderEpoch, Offset, ProducerEpoch, ProducerId, TopicId, TopicPartition
from riverlog.model.settings import DEFAULT_TOPIC_CONFIG, Durability
from riverlog.model.transactions import ProducerIdentity, TransactionVersion
from riverlog.partitions.cold_reads import ColdReads
from riverlog.partitions.directory_health import DirectoryHealth
from riverlog.partitions.flusher import Flusher
from riverlog.partitions.partition import Partition
from riverlog.partitions.turn import Turn
from riverlog.records.batch import (
    ATTRIBUTES_POSITION,
    CRC_POSITION,
    HEADER_BYTES,
    MAX_TIMESTAMP_POSITION,
    checksum,
    read_header,
)
from riverlog.records.control import Marker, build_marker
from riverlog.transactions.verification import Verified
from tests.support.batches import batch_of
from tests.support.disk import MemoryDisk
from tests.support.reading_committed import transactional_batch
from tests.support.world import PatientWorkers

NOW = 10_000


class Hand:
    """A flusher whose flushes the test carries out."""

    def __init__(self) -> None:
        self.asked = 0
        self.asked_for_name = 0

    def flush(self, partition: Partition) -> None:
        self.asked += 1

    def sync_first_name(self, partition: Partition) -> None:
        self.asked_for_name += 1

    def carry_out(self, partition: Partition) -> None:
        partition.log.flush()
        partition.flushed()

    async def settled(self, partition: Partition) -> None:
        self.carry_out(partition)


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
    health = DirectoryHealth(disk, "/data", changed=lambda _health: None)
    name, topic_id = TopicPartition("orders", 0), TopicId(UUID(int=1))
    partition = Partition(
        name,
        topic_id,
        log,
        LeaderEpoch(3),
        health=health,
        flusher=flusher,
        cold_reads=ColdReads(PatientWorkers(Random(0))),
        turn=LongTurn(),
    )
    return partition, hand


def gather(partition: Partition, value: bytes, **fields: int) -> Offset:
    return partition.gather(memoryview(batch_of([value], **fields)), now_ms=NOW).last_offset  # type: ignore[arg-type]


def append(partition: Partition, *values: bytes) -> None:
    partition.append(memoryview(batch_of(values)), now_ms=NOW)


def test_what_is_appended_at_once_leaves_nothing_to_the_end_of_the_turn() -> None:
    partition, _ = a_partition(durability=Durability.OS)
    batch = memoryview(batch_of([b"own"]))
    partition.append_own(batch, read_header(batch), now_ms=NOW)
    assert partition.high_watermark == 1
    assert not partition._turn._writes
    gather(partition, b"gathered")
    partition.append_own(batch, read_header(batch), now_ms=NOW)
    assert partition.high_watermark == 3
    gather(partition, b"behind it")
    partition._turn.end()
    assert partition.high_watermark == 4


def test_in_the_page_cache_is_committed_with_durability_os() -> None:
    partition, hand = a_partition(durability=Durability.OS)
    append(partition, b"a", b"b")
    assert partition.high_watermark == 2
    assert hand.asked == 0


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


def test_the_first_name_is_synced_before_its_segment_is_full_so_that_closing_it_waits_for_nothing() -> None:
    partition, hand = a_partition(durability=Durability.OS, segment_bytes=400)
    append(partition, b"a" * 100)
    assert hand.asked_for_name == 0
    append(partition, b"b" * 10)
    assert hand.asked_for_name == 1
    plan = partition.log.pending_first_name()
    plan.run()
    partition.log.synced(plan)
    append(partition, b"b" * 10)
    append(partition, b"c" * 300)
    assert (hand.asked_for_name, hand.asked) == (1, 0)


def test_readers_look_once_when_a_turn_ends_until_they_let_go() -> None:
    partition, _hand = a_partition(durability=Durability.OS)
    seen: list[Offset] = []

    def look() -> None:
        seen.append(partition.high_watermark)

    partition.watch(look)
    append(partition, b"a")
    append(partition, b"b")
    assert seen == []
    partition._turn.end()
    assert seen == [2]
    partition.unwatch(look)
    partition.unwatch(look)
    append(partition, b"c")
    partition._turn.end()
    assert seen == [2]


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


async def test_who_has_no_end_to_their_patience_waits_beside_those_who_have() -> None:
    partition, hand = a_partition(durability=Durability.FSYNC)
    told: list[tuple[str, ErrorCode]] = []
    append(partition, b"a")
    partition.when_committed(Offset(0), lambda code: told.append(("endless", code)), seconds_max=None)
    await asyncio.sleep(3_600)
    partition.when_committed(Offset(0), lambda code: told.append(("hasty", code)), seconds_max=1)
    await asyncio.sleep(2)
    assert told == [("hasty", ErrorCode.REQUEST_TIMED_OUT)]
    hand.carry_out(partition)
    assert told[1:] == [("endless", ErrorCode.NONE)]


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


def test_a_compacted_topic_takes_no_record_without_a_key() -> None:
    partition, _ = a_partition(cleanup_compact=True)
    with pytest.raises(Refusal, match="without a key") as refused:
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


async def test_many_may_wait_who_have_no_time_at_all() -> None:
    partition, _hand = a_partition(durability=Durability.FSYNC)
    told: list[ErrorCode] = []
    for value in (b"one", b"two"):
        partition.when_committed(gather(partition, value), told.append, seconds_max=0)
    await asyncio.sleep(0)
    assert told == [ErrorCode.REQUEST_TIMED_OUT] * 2


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
    partition._health.look()
    assert gather(partition, b"next", base_sequence=1, **fields) == 1


@pytest.mark.parametrize("durability", [Durability.OS, Durability.FSYNC])
async def test_what_was_written_before_a_segment_could_not_be_begun_is_committed(durability: Durability) -> None:
    partition, hand = a_partition(durability=durability, segment_bytes=400)
    append(partition, b"a" * 100)
    hand.carry_out(partition)
    hand.asked = 0
    told: list[ErrorCode] = []
    partition.when_committed(gather(partition, b"b" * 100), told.append, seconds_max=30)
    partition.log._disk.fail(0, errno.EMFILE, on=("create",))
    with pytest.raises(Refusal):
        gather(partition, b"c" * 100)
    partition._turn.end()
    if hand.asked:
        hand.carry_out(partition)
    assert told == [ErrorCode.NONE]
    assert partition.high_watermark == 2


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


MINE = ProducerIdentity(ProducerId(7), ProducerEpoch(0))
COMMIT, ABORT = Marker(True, 0), Marker(False, 0)
CLASSIC = TransactionVersion.CLASSIC


def verified(partition: Partition, *, sequence: int = 0) -> None:
    begun = partition.verifications.begin(MINE, sequence, begins_epoch=False, now_ms=NOW)
    assert begun is not None
    partition.verifications.settle(begun, Verified())


def end(partition: Partition, marker: Marker, version: TransactionVersion = CLASSIC) -> Offset:
    return partition.append_marker(MINE, marker, version, now_ms=NOW)


def test_a_transaction_begins_only_where_it_was_verified() -> None:
    partition, _ = a_partition(durability=Durability.OS)
    with pytest.raises(Refusal) as refused:
        partition.append(transactional_batch(7, 0, b"late"), now_ms=NOW)
    assert refused.value.code is ErrorCode.INVALID_TXN_STATE
    verified(partition)
    partition.append(transactional_batch(7, 0, b"first"), now_ms=NOW)
    partition.append(transactional_batch(7, 1, b"second"), now_ms=NOW)
    assert (partition.last_stable_offset, partition.high_watermark) == (0, 2)
    end(partition, COMMIT)
    assert partition.last_stable_offset == 3
    with pytest.raises(Refusal):
        partition.append(transactional_batch(7, 2, b"late"), now_ms=NOW)
    assert partition.append(transactional_batch(7, 1, b"second"), now_ms=NOW).duplicate, "a retry is no new one"


def test_a_marker_comes_between_a_verification_and_its_batch() -> None:
    partition, _ = a_partition(durability=Durability.OS)
    verified(partition)
    end(partition, ABORT)
    with pytest.raises(Refusal) as refused:
        partition.append(transactional_batch(7, 0, b"late"), now_ms=NOW)
    assert refused.value.code is ErrorCode.INVALID_TXN_STATE


def test_readers_of_committed_records_are_woken_by_a_marker_that_is_committed() -> None:
    partition, hand = a_partition(durability=Durability.FSYNC)
    verified(partition)
    partition.append(transactional_batch(7, 0, b"first"), now_ms=NOW)
    hand.carry_out(partition)
    stable: list[Offset] = []
    partition.watch(lambda: stable.append(partition.last_stable_offset))
    end(partition, ABORT)
    partition._turn.end()
    assert (stable, partition.last_stable_offset) == ([], 0)
    hand.carry_out(partition)
    partition._turn.end()
    assert stable == [2]
    found = partition.read(Offset(0), bytes_max=1_000, upto=partition.last_stable_offset, at_least_one=True)
    (aborted,) = partition.aborted_in(found, Offset(0))
    assert (aborted.producer_id, aborted.first_offset) == (7, 0)


def test_a_marker_of_an_old_coordinator_is_refused_and_a_repeated_one_of_a_new_epoch_not_written() -> None:
    partition, _ = a_partition(durability=Durability.OS)
    end(partition, Marker(True, 5))
    with pytest.raises(Refusal) as refused:
        end(partition, Marker(True, 4))
    assert refused.value.code is ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert end(partition, Marker(True, 5), TransactionVersion.EPOCH_PER_TRANSACTION) == 0
    assert partition.log.log_end_offset == 1


def test_a_coordinators_own_batches_take_part_in_transactions() -> None:
    partition, _ = a_partition(durability=Durability.OS)
    batch = transactional_batch(7, -1, b"offsets")
    partition.append_own(batch, read_header(batch), now_ms=NOW)
    assert partition.last_stable_offset == 0
    marker = memoryview(build_marker(ABORT, *MINE, timestamp_ms=NOW))
    partition.append_own(marker, read_header(marker), now_ms=NOW)
    assert partition.last_stable_offset == 2
    assert [each.first_offset for each in partition.log.segments.aborted.of(Offset(0))] == [0]


def test_garbage_under_a_right_checksum_is_refused_where_the_topic_asks_for_full_validation() -> None:
    batch = batch_of([b"value"])
    batch[HEADER_BYTES:] = bytes(len(batch) - HEADER_BYTES)
    batch[CRC_POSITION:ATTRIBUTES_POSITION] = checksum(batch).to_bytes(4, "big")
    trusting, _ = a_partition()
    assert trusting.gather(memoryview(bytearray(batch)), now_ms=NOW).last_offset == 0
    strict, _ = a_partition(record_validation_full=True)
    with pytest.raises(Refusal, match="cannot be read"):
        strict.gather(batch, now_ms=NOW)
    assert gather(strict, b"good", timestamp_ms=NOW) == 0


@pytest.mark.parametrize("compact", [True, False])
def test_clients_never_write_to_topics_of_coordinators(compact: bool) -> None:
    partition, _ = a_partition(cleanup_compact=compact)
    partition._is_for_coordinators = True
    with pytest.raises(Refusal, match="only the cluster itself") as refused:
        partition.append(memoryview(batch_of([b"x"])), now_ms=1)
    assert refused.value.code is ErrorCode.INVALID_TOPIC_EXCEPTION


def test_a_header_that_hides_how_late_its_records_are_is_put_right() -> None:
    partition, _ = a_partition(durability=Durability.OS)
    batch = bytearray(batch_of([b"a"], timestamp_ms=5_000))
    Struct(">q").pack_into(batch, MAX_TIMESTAMP_POSITION, -1)
    Struct(">I").pack_into(batch, CRC_POSITION, checksum(batch))
    partition.append(memoryview(batch), now_ms=NOW)
    assert partition.offset_for_time(4_000) == (0, 5_000, 3)


async def test_a_removed_partition_refuses_everybody_and_touches_no_file() -> None:
    partition, hand = a_partition(durability=Durability.OS)
    partition.append(memoryview(batch_of([b"a"])), now_ms=NOW)
    partition.remove()
    disk = partition.log._disk
    assert isinstance(disk, MemoryDisk)
    steps, asked = disk.steps, hand.asked
    producer = ProducerIdentity(ProducerId(1), ProducerEpoch(0))
    for use in (
        lambda: partition.append(memoryview(batch_of([b"b"])), now_ms=NOW),
        lambda: partition.append_marker(producer, COMMIT, TransactionVersion.EPOCH_PER_TRANSACTION, now_ms=NOW),
        lambda: partition.read(Offset(0), bytes_max=100, upto=Offset(1), at_least_one=True),
        lambda: partition.offset_for_time(0),
        lambda: partition.max_timestamp(),
        lambda: partition.end_of_epoch(LeaderEpoch(3)),
        lambda: partition.delete_records(Offset(-1)),
    ):
        with pytest.raises(Refusal) as refused:
            use()
        assert refused.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    told: list[ErrorCode] = []
    partition.when_committed(Offset(5), told.append, seconds_max=1)
    partition.when_written(Offset(5), told.append)
    assert told == [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 2
    assert await partition.retain(now_ms=NOW * NOW, producers_older_than_ms=0) == []
    partition.flush_if_due(uptime_ms=NOW * NOW)
    partition.flushed()
    assert partition.take_damage() == []
    assert (disk.steps, hand.asked) == (steps, asked)


async def test_a_removed_partition_wakes_those_who_wait_to_read() -> None:
    partition, _ = a_partition()
    looks: list[bool] = []
    partition.watch(lambda: looks.append(partition.removed))
    partition.remove()
    partition._turn.end()
    assert looks == [True]


async def test_a_withdrawn_partition_is_read_and_takes_no_writes() -> None:
    partition, _ = a_partition(durability=Durability.OS)
    partition.append(memoryview(batch_of([b"a"])), now_ms=NOW)
    partition.withdraw(FileNotFoundError(errno.ENOENT, "gone"))
    assert partition.read(Offset(0), bytes_max=100, upto=Offset(1), at_least_one=True).size
    with pytest.raises(Refusal, match="takes no writes") as refused:
        partition.append(memoryview(batch_of([b"b"])), now_ms=NOW)
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR


async def test_a_call_that_is_not_possible_now_is_refused_and_the_next_one_succeeds() -> None:
    partition, _ = a_partition(durability=Durability.OS, segment_bytes=200)
    disk = partition.log._disk
    assert isinstance(disk, MemoryDisk)
    appended = 0
    for kinds in (("open",), ("create",), ("write",), ("read",), ("open", "create")) * 4:
        disk.fail(0, errno.EMFILE, on=kinds)
        with contextlib.suppress(Refusal):
            partition.append(memoryview(batch_of([b"a" * 60])), now_ms=NOW)
            appended += 1
        disk.heal()
        assert not partition._health.offline
        partition.append(memoryview(batch_of([b"b" * 60])), now_ms=NOW)
        appended += 1
    assert partition.log.log_end_offset == appended
    partition.log.flush()


async def test_a_partition_that_resigns_refuses_those_who_wait_and_those_who_come() -> None:
    partition, hand = a_partition(durability=Durability.FSYNC)
    looks: list[bool] = []
    told: list[ErrorCode] = []
    partition.watch(lambda: looks.append(partition.is_led))
    last_offset = gather(partition, b"a")
    partition.when_committed(last_offset, told.append, seconds_max=None)
    partition.resign(LeaderEpoch(4))
    partition._turn.end()
    assert (told, looks) == ([ErrorCode.NOT_LEADER_OR_FOLLOWER], [False])
    hand.carry_out(partition)
    assert (partition.high_watermark, partition.log.log_end_offset) == (0, 1), "the new leader says what is committed"
    producer = ProducerIdentity(ProducerId(1), ProducerEpoch(0))
    for use in (
        lambda: partition.append(memoryview(batch_of([b"b"])), now_ms=NOW),
        lambda: partition.append_marker(producer, COMMIT, TransactionVersion.EPOCH_PER_TRANSACTION, now_ms=NOW),
        lambda: partition.read(Offset(0), bytes_max=100, upto=Offset(0), at_least_one=True),
        lambda: partition.offset_for_time(0),
        lambda: partition.end_of_epoch(LeaderEpoch(3)),
    ):
        with pytest.raises(Refusal) as refused:
            use()
        assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    partition.when_written(Offset(5), told.append)
    assert told[1:] == [ErrorCode.NOT_LEADER_OR_FOLLOWER]


@pytest.mark.parametrize("durability", list(Durability))
async def test_a_partition_that_leads_again_serves_in_the_new_epoch(durability: Durability) -> None:
    partition, hand = a_partition(durability=durability)
    gather(partition, b"a")
    partition.resign(LeaderEpoch(4))
    partition.lead(LeaderEpoch(5))
    if durability is Durability.FSYNC:
        hand.carry_out(partition)
    assert partition.high_watermark == 1
    assert partition.read(Offset(0), bytes_max=100, upto=Offset(1), at_least_one=True).size
    appended = partition.append(memoryview(batch_of([b"b"])), now_ms=NOW)
    assert partition.log.epochs.of(appended.base_offset) == 5
    with pytest.raises(Refusal) as refused:
        partition.check_epoch(3)
    assert refused.value.code is ErrorCode.FENCED_LEADER_EPOCH


async def test_what_was_verified_counts_no_more_when_another_leader_may_have_ended_it() -> None:
    partition, _ = a_partition()
    producer = ProducerIdentity(ProducerId(1), ProducerEpoch(0))
    begun = partition.verifications.begin(producer, 0, begins_epoch=True, now_ms=NOW)
    assert begun is not None
    partition.verifications.settle(begun, Verified())
    partition.resign(LeaderEpoch(4))
    partition.lead(LeaderEpoch(5))
    with pytest.raises(Refusal) as refused:
        partition.append(transactional_batch(producer.id, 0, b"a"), now_ms=NOW)
    assert refused.value.code is ErrorCode.INVALID_TXN_STATE
