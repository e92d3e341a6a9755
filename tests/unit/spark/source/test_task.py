"""Parts as tasks read them, against a broker in the same process."""

import asyncio
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from riverlog import Admin
from riverlog.arrow.columns import Cut
from riverlog.client.errors import TimedOut
from riverlog.model.ids import NO_TOPIC_ID, Offset, TopicId, TopicPartition
from riverlog.spark.source import task
from riverlog.spark.source.columns import columns
from riverlog.spark.source.losses import DataLoss
from riverlog.spark.source.options import stream_options
from riverlog.spark.source.task import SourcePartition, read_partition
from riverlog.spark.worker import pool
from riverlog.testing import RunningBroker
from tests.support.spark import create, send, struct

HERE = TopicPartition("orders", 0)
COLUMNS = columns(struct("offset", "value"), None)


@pytest.fixture
def servers(riverlog_broker: RunningBroker) -> Iterator[str]:
    """Yield the address of a broker with a topic of ten records; what tasks kept is let go in the end."""
    servers = riverlog_broker.bootstrap_servers
    create(servers, "orders")
    send(servers, "orders", [b"%d" % row for row in range(10)])
    yield servers
    task.READERS.close()


def part(from_offset: int, until_offset: int, topic_id: TopicId = NO_TOPIC_ID) -> SourcePartition:
    return SourcePartition(HERE, Cut(Offset(from_offset), Offset(until_offset)), topic_id)


def read(servers: str, wanted: SourcePartition, **options: str) -> list[int]:
    found = stream_options({"bootstrap": servers, "subscribe": "orders"} | options)
    return [row["offset"] for batch in read_partition(wanted, found, COLUMNS) for row in batch.to_pylist()]


def delete_before(servers: str, offset: int) -> None:
    async def delete() -> None:
        async with Admin(servers) as admin:
            await admin.delete_records({HERE: offset})

    asyncio.run(delete())


def test_a_part_is_read_exactly_and_the_reader_is_kept_for_the_next(servers: str) -> None:
    assert read(servers, part(2, 5)) == [2, 3, 4]
    (kept,) = task.READERS.waiting
    assert read(servers, part(9, 10)) == [9]
    assert task.READERS.waiting == [kept]
    send(servers, "orders", [b"late"])
    assert read(servers, part(10, 11)) == [10]


def test_few_readers_are_kept(servers: str) -> None:
    for number in range(pool.KEPT_MAX + 2):
        read(servers, part(0, 1), **{"kafka.client.id": str(number)})
    assert len(task.READERS.waiting) == pool.KEPT_MAX


def test_one_that_is_not_read_to_its_end_is_not_kept(servers: str) -> None:
    options = stream_options({"bootstrap": servers, "subscribe": "orders"})
    batches = read_partition(part(0, 10), options, COLUMNS)
    next(batches)
    batches.close()  # type: ignore[attr-defined]
    assert task.READERS.waiting == []


def test_deleted_records_fail_the_task_or_are_left_out(servers: str) -> None:
    delete_before(servers, 4)
    with pytest.raises(DataLoss, match="orders-0 was to be read from offset 2 up to 6, and has those from 4 up to 10"):
        read(servers, part(2, 6))
    assert read(servers, part(2, 6), failOnDataLoss="false") == [4, 5]
    assert read(servers, part(0, 4), failOnDataLoss="false") == []


def test_records_that_will_never_come_fail_the_task_or_are_left_out(
    servers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task, "CHECK_SECONDS", 0.2)
    with pytest.raises(DataLoss, match="from offset 10 up to 20, and has those from 0 up to 10"):
        read(servers, part(8, 20))
    assert read(servers, part(8, 20), failOnDataLoss="false") == [8, 9]
    assert read(servers, part(50, 60), failOnDataLoss="false") == []


def test_a_topic_that_is_another_one_fails_the_task(servers: str) -> None:
    other = TopicId(UUID(int=1))
    with pytest.raises(DataLoss, match="topic 'orders' was deleted and created anew"):
        read(servers, part(0, 5, other))
    assert read(servers, part(0, 5, other), failOnDataLoss="false") == [*range(5)]


def test_bytes_that_do_not_come_are_told(servers: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task, "CHECK_SECONDS", 0.1)

    def nothing_is_lost(self: Any, _part: SourcePartition, cut: Cut) -> Cut:
        return cut

    monkeypatch.setattr(task.PooledReader, "_left", nothing_is_lost)
    with pytest.raises(TimedOut, match="orders-0 gave no bytes at offset 10 for 0 s"):
        read(servers, part(10, 11), **{"kafkaConsumer.pollTimeoutMs": "150"})
