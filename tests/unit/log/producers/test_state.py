"""Idempotent producers: what is new, what is repeated, what is refused."""

import struct
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from riverlog.log.producers import state as module
from riverlog.log.producers.aborted_transactions import AbortedRange
from riverlog.log.producers.state import BadSnapshot, ProducedBatch, Producers
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import NO_OFFSET, LeaderEpoch, Offset, ProducerEpoch, ProducerId
from riverlog.model.transactions import ProducerIdentity, TransactionVersion
from riverlog.records.batch import CONTROL, TRANSACTIONAL, BatchHeader
from riverlog.records.control import Marker

SEQUENCE_MAX = 2**31 - 1


def header(sequence: int, count: int = 1, *, epoch: int = 0, producer: int = 7, attributes: int = 0) -> BatchHeader:
    return BatchHeader(
        Offset(0), 100, LeaderEpoch(0), 2, 0, attributes, count - 1, 0, 0,
        ProducerId(producer), ProducerEpoch(epoch), sequence, count,
    )  # fmt: skip


def write(producers: Producers, batch: BatchHeader, offset: int = 0, now_ms: int = 0) -> None:
    assert producers.check(batch) is None
    producers.remember(batch, Offset(offset), now_ms)


def refused(producers: Producers, batch: BatchHeader) -> ErrorCode:
    with pytest.raises(Refusal) as refusal:
        producers.check(batch)
    return refusal.value.code


def test_sequences_follow_one_another() -> None:
    producers = Producers()
    write(producers, header(0, 3))
    write(producers, header(3, 1))
    assert refused(producers, header(5)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert refused(producers, header(2)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_producer_never_seen_may_begin_anywhere() -> None:
    write(Producers(), header(41))


def test_the_last_five_batches_may_be_repeated() -> None:
    producers = Producers()
    for number in range(7):
        write(producers, header(2 * number, 2), offset=100 + 2 * number, now_ms=number)
    for number in range(2, 7):
        expected = ProducedBatch(2 * number, 2 * number + 1, Offset(100 + 2 * number), Offset(101 + 2 * number), number)
        assert producers.check(header(2 * number, 2)) == expected
    assert refused(producers, header(2, 2)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert refused(producers, header(12, 1)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_sequences_start_over_behind_the_largest() -> None:
    producers = Producers()
    write(producers, header(SEQUENCE_MAX - 1, 4))
    write(producers, header(2))
    assert producers.check(header(SEQUENCE_MAX - 1, 4)) is not None
    producers = Producers()
    write(producers, header(SEQUENCE_MAX))
    write(producers, header(0))


def test_an_older_epoch_is_fenced_and_a_newer_one_begins_at_zero() -> None:
    producers = Producers()
    write(producers, header(0, 5, epoch=3))
    assert refused(producers, header(5, epoch=2)) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert refused(producers, header(5, epoch=4)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    write(producers, header(0, epoch=4))
    assert refused(producers, header(0, 5, epoch=3)) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_marker_raises_the_epoch_and_has_no_sequence() -> None:
    producers = Producers()
    write(producers, header(0, 5, epoch=3))
    producers.remember(header(-1, epoch=4, attributes=CONTROL | TRANSACTIONAL), Offset(5), 10)
    assert refused(producers, header(5, epoch=3)) is ErrorCode.INVALID_PRODUCER_EPOCH
    restored = Producers.decode(producers.encode())
    assert refused(restored, header(5, epoch=3)) is ErrorCode.INVALID_PRODUCER_EPOCH
    write(restored, header(0, epoch=4))


def test_producers_are_forgotten_when_they_are_silent() -> None:
    producers = Producers()
    write(producers, header(0, producer=1), now_ms=100)
    write(producers, header(0, producer=2), now_ms=200)
    producers.expire(101)
    assert [producer_id for producer_id, _ in producers.items()] == [2]


def test_too_many_producers_push_out_the_most_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PRODUCERS_PER_PARTITION_MAX", 20)
    producers = Producers()
    for number in range(30):
        write(producers, header(0, producer=number), now_ms=number)
    assert len(producers) <= 20
    assert producers.get(ProducerId(29)) is not None
    assert producers.get(ProducerId(0)) is None


def test_the_snapshot_has_kafkas_form() -> None:
    producers = Producers()
    write(producers, header(10, 3, epoch=2), offset=50, now_ms=1_234)
    content = producers.encode()
    assert content[:2] == b"\x00\x01"
    assert content[6:] == struct.pack(">iqhiqiqiq", 1, 7, 2, 12, 52, 2, 1_234, -1, -1)


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(1, 4), st.integers(0, 9))))
def test_a_snapshot_restores_every_answer(batches: list[tuple[int, int, int]]) -> None:
    producers = Producers()
    sent: list[BatchHeader] = []
    following: dict[int, int] = {}
    for offset, (producer, count, _) in enumerate(batches):
        batch = header(following.get(producer, 0), count, producer=producer)
        write(producers, batch, offset=offset * 10, now_ms=offset)
        following[producer] = following.get(producer, 0) + count
        sent.append(batch)
    restored = Producers.decode(producers.encode())
    for batch in [*sent, *(header(sequence, producer=producer) for producer, sequence in following.items())]:
        assert _answer(restored, batch) == _answer(producers, batch)


def _answer(producers: Producers, batch: BatchHeader) -> object:
    try:
        return producers.check(batch)
    except Refusal as refusal:
        return refusal.code


def test_a_damaged_snapshot_is_refused() -> None:
    producers = Producers()
    write(producers, header(0))
    content = producers.encode()
    for damaged in (b"", content[:9], content[:-1], content + b"x", content[:20] + b"x" + content[21:]):
        with pytest.raises(BadSnapshot):
            Producers.decode(damaged)


def test_gathered_batches_are_forgotten_as_if_they_had_never_come_or_kept() -> None:
    producers = Producers()
    for number in range(6):
        write(producers, header(number))
    before = producers.encode()
    for number in range(6, 14):
        assert producers.check(header(number)) is None
        producers.remember_gathered(header(number), Offset(number), 9)
    producers.remember_gathered(header(0, producer=8), Offset(14), 9)
    assert producers.check(header(13)) == ProducedBatch(13, 13, Offset(13), Offset(13), 9)
    producers.forget_gathered(Offset(6))
    assert producers.encode() == before
    assert producers.check(header(6)) is None
    producers.remember_gathered(header(6), Offset(6), 9)
    producers.keep_gathered()
    producers.forget_gathered(Offset(7))
    assert producers.check(header(7)) is None


def test_a_first_batch_that_could_not_be_written_is_not_overtaken() -> None:
    producers = Producers()
    for batch in (header(0, 15), header(15, 6)):
        assert producers.check(batch) is None
        producers.remember_gathered(batch, Offset(0), 0)
    producers.forget_gathered(Offset(0))
    assert refused(producers, header(15, 6)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    producers.await_first(header(15, 6))  # refused for another reason meanwhile: still not the first
    assert producers.check(header(0, 15)) is None
    assert producers.check(header(0, epoch=1)) is None  # a producer that gave up begins anew
    producers.remember_gathered(header(0, 15), Offset(0), 0)
    producers.keep_gathered()
    assert producers.check(header(15, 6)) is None
    producers.await_first(header(99, producer=8))
    producers.expire(-1)
    assert producers.check(header(5, producer=8)) is None


def transactional(sequence: int, *, epoch: int = 0, producer: int = 7) -> BatchHeader:
    return header(sequence, epoch=epoch, producer=producer, attributes=TRANSACTIONAL)


def end(producers: Producers, offset: int, *, committed: bool = True, epoch: int = 0, coordinator: int = 3) -> None:
    marker = header(-1, epoch=epoch, attributes=CONTROL | TRANSACTIONAL)
    producers.remember(marker, Offset(offset), 0, Marker(committed, coordinator))


def begun(producers: Producers) -> int:
    producer = producers.get(ProducerId(7))
    assert producer is not None
    return producer.transaction_offset


def unstable(producers: Producers) -> int | None:
    return producers.transactions.first_unstable_offset


def test_a_transaction_is_open_from_its_first_batch_to_its_marker() -> None:
    producers = Producers()
    write(producers, transactional(0), offset=10)
    write(producers, transactional(1), offset=11)
    assert unstable(producers) == 10
    assert begun(producers) == 10
    end(producers, 12)
    assert begun(producers) == NO_OFFSET
    producers.transactions.committed(Offset(13))
    assert unstable(producers) is None
    assert producers.aborted == []
    write(producers, transactional(2), offset=20)
    end(producers, 21, committed=False)
    assert producers.aborted == [AbortedRange(ProducerId(7), Offset(20), Offset(21), Offset(22))]


def test_a_marker_where_nothing_was_written_aborts_nothing() -> None:
    producers = Producers()
    end(producers, 0, committed=False, epoch=4)
    assert producers.aborted == []
    assert refused(producers, transactional(0, epoch=3)) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert refused(producers, transactional(1, epoch=4)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    write(producers, transactional(0, epoch=4))


def test_a_producer_in_a_transaction_writes_nothing_beside_it() -> None:
    producers = Producers()
    write(producers, transactional(0))
    assert refused(producers, header(1)) is ErrorCode.INVALID_TXN_STATE
    assert producers.check(header(0)) is not None, "a retry is still answered"


def test_a_coordinators_batch_has_no_sequence_and_an_epoch_that_counts() -> None:
    producers = Producers()
    write(producers, transactional(-1, epoch=2), offset=5)
    write(producers, transactional(-1, epoch=2), offset=6)
    assert unstable(producers) == 5
    assert refused(producers, transactional(-1, epoch=1)) is ErrorCode.INVALID_PRODUCER_EPOCH
    write(producers, transactional(-1, epoch=3), offset=7)


def test_an_open_transaction_outlives_a_new_epoch_silence_and_a_snapshot() -> None:
    producers = Producers()
    write(producers, transactional(0), offset=10)
    write(producers, transactional(0, epoch=1), offset=11)
    producers.expire(1_000)
    restored = Producers.decode(producers.encode())
    assert unstable(restored) == 10
    end(restored, 12, committed=False, epoch=1, coordinator=9)
    assert restored.aborted == [AbortedRange(ProducerId(7), Offset(10), Offset(12), Offset(13))]
    again = Producers.decode(restored.encode()).get(ProducerId(7))
    assert again is not None
    assert (again.coordinator_epoch, again.transaction_offset, again.epoch) == (9, NO_OFFSET, 1)


def test_too_many_producers_push_out_none_in_a_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PRODUCERS_PER_PARTITION_MAX", 3)
    producers = Producers()
    write(producers, transactional(0, producer=0))
    for number in range(1, 6):
        write(producers, header(0, producer=number), now_ms=number)
    assert producers.get(ProducerId(0)) is not None
    assert len(producers) <= 3


CLASSIC, BUMPED = TransactionVersion.CLASSIC, TransactionVersion.EPOCH_PER_TRANSACTION


@pytest.mark.parametrize(
    ("epoch", "coordinator", "version", "expected"),
    [
        (4, 3, CLASSIC, ErrorCode.INVALID_PRODUCER_EPOCH),
        (4, 3, BUMPED, ErrorCode.INVALID_PRODUCER_EPOCH),
        (5, 3, CLASSIC, True),
        (5, 3, BUMPED, ErrorCode.INVALID_PRODUCER_EPOCH),
        (6, 3, CLASSIC, True),
        (6, 3, BUMPED, True),
        (6, 4, BUMPED, True),
        (6, 2, CLASSIC, ErrorCode.TRANSACTION_COORDINATOR_FENCED),
        (6, 2, BUMPED, ErrorCode.TRANSACTION_COORDINATOR_FENCED),
    ],
)
def test_a_marker_needs_the_right_epochs(
    epoch: int, coordinator: int, version: TransactionVersion, expected: bool | ErrorCode
) -> None:
    producers = Producers()
    end(producers, 0, epoch=4)
    write(producers, transactional(0, epoch=5), offset=1)
    marker = ProducerIdentity(ProducerId(7), ProducerEpoch(epoch))
    if expected is True:
        assert producers.check_marker(marker, Marker(True, coordinator), version)
        return
    with pytest.raises(Refusal) as refusal:
        producers.check_marker(marker, Marker(True, coordinator), version)
    assert refusal.value.code is expected


def test_a_repeated_marker_of_a_bumped_epoch_is_there_already() -> None:
    producers = Producers()
    write(producers, transactional(0), offset=1)
    end(producers, 2, epoch=1)
    marker = ProducerIdentity(ProducerId(7), ProducerEpoch(1))
    assert not producers.check_marker(marker, Marker(True, 3), BUMPED)
    assert producers.check_marker(marker, Marker(True, 4), BUMPED), "another coordinator asks: it is heard"
    write(producers, transactional(0, epoch=1), offset=3)
    with pytest.raises(Refusal) as late:
        producers.check_marker(marker, Marker(True, 3), BUMPED)
    assert late.value.code is ErrorCode.INVALID_PRODUCER_EPOCH, "it would end the transaction behind its own"


def test_what_was_gathered_and_lost_opens_and_ends_no_transaction() -> None:
    producers = Producers()
    write(producers, transactional(0), offset=0)
    producers.remember_gathered(transactional(1, producer=8), Offset(1), 0)
    marker = header(-1, attributes=CONTROL | TRANSACTIONAL)
    producers.remember_gathered(marker, Offset(2), 0, Marker(False, 0))
    producers.forget_gathered(Offset(1))
    assert producers.aborted == []
    assert begun(producers) == 0
    producers.transactions.committed(Offset(9))
    assert (unstable(producers), len(producers.transactions)) == (0, 1)


def test_a_producer_that_wrote_once_takes_little_memory() -> None:
    count = 2_000
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        producers = Producers()
        for number in range(count):
            producers.remember(header(0, producer=10**6 + number), Offset(10**6 + number), 10**12 + number)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(producers) == count
    assert (after - before) / count < 400
