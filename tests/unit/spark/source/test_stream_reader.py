"""Streams planned and read as Spark does it, against a broker in the same process."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, ReadMinRows

from riverlog import Admin
from riverlog.client.errors import KafkaError
from riverlog.model.ids import TopicPartition
from riverlog.spark.source import planner, stream_reader, task
from riverlog.spark.source.losses import DataLoss
from riverlog.spark.source.options import stream_options
from riverlog.spark.source.ranges import OffsetsJson
from riverlog.spark.source.stream_reader import StreamReader
from riverlog.testing import RunningBroker
from tests.support.spark import create, delete, rows, send, struct

ALL = ReadAllAvailable()


@pytest.fixture
def servers(riverlog_broker: RunningBroker, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Yield the address of a broker with a topic of two partitions; queries look at everything each time."""
    monkeypatch.setattr(stream_reader, "DISCOVERY_SECONDS", 0.0)
    create(riverlog_broker.bootstrap_servers, "orders", partitions=2)
    yield riverlog_broker.bootstrap_servers
    task.READERS.close()


class Query:
    """A stream as Spark runs it: batch after batch, and again from a checkpoint."""

    def __init__(self, servers: str, start: OffsetsJson | None = None, **options: str) -> None:
        given = {"bootstrap": servers, "subscribe": "orders", "startingOffsets": "earliest"} | options
        self.reader = StreamReader(stream_options(given), struct("topic", "partition", "offset"))
        self.start = start

    def __enter__(self) -> "Query":
        if self.start is None:
            self.start = self.reader.initialOffset()
        return self

    def __exit__(self, *_: object) -> None:
        self.reader.stop()

    def batch(self, limit: ReadLimit = ALL) -> list[tuple[str, int]]:
        """Run a batch and give its rows as partitions with offsets."""
        assert self.start is not None
        end = self.reader.latestOffset(self.start, limit)
        found = self.replay(self.start, end) if end != self.start else []
        self.start = end
        return found

    def replay(self, start: OffsetsJson, end: OffsetsJson) -> list[tuple[str, int]]:
        found: list[dict[str, Any]] = rows(self.reader, self.reader.partitions(start, end))
        return [(f"{row['topic']}-{row['partition']}", row["offset"]) for row in found]


def test_batches_follow_one_another(servers: str) -> None:
    with Query(servers) as query:
        assert query.start == {"orders": {"0": 0, "1": 0}}
        assert query.batch() == []
        send(servers, "orders", [b"a", b"b"])
        assert query.batch() == [("orders-0", 0), ("orders-0", 1)]
        assert query.reader.reportLatestOffset() == query.start == {"orders": {"0": 2, "1": 0}}
        send(servers, "orders", [b"c"], partition=1)
        assert query.batch() == [("orders-1", 0)]
        assert query.batch() == []


@pytest.mark.parametrize(
    ("starting", "expected"),
    [("latest", [3, 1]), ("earliest", [0, 0]), ('{"orders": {"0": 2, "1": -1}}', [2, 1])],
)
def test_where_a_stream_begins(servers: str, starting: str, expected: list[int]) -> None:
    send(servers, "orders", [b"a", b"b", b"c"])
    send(servers, "orders", [b"d"], partition=1)
    with Query(servers, startingOffsets=starting) as query:
        assert query.start == {"orders": {"0": expected[0], "1": expected[1]}}


@pytest.mark.parametrize("offset", [0, 99])
def test_a_stream_that_is_to_begin_where_nothing_is_fails_or_begins_beside_it(servers: str, offset: int) -> None:
    send(servers, "orders", [b"a", b"b", b"c", b"d", b"e"])
    asyncio.run(delete_before(servers, 2))
    starting = f'{{"orders": {{"0": {offset}, "1": -2}}}}'
    failing = Query(servers, startingOffsets=starting)
    with pytest.raises(DataLoss, match=rf"from offset {offset} on, and has those from 2 up to 5"):
        failing.reader.initialOffset()
    failing.reader.stop()
    with Query(servers, startingOffsets=starting, failOnDataLoss="false") as query:
        assert len(query.batch()) == (3 if offset == 0 else 0)


async def delete_before(servers: str, offset: int) -> None:
    async with Admin(servers) as admin:
        await admin.delete_records({TopicPartition("orders", 0): offset})


def test_a_batch_takes_no_more_than_it_may(servers: str) -> None:
    send(servers, "orders", [b"x"] * 30)
    send(servers, "orders", [b"x"] * 10, partition=1)
    with Query(servers, maxOffsetsPerTrigger="20") as query:
        limit = query.reader.getDefaultReadLimit()
        assert limit == ReadMaxRows(20)
        query.batch(limit)
        assert query.start == {"orders": {"0": 15, "1": 5}}
        assert query.reader.reportLatestOffset() == {"orders": {"0": 30, "1": 10}}
        query.batch(limit)
        assert query.batch(limit) == []


def test_a_batch_waits_until_it_has_enough(servers: str, monkeypatch: pytest.MonkeyPatch) -> None:
    send(servers, "orders", [b"x"])
    with Query(servers, minOffsetsPerTrigger="3", maxTriggerDelay="1h") as query:
        limit = query.reader.getDefaultReadLimit()
        assert limit == ReadMinRows(3)
        assert len(query.batch(limit)) == 1, "the first one does not wait"
        send(servers, "orders", [b"x"] * 2)
        assert query.batch(limit) == []
        send(servers, "orders", [b"x"])
        assert len(query.batch(limit)) == 3
        send(servers, "orders", [b"x"])
        assert query.batch(limit) == []
        later = stream_reader.monotonic() + 3_601
        monkeypatch.setattr(stream_reader, "monotonic", lambda: later)
        assert len(query.batch(limit)) == 1


def test_what_is_available_now_ends(servers: str) -> None:
    send(servers, "orders", [b"x"] * 4)
    with Query(servers, maxOffsetsPerTrigger="3") as query:
        query.reader.prepareForTriggerAvailableNow()
        send(servers, "orders", [b"late"] * 10)
        limit = query.reader.getDefaultReadLimit()
        assert len(query.batch(limit)) == 3
        assert len(query.batch(limit)) == 1
        assert query.batch(limit) == []
        assert query.start == {"orders": {"0": 4, "1": 0}}


def test_new_partitions_are_read_from_their_beginning(servers: str) -> None:
    send(servers, "orders", [b"x"])
    with Query(servers) as query:
        query.batch()

        async def grow() -> None:
            async with Admin(servers) as admin:
                await admin.create_partitions("orders", 3)

        asyncio.run(grow())
        send(servers, "orders", [b"x"] * 2, partition=2)
        assert query.batch() == [("orders-2", 0), ("orders-2", 1)]


def test_a_new_partition_whose_first_records_are_gone_fails_the_query_or_is_read_behind_them(servers: str) -> None:
    send(servers, "orders", [b"x"] * 5)
    asyncio.run(delete_before(servers, 2))
    start, end = {"orders": {"1": 0}}, {"orders": {"0": 5, "1": 0}}
    with Query(servers, start) as query:
        with pytest.raises(DataLoss, match="orders-0 is new and begins at offset 2"):
            query.batch()
        with pytest.raises(DataLoss, match="orders-0 is new and begins at offset 2"):
            query.replay(start, end)
    with Query(servers, start, failOnDataLoss="false") as query:
        assert query.replay(start, end) == query.batch() == [("orders-0", offset) for offset in (2, 3, 4)]


def test_topics_that_match_a_pattern_come_and_are_read(servers: str) -> None:
    options = {"bootstrap": servers, "subscribePattern": "orders|refunds", "startingOffsets": "latest"}
    reader = StreamReader(stream_options(options), struct("offset"))
    start = reader.initialOffset()
    create(servers, "refunds")
    send(servers, "refunds", [b"x"])
    end = reader.latestOffset(start, ALL)
    assert end == {"orders": {"0": 0, "1": 0}, "refunds": {"0": 1}}
    assert rows(reader, reader.partitions(start, end)) == [{"offset": 0}]
    reader.stop()


def test_a_batch_is_run_again_with_the_same_offsets(servers: str) -> None:
    send(servers, "orders", [b"x"] * 5)
    start, end = {"orders": {"0": 1, "1": 0}}, {"orders": {"0": 4, "1": 0}}
    with Query(servers, start) as query:
        assert query.replay(start, end) == [("orders-0", offset) for offset in (1, 2, 3)]


def test_a_topic_created_anew_fails_the_query(servers: str) -> None:
    send(servers, "orders", [b"x"] * 5)
    with Query(servers) as query:
        assert len(query.batch()) == 5
        delete(servers, "orders")
        create(servers, "orders", partitions=2)
        send(servers, "orders", [b"y"] * 9)
        with pytest.raises(DataLoss, match="topic 'orders' was deleted and created anew"):
            query.batch()


@pytest.mark.parametrize("records_max", [None, 5, 2])
def test_or_is_read_from_its_beginning(servers: str, records_max: int | None) -> None:
    limit = ALL if records_max is None else ReadMaxRows(records_max)
    send(servers, "orders", [b"x"] * 5)
    with Query(servers, failOnDataLoss="false") as query:
        assert len(query.batch()) == 5
        delete(servers, "orders")
        create(servers, "orders", partitions=2)
        send(servers, "orders", [b"y"] * 9)
        found = [each for _ in range(9) for each in query.batch(limit)]
        assert found == [("orders-0", offset) for offset in range(9)]
        send(servers, "orders", [b"z"])
        assert query.batch(limit) == [("orders-0", 9)]


def test_after_a_restart_a_shorter_topic_fails_the_query_or_is_read_anew(servers: str) -> None:
    send(servers, "orders", [b"x"] * 3)
    stands = {"orders": {"0": 7, "1": 0}}
    with (
        Query(servers, stands) as query,
        pytest.raises(DataLoss, match="orders-0 ends at offset 3, and this query has"),
    ):
        query.batch()
    with Query(servers, stands, failOnDataLoss="false") as query:
        assert query.batch() == [("orders-0", offset) for offset in range(3)]
        assert query.batch() == []
    end = {"orders": {"0": 9, "1": 0}}
    with Query(servers, stands) as query, pytest.raises(DataLoss, match="orders-0 ends at offset 3"):
        query.replay(stands, end)
    with Query(servers, stands, failOnDataLoss="false") as query:
        assert query.replay(stands, end) == [("orders-0", offset) for offset in range(3)]


@pytest.fixture(params=["at once", "only where it is missed"])
def looking(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, servers: str) -> None:
    """Make a query look for its topics each time, or only once a partition is not found."""
    if request.param != "at once":
        monkeypatch.setattr(stream_reader, "DISCOVERY_SECONDS", 60.0)
        monkeypatch.setattr(planner, "ASK_SECONDS_MAX", 0.2)


@pytest.mark.usefixtures("looking")
def test_a_topic_that_goes_away_fails_the_query(servers: str) -> None:
    create(servers, "returns")
    with Query(servers, subscribe="orders,returns") as query:
        assert query.batch() == []
        delete(servers, "returns")
        with pytest.raises(KafkaError, match="topic 'returns': the cluster has no such topic"):
            query.batch()


@pytest.mark.usefixtures("looking")
def test_or_is_left_out(servers: str) -> None:
    create(servers, "returns")
    send(servers, "returns", [b"x"])
    with Query(servers, subscribe="orders,returns", failOnDataLoss="false") as query:
        assert query.batch() == [("returns-0", 0)]
        delete(servers, "returns")
        assert query.batch() == []
        assert query.start == {"orders": {"0": 0, "1": 0}}
