"""What Spark 4.3 writes in its logs, and what says nothing."""

import pytest

from riverlog.checkpoints.pipelines.spark_logs import StateName, query_of, source_offsets, state_names, watermark_ms

COMMIT = b"""v2
{"nextBatchWatermarkMs":14000,"stateUniqueIds":{"0":[["1aa40858"],["06e398bd"]],"1":[["a","b","c","d"]]}}"""
PLAN = b"""v1
{"batchWatermarkMs":13000,"batchTimestampMs":1794858182988,"conf":{"spark.sql.shuffle.partitions":"2"}}
{"orders":{"0":12,"1":7},"refunds":{"0":0}}
-
{"offset":500,"timestamp":25000}
{"orders":{"1":9}}
17"""


def test_metadata_names_its_query() -> None:
    assert query_of(b'{"id":"5c8a1f90-c921-4360-9e99-d2eab766e3ed"}') == "5c8a1f90-c921-4360-9e99-d2eab766e3ed"
    for text in (b"", b"[]", b"{}", b'{"id":7}', b"\xff", b"[" * 100_000):
        assert query_of(text) is None


def test_the_state_of_a_commit_is_named() -> None:
    assert state_names(COMMIT) == {
        StateName("0", 0, "1aa40858"),
        StateName("0", 1, "06e398bd"),
        *(StateName("1", 0, name) for name in "abcd"),
    }


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"v1",
        b'v2\n{"nextBatchWatermarkMs":0}',
        b'v2\n{"stateUniqueIds":[["a"]]}',
        b'v2\n{"stateUniqueIds":{"0":["a"],"1":[[1,null]],"2":7}}',
        b'v2\n["stateUniqueIds"]',
        b"v2\n" + b"[" * 50_000,
        b"v2\n\xff\xfe",
    ],
)
def test_what_names_none_names_none(text: bytes) -> None:
    assert state_names(text) == frozenset()
    assert source_offsets(text) == ()
    assert watermark_ms(text) is None


def test_the_offsets_behind_a_batch_are_read() -> None:
    assert source_offsets(PLAN) == (("orders", 0, 12), ("orders", 1, 9), ("refunds", 0, 0))


def test_the_watermark_of_a_batch_is_read() -> None:
    assert watermark_ms(PLAN) == 13_000
    assert watermark_ms(COMMIT) is None
    assert watermark_ms(PLAN.replace(b"13000", b"0")) == 0
    assert watermark_ms(PLAN.replace(b"13000", b"true")) is None


@pytest.mark.parametrize(
    "source",
    [
        b'{"orders":{"x":1}}',
        b'{"orders":{"0":-1}}',
        b'{"orders":{"0":true}}',
        b'{"orders":{"0":"1"}}',
        b'{"orders":{}}',
        b'{"orders":{"9999999999":1}}',
    ],
)
def test_what_are_no_offsets_is_passed_over(source: bytes) -> None:
    assert source_offsets(b"v1\n{}\n" + source) == ()
