"""Columns record by record; the property tests compare the kernel with this."""

from datetime import UTC, datetime

import pytest

from riverlog.arrow.columns import TYPES, Cut, schema_of
from riverlog.arrow.decoding.plain_decoder import record_batch
from riverlog.arrow.decoding.runs import Run
from riverlog.client.errors import CorruptRecords
from riverlog.model.ids import Offset, TopicPartition
from riverlog.records.batch import read_header
from riverlog.records.record import BatchBuilder, unfolded

HERE = TopicPartition("orders", 3)


def run_of(builder: BatchBuilder, base_offset: int = 0) -> Run:
    batch = builder.build(Offset(base_offset))
    header = read_header(batch)
    return Run(header, unfolded(batch, header))


def test_a_row_has_what_its_record_has() -> None:
    builder = BatchBuilder()
    builder.append(b"k", b"v", [("a", b"1"), ("a", None)], timestamp_ms=1_769_877_000_123)
    builder.append(None, None, timestamp_ms=-1)
    builder.append(b"", b"", timestamp_ms=2**62)
    found = record_batch([run_of(builder, 7)], HERE, schema_of(TYPES), Cut(Offset(0), Offset(100)))
    first = {"topic": "orders", "partition": 3, "timestampType": 0}
    assert found.to_pylist() == [
        {
            **first,
            "key": b"k",
            "value": b"v",
            "offset": 7,
            "timestamp": datetime(2026, 1, 31, 16, 30, 0, 123_000, UTC),
            "headers": [{"key": "a", "value": b"1"}, {"key": "a", "value": None}],
        },
        {
            **first,
            "key": None,
            "value": None,
            "offset": 8,
            "timestamp": datetime(1969, 12, 31, 23, 59, 59, 999_000, UTC),
            "headers": None,
        },
        {**first, "key": b"", "value": b"", "offset": 9, "timestamp": None, "headers": None},
    ]


def test_rows_outside_the_cut_are_left_out() -> None:
    builder = BatchBuilder()
    for delta in range(6):
        builder.append(None, b"%d" % delta, timestamp_ms=100 - delta)
    cut = Cut(Offset(11), Offset(15), timestamp_ms_min=97)
    found = record_batch([run_of(builder, 10)], HERE, schema_of(["offset"]), cut)
    assert found["offset"].to_pylist() == [11, 12, 13]


def test_a_broken_batch_is_named() -> None:
    builder = BatchBuilder()
    builder.append(None, b"value", timestamp_ms=5)
    header, content = run_of(builder, 7)
    with pytest.raises(CorruptRecords, match="offset 7 of orders-3"):
        record_batch([Run(header, bytes(content)[:-1])], HERE, schema_of(["offset"]), Cut(Offset(0), Offset(100)))
