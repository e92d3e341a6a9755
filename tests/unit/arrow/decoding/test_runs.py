"""Chunks taken apart: what a portion has."""

import pytest

from riverlog.arrow.columns import Cut
from riverlog.arrow.decoding.runs import portions
from riverlog.client.consumer.fetched_records import Chunk
from riverlog.client.errors import CorruptRecords
from riverlog.model.ids import Offset, ProducerId, TopicPartition
from riverlog.records.batch import Compression, checksum
from riverlog.records.record import BatchBuilder
from tests.support.chunks import ABORT, batch, marker

HERE = TopicPartition("orders", 3)


def bases(data: bytes, cut: Cut, *, portion_bytes: int = 1_000_000) -> list[list[int]]:
    chunk = Chunk(data, [(Offset(2), ProducerId(1))], read_committed=True)
    found = portions(chunk, HERE, cut, portion_bytes=portion_bytes)
    return [[run.header.base_offset for run in portion] for portion in found]


def test_only_what_the_reader_may_want_is_unfolded() -> None:
    data = (
        batch(0, b"a", b"b")
        + batch(2, b"aborted", producer_id=1, transactional=True)
        + marker(3, ABORT, 1)
        + batch(4, b"c")
        + batch(9, b"d")
    )
    assert bases(data, Cut(Offset(0), Offset(100))) == [[0, 4, 9]]
    assert bases(data, Cut(Offset(1), Offset(9))) == [[0, 4]]
    assert bases(data, Cut(Offset(2), Offset(9))) == [[4]]
    assert bases(data, Cut(Offset(10), Offset(20))) == []


def test_a_full_portion_is_given_before_the_next_is_begun() -> None:
    data = batch(0, bytes(100)) + batch(1, bytes(100)) + batch(2, bytes(10))
    whole = Cut(Offset(0), Offset(100))
    assert bases(data, whole, portion_bytes=150) == [[0, 1], [2]]
    assert bases(data, whole, portion_bytes=1) == [[0], [1], [2]]


@pytest.mark.parametrize("base_offset", [-5, 2**63 - 1])
def test_offsets_that_cannot_be_are_refused(base_offset: int) -> None:
    data = batch(0, b"a", b"b")
    data[:8] = base_offset.to_bytes(8, signed=True)
    with pytest.raises(CorruptRecords, match="it ends at offset"):
        bases(data, Cut(Offset(-10), Offset(2**63 - 1)))


def test_a_batch_that_cannot_be_unfolded_is_named() -> None:
    builder = BatchBuilder(Compression.ZSTD)
    builder.append(None, b"a", timestamp_ms=5)
    builder.compression = Compression.NONE
    plain = builder.build(Offset(7))
    plain[22] |= Compression.ZSTD
    plain[17:21] = checksum(plain).to_bytes(4)
    with pytest.raises(CorruptRecords, match="offset 7 of orders-3 is corrupt: the records are not zstd"):
        bases(plain, Cut(Offset(0), Offset(100)))
