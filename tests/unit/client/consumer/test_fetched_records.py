"""Fetched bytes: what of them the reader sees."""

from collections.abc import Sequence

import pytest

from riverlog.client.consumer.fetched_records import AssignedPartition, Chunk
from riverlog.client.errors import CorruptRecords
from riverlog.model.ids import Offset, ProducerId, TopicPartition
from riverlog.records.record import BatchBuilder
from tests.support.chunks import ABORT, COMMIT, batch, marker

HERE = TopicPartition("orders", 3)


def read(
    data: bytes, aborted: Sequence[tuple[int, int]] = (), *, committed: bool = True, position: int = 0
) -> list[tuple[int, bytes | None]]:
    state = AssignedPartition(HERE)
    state.jump(Offset(position))
    state.add(Chunk(data, [(Offset(first), ProducerId(who)) for first, who in aborted], read_committed=committed))
    found = []
    while (decoded := state.next_batch()) is not None:
        found += [(record.offset, record.value) for record in decoded.records]
        state.position = decoded.next_offset
    assert state.buffered_bytes == 0
    return found


def test_records_carry_where_they_come_from() -> None:
    builder = BatchBuilder()
    builder.append(b"k", b"v", {"h": b"1"}, timestamp_ms=42)
    decoded = Chunk(builder.build(Offset(7)), [], read_committed=False).next_batch(HERE, Offset(0))
    assert decoded is not None
    assert decoded.records == [("orders", 3, 7, 42, b"k", b"v", (("h", b"1"),), -1)]
    assert decoded.next_offset == 8


def test_reading_starts_in_the_middle_of_a_batch() -> None:
    data = batch(0, b"a", b"b") + batch(2, b"c", b"d", b"e")
    assert read(data, position=3) == [(3, b"d"), (4, b"e")]


def test_control_batches_are_skipped_but_count_as_read() -> None:
    data = batch(0, b"a", producer_id=1, transactional=True) + marker(1, COMMIT, 1) + batch(2, b"b")
    for committed in (True, False):
        assert read(data, committed=committed) == [(0, b"a"), (2, b"b")]
    chunk = Chunk(marker(9, COMMIT, 1), [], read_committed=True)
    assert chunk.next_offset == 10
    assert chunk.next_batch(HERE, Offset(9)) == ([], 10)


def test_aborted_transactions_are_not_read_where_that_was_asked() -> None:
    data = (
        batch(0, b"plain")
        + batch(1, b"aborted", producer_id=1, transactional=True)
        + batch(2, b"kept", producer_id=2, transactional=True)
        + batch(3, b"aborted too", producer_id=1, transactional=True)
        + marker(4, ABORT, 1)
        + batch(5, b"second try", producer_id=1, transactional=True)
        + marker(6, COMMIT, 2)
        + marker(7, COMMIT, 1)
        + batch(8, b"aborted again", producer_id=2, transactional=True)
        + marker(9, ABORT, 2)
    )
    aborted = [(8, 2), (1, 1)]  # in any order: brokers should sort it, and not all do
    assert read(data, aborted) == [(0, b"plain"), (2, b"kept"), (5, b"second try")]
    assert len(read(data, aborted, committed=False)) == 6


def test_an_aborted_producers_plain_records_are_read() -> None:
    data = batch(0, b"x", producer_id=1, transactional=True) + batch(1, b"y", producer_id=1)
    assert read(data, [(0, 1)]) == [(1, b"y")]


def test_a_cut_off_last_batch_is_left_for_the_next_fetch() -> None:
    data = batch(0, b"a") + batch(1, b"b")[:-3]
    assert Chunk(data, [], read_committed=False).next_offset == 1
    assert read(data) == [(0, b"a")]
    assert Chunk(batch(0, b"a")[:-1], [], read_committed=False).next_offset == -1


def test_a_broken_batch_is_named_after_the_good_ones_before_it() -> None:
    broken = batch(1, b"b")
    broken[-2] ^= 0xFF
    state = AssignedPartition(HERE)
    state.jump(Offset(0))
    state.add(Chunk(batch(0, b"a") + broken, [], read_committed=False))
    first = state.next_batch()
    assert first is not None
    state.position = first.next_offset
    with pytest.raises(CorruptRecords, match="offset 1 of orders-3 is corrupt: the batch's checksum") as raised:
        state.next_batch()
    assert (raised.value.partition, raised.value.offset) == (HERE, 1)


def test_a_batch_that_claims_to_be_shorter_than_its_header_ends_the_reading() -> None:
    liar = batch(0, b"a")
    liar[8:12] = (-12).to_bytes(4, signed=True)  # its size would be nothing, and the next batch the same one again
    with pytest.raises(CorruptRecords, match="too few"):
        Chunk(liar, [], read_committed=False).next_batch(HERE, Offset(5))


def test_batches_are_given_as_they_are_with_a_word_on_who_sees_them() -> None:
    first, second = batch(0, b"a", producer_id=1, transactional=True), batch(1, b"b")
    chunk = Chunk(first + second, [(Offset(0), ProducerId(1))], read_committed=True)
    found = [chunk.next_raw(HERE, Offset(0)) for _ in range(3)]
    assert [each and (bytes(each.content), each.is_visible) for each in found] == [(first, False), (second, True), None]


def test_a_jump_forgets_what_was_fetched() -> None:
    state = AssignedPartition(HERE)
    state.jump(Offset(0))
    state.add(Chunk(batch(0, b"a"), [], read_committed=False))
    generation = state.generation
    state.jump(Offset(50))
    assert state.generation > generation
    assert (state.position, state.fetch_offset, state.buffered_bytes) == (50, 50, 0)
    assert state.next_batch() is None
