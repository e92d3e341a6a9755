"""Batches planned and read as Spark does it, against a broker in the same process."""

import asyncio
import pickle
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from pyspark.sql.datasource import DataSourceReader, EqualTo, GreaterThan, GreaterThanOrEqual, InputPartition, LessThan

from riverlog import Admin
from riverlog.model.ids import TopicPartition
from riverlog.spark.source import task
from riverlog.spark.source.batch_reader import BatchReader
from riverlog.spark.source.losses import DataLoss
from riverlog.spark.source.options import batch_options
from riverlog.testing import RunningBroker
from tests.support.spark import create, rows, send, struct


@pytest.fixture
def servers(riverlog_broker: RunningBroker) -> Iterator[str]:
    """Yield the address of a broker with two partitions of ten records, a second apart."""
    servers = riverlog_broker.bootstrap_servers
    create(servers, "orders", partitions=2)
    for partition in range(2):
        for row in range(10):
            send(servers, "orders", [b"%d" % row], partition=partition, timestamp_ms=(row + 1) * 1_000)
    yield servers
    task.READERS.close()


def reader(servers: str, **options: str) -> BatchReader:
    found = batch_options({"bootstrap": servers, "subscribe": "orders"} | options)
    return BatchReader(found, struct("partition", "offset", "timestamp"))


def places(found: BatchReader) -> list[tuple[int, int]]:
    return [(row["partition"], row["offset"]) for row in rows(found, found.partitions())]


def both(*offsets: int) -> list[tuple[int, int]]:
    return [(partition, offset) for partition in range(2) for offset in offsets]


def test_a_batch_is_all_that_there_is(servers: str) -> None:
    assert places(reader(servers)) == both(*range(10))
    assert len(reader(servers).partitions()) == 2
    assert len(reader(servers, minPartitions="5").partitions()) == 6
    assert places(reader(servers, minPartitions="5")) == both(*range(10))
    assert [part.cut[:2] for part in reader(servers, maxRecordsPerPartition="6").partitions()] == [(0, 5), (5, 10)] * 2


def test_a_batch_between_two_places(servers: str) -> None:
    ends = {"startingOffsets": '{"orders": {"0": 3, "1": -2}}', "endingOffsets": '{"orders": {"0": -1, "1": 2}}'}
    assert places(reader(servers, **ends)) == [*((0, offset) for offset in range(3, 10)), (1, 0), (1, 1)]
    assert places(reader(servers, startingTimestamp="4000", endingTimestamp="6000")) == both(3, 4)


def test_a_reader_travels_to_its_tasks_without_what_it_asked(servers: str) -> None:
    found = reader(servers)
    parts = found.partitions()
    there = pickle.loads(pickle.dumps((found, parts)))
    assert len(rows(*there)) == 20


def test_where_there_is_nothing_spark_asks_once_all_the_same(servers: str) -> None:
    create(servers, "empty")
    found = reader(servers, subscribe="empty")
    assert found.partitions() == []
    assert rows(found, [InputPartition(None)]) == []


def test_filters_narrow_what_is_read(servers: str) -> None:
    found = reader(servers)
    time = GreaterThan(("timestamp",), datetime.fromtimestamp(4, UTC))
    late = LessThan(("timestamp",), datetime.fromtimestamp(9, UTC))
    filters = [EqualTo(("partition",), 1), GreaterThanOrEqual(("offset",), 2), time, LessThan(("offset",), 7), late]
    assert [*found.pushFilters(filters)] == [time, late]
    (part,) = found.partitions()
    assert (part.partition, part.cut) == (TopicPartition("orders", 1), (4, 7, 4_001))
    assert places(found) == [(1, 4), (1, 5), (1, 6)]


def test_spark_takes_the_reader_for_one_without_filters_where_it_pushes_none(servers: str) -> None:
    """Spark asks it in these words, and refuses a reader that says something else."""
    assert getattr(reader(servers).pushFilters, "__func__", None) is DataSourceReader.pushFilters


def test_offsets_that_are_not_there_fail_or_are_left_out(servers: str) -> None:
    async def delete() -> None:
        async with Admin(servers) as admin:
            await admin.delete_records({TopicPartition("orders", 0): 4})

    asyncio.run(delete())
    ends = {"startingOffsets": '{"orders": {"0": 2, "1": 8}}', "endingOffsets": '{"orders": {"0": 6, "1": 20}}'}
    with pytest.raises(DataLoss, match="orders-0 was to be read from offset 2 up to 6, and has those from 4 up to 10"):
        reader(servers, **ends).partitions()
    assert places(reader(servers, failOnDataLoss="false", **ends)) == [(0, 4), (0, 5), (1, 8), (1, 9)]
    beyond = {"startingOffsets": '{"orders": {"0": 99, "1": 0}}'}
    with pytest.raises(DataLoss, match="was to be read from offset 99 up to 10, and has those from 4 up to 10"):
        reader(servers, **beyond).partitions()
    assert {partition for partition, _ in places(reader(servers, failOnDataLoss="false", **beyond))} == {1}
