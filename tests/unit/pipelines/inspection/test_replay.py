"""Which offsets a batch took, by what Spark has written down."""

import json

import pytest

from riverlog.pipelines.inspection.replay import EARLIEST, NotReplayed, batch_of


def planned(**offsets: dict[str, int]) -> bytes:
    return "\n".join(["v1", '{"batchWatermarkMs":0}', json.dumps(offsets)]).encode()


def test_a_batch_goes_from_the_one_before_to_its_own_offsets() -> None:
    batch = batch_of(7, planned(orders={"0": 3, "1": 4}), planned(orders={"0": 5, "1": 4, "2": 9}, returns={"0": 1}))
    assert batch.ranges == {
        ("orders", 0): (3, 5),
        ("orders", 1): (4, 4),
        ("orders", 2): (EARLIEST, 9),
        ("returns", 0): (EARLIEST, 1),
    }
    assert batch.topics() == ["orders", "returns"]
    assert not batch.is_first


def test_the_first_batch_begins_where_the_stream_does() -> None:
    batch = batch_of(0, None, planned(orders={"0": 5}))
    assert batch.ranges == {("orders", 0): (EARLIEST, 5)}
    assert batch.is_first


def test_a_batch_of_something_else_is_refused() -> None:
    with pytest.raises(NotReplayed, match="batch 3 names no offsets of topics"):
        batch_of(3, None, b'v1\n{"batchWatermarkMs":0}\n{"logOffset":3}')
