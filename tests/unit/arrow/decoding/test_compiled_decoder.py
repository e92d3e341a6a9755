"""The kernel's columns as Arrow has them; that they are the right ones is shown by the property tests."""

import pytest

from riverlog.arrow.columns import TYPES, USUAL, Cut, schema_of
from riverlog.arrow.decoding import compiled_decoder, kernel, plain_decoder
from riverlog.client.errors import CorruptRecords
from riverlog.model.ids import Offset, TopicPartition
from riverlog.records.record import BatchBuilder
from tests.unit.arrow.decoding.test_plain_decoder import run_of

HERE = TopicPartition("orders", 3)
WHOLE = Cut(Offset(0), Offset(2**62))


def builder_of(count: int) -> BatchBuilder:
    builder = BatchBuilder()
    for number in range(count):
        headers = {"trace": b"%d" % number} if number % 3 == 0 else {}
        builder.append(b"key-%d" % number, bytes(100), headers, timestamp_ms=1_000 + number)
    return builder


def test_many_runs_become_one_batch() -> None:
    runs = [run_of(builder_of(100), base) for base in (0, 500, 700)]
    found = compiled_decoder.record_batch(runs, HERE, schema_of(TYPES), WHOLE)
    found.validate(full=True)
    assert found.equals(plain_decoder.record_batch(runs, HERE, schema_of(TYPES), WHOLE))


def test_buffers_are_not_much_larger_than_what_is_in_them() -> None:
    found = compiled_decoder.record_batch([run_of(builder_of(1_000))], HERE, schema_of(USUAL), WHOLE)
    for column in found.columns:
        assert sum(buffer.size for buffer in column.buffers() if buffer is not None) <= 2 * column.nbytes


@pytest.mark.parametrize("row", [0, 99])
def test_one_row_of_many(row: int) -> None:
    cut = Cut(Offset(row), Offset(row + 1))
    found = compiled_decoder.record_batch([run_of(builder_of(100))], HERE, schema_of(TYPES), cut)
    assert found["offset"].to_pylist() == [row]
    assert found["key"].to_pylist() == [b"key-%d" % row]


def test_a_name_that_is_not_utf_8_is_refused() -> None:
    builder = BatchBuilder()
    builder.append(None, None, {"name": b""}, timestamp_ms=5)
    header, content = run_of(builder, 7)
    broken = bytes(content).replace(b"name", b"\xff\xff\xff\xff")
    with pytest.raises(CorruptRecords, match=r"offset 7 of orders-3 is corrupt: the name .* not UTF-8"):
        compiled_decoder.record_batch(
            [run_of(builder)._replace(header=header, content=broken)], HERE, schema_of(TYPES), WHOLE
        )


def test_the_broken_one_of_many_is_named() -> None:
    good, bad = run_of(builder_of(3), 0), run_of(builder_of(3), 3)
    with pytest.raises(CorruptRecords, match=f"offset 3 of orders-3 is corrupt: {kernel.FLAWS[7]}"):
        compiled_decoder.record_batch(
            [good, bad._replace(content=bytes(bad.content) + b"x")], HERE, schema_of(USUAL), WHOLE
        )
