"""Idempotent producers: what is new, what is repeated, what is refused."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from riverlog.log import producers as module
from riverlog.log.producers import BadSnapshot, Producers, Written
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import LeaderEpoch, Offset, ProducerEpoch, ProducerId
from riverlog.records.batch import CONTROL, TRANSACTIONAL, BatchHeader

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
        expected = Written(2 * number, 2 * number + 1, Offset(100 + 2 * number), Offset(101 + 2 * number), number)
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


@pytest.mark.parametrize(("sequence", "epoch"), [(-1, 0), (0, -1)])
def test_a_producer_id_without_sequence_or_epoch_is_refused(sequence: int, epoch: int) -> None:
    assert refused(Producers(), header(sequence, epoch=epoch)) is ErrorCode.INVALID_RECORD


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
    assert producers.check(header(13)) == Written(13, 13, Offset(13), Offset(13), 9)
    producers.forget_gathered()
    assert producers.encode() == before
    assert producers.check(header(6)) is None
    producers.remember_gathered(header(6), Offset(6), 9)
    producers.keep_gathered()
    producers.forget_gathered()
    assert producers.check(header(7)) is None


def test_a_first_batch_that_could_not_be_written_is_not_overtaken() -> None:
    producers = Producers()
    for batch in (header(0, 15), header(15, 6)):
        assert producers.check(batch) is None
        producers.remember_gathered(batch, Offset(0), 0)
    producers.forget_gathered()
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
