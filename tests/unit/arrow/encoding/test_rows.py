"""The columns that encoders read."""

from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from riverlog.arrow.encoding.rows import (
    EncodingRules,
    TopicIndex,
    fitting,
    pairs_of,
    rows_of,
    size_max,
    unfit_partition,
    unfit_size,
)
from riverlog.client.errors import KafkaError

ANY = EncodingRules()
HERE = EncodingRules(topic="orders")


def topics() -> TopicIndex:
    return TopicIndex(lambda name: len(name))


def test_text_is_bytes_and_what_is_not_there_is_none() -> None:
    frame = pa.record_batch({"value": ["ä", None], "key": pa.nulls(2), "more": [1, 2]})
    rows = rows_of(frame, HERE, topics(), now_ms=77)
    assert rows.values.to_pylist() == ["ä".encode(), None]
    assert (rows.count, rows.keys, rows.topics, rows.partitions, rows.headers) == (2, None, None, None, None)
    assert rows.timestamps_ms.tolist() == [77, 77]


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", None])
def test_times_are_milliseconds_rounded_down(zone: str | None) -> None:
    moment = datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC if zone else None)
    frame = pa.record_batch({"value": ["a", "b"], "timestamp": pa.array([moment, None], pa.timestamp("us", zone))})
    assert rows_of(frame, HERE, topics(), now_ms=77).timestamps_ms.tolist() == [-1, 77]


def test_topics_are_numbered_as_they_are_met_and_asked_for_once() -> None:
    asked: list[str] = []

    def count(name: str) -> int:
        asked.append(name)
        return len(name)

    known = TopicIndex(count)
    first = rows_of(pa.record_batch({"value": ["x"] * 3, "topic": ["aa", "b", "aa"]}), ANY, known, now_ms=0)
    second = rows_of(pa.record_batch({"value": ["x"] * 2, "topic": ["ccc", "b"]}), ANY, known, now_ms=0)
    assert [np.asarray(each.topics).tolist() for each in (first, second)] == [[0, 1, 0], [2, 1]]
    assert (known.names, known.counts, asked) == (["aa", "b", "ccc"], [2, 1, 3], ["aa", "b", "ccc"])
    assert known.partition(2, 1) == ("ccc", 1)


def test_the_option_wins_over_the_column() -> None:
    known = topics()
    rows_of(pa.record_batch({"value": ["x"], "topic": ["elsewhere"]}), HERE, known, now_ms=0)
    assert known.names == ["orders"]


def test_a_row_without_a_topic_is_refused() -> None:
    with pytest.raises(KafkaError, match='column "topic" is null'):
        rows_of(pa.record_batch({"value": ["x"], "topic": pa.array([None], pa.string())}), ANY, topics(), now_ms=0)


def test_headers_have_names() -> None:
    assert pairs_of(None) == []
    assert pairs_of([{"key": "a", "value": None}]) == [("a", None)]
    for header in ({"key": None, "value": b""}, None):
        with pytest.raises(KafkaError, match="without a name"):
            pairs_of([header])


def test_what_is_said_about_rows_that_do_not_fit() -> None:
    known = topics()
    known.number_of("orders")
    assert "partitions 0 to 5, and a row names 6" in unfit_partition(known, 0, 6).message
    assert size_max(b"k", None, [("ä", b"x")]) == 36 + 1 + 10 + 2 + 1
    assert "raise kafka.max.request.size" in unfit_size(100, HERE).message


def test_a_batch_that_needs_longer_ends_is_read_in_parts() -> None:
    held = np.zeros(2**31 + 8, np.uint8)  # the system gives pages of it only where something is written
    ends = np.array([0, 5, 2**31, 2**31 + 3, 2**31 + 8], np.int64)
    large = pa.Array.from_buffers(pa.large_binary(), 4, [None, pa.py_buffer(ends), pa.py_buffer(held)])
    frame = pa.record_batch({"value": large, "partition": pa.array([0, 1, 2, 3], pa.int32())})
    parts = list(fitting(frame, HERE, topics(), now_ms=0))
    assert [pc.binary_length(part.values).to_pylist() for part in parts] == [[5], [2**31 - 5], [3, 5]]
