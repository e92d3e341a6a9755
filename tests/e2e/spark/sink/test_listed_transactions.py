"""Exactly once without shared transactions, on a node that is not asked for them: lists are kept, and finished."""

import asyncio
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import TopicPartition

from riverlog import SharedTransactions
from riverlog.spark.refusal import SinkRefused
from riverlog.spark.sink import listed_transactions
from riverlog.spark.sink.listed_transactions import ListedTransactions
from riverlog.spark.sink.options import SinkOptions, read_options
from riverlog.spark.sink.writers import BatchSink, StreamBatchSink, StreamSink
from tests.e2e.clients import create_topic, read_all
from tests.support.node import Node
from tests.support.spark_jobs import NAMES, StreamJob, frames, task_context, travelled


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with Node(tmp_path_factory.mktemp("node"), settings={"metrics.port": "-1"}) as node:
        yield node


@pytest.fixture
def topic(node: Node) -> str:
    name = f"out-{uuid4()}"
    create_topic(node.bootstrap, name, partitions=3)
    return name


class ListedJob(StreamJob):
    """A query whose cluster is taken for one without shared transactions."""

    def __init__(self, options: dict[str, str], *, run: str) -> None:
        super().__init__(options, query="query", run=f"{run:0>8}-0000-0000-0000-000000000000")
        self.read = read_options(options, is_stream=True)

    def plan(self) -> Any:
        writer = StreamSink(self.read, NAMES)
        writer._strategy = asyncio.run(taken_over(self.read))
        return travelled(writer)


async def taken_over(options: SinkOptions, *, is_one_of_several: bool = False) -> ListedTransactions:
    name = options.query_name
    assert name is not None
    async with SharedTransactions(options.cluster.bootstrap, name, incarnation="unused") as owner:
        batch = owner.batch(0)
    owner = batch.owner_id, batch.owner_epoch
    return await listed_transactions.take_over(name, owner, options, is_one_of_several=is_one_of_several)


@pytest.fixture
def options(node: Node, topic: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": node.bootstrap, "topic": topic, "queryName": topic}


def committed(options: dict[str, str]) -> list[bytes]:
    partitions = [TopicPartition(options["topic"], index) for index in range(3)]
    bootstrap = options["kafka.bootstrap.servers"]
    return sorted(value for partition in partitions for _, value in read_all(bootstrap, partition))


def test_batches_are_seen_once_they_are_committed(options: dict[str, str]) -> None:
    query = ListedJob(options, run="1")
    writer = query.plan()
    messages = [query.task(writer, 0, 0, b"a", b"b"), query.task(writer, 0, 1, b"c"), query.task(writer, 0, 2)]
    assert committed(options) == []
    query.commit(messages, 0)
    query.batch(1, [b"d"], [])
    query.batch(2, [])
    assert committed(options) == [b"a", b"b", b"c", b"d"]


def test_a_list_that_was_left_is_finished_by_the_next_start_and_its_batch_not_written_again(
    options: dict[str, str],
) -> None:
    query = ListedJob(options, run="1")
    writer = query.plan()
    messages = [query.task(writer, 0, 0, b"a"), query.task(writer, 0, 1, b"b")]
    asyncio.run(keep_list(writer._strategy, messages, query.read))
    assert committed(options) == []
    again = ListedJob(options, run="2")
    planned = again.plan()
    assert committed(options) == [b"a", b"b"]
    again.commit([again.task(planned, 0, 0, b"a"), again.task(planned, 0, 1, b"b")], 0)
    again.batch(1, [b"c"])
    assert committed(options) == [b"a", b"b", b"c"]


async def keep_list(way: ListedTransactions, messages: list[Any], options: SinkOptions) -> None:
    """Do what commit() does, up to where its driver dies: the list is kept, and nothing is ended."""
    assert way.owner is not None
    attempt = messages[0].attempt
    kept = listed_transactions.ListedBatch(attempt.query, attempt.batch, tuple(each.handed for each in messages))
    async with listed_transactions._writer(way.pipeline, way.owner, options) as producer:
        await listed_transactions.write_list(producer, way.pipeline, kept)


def test_what_was_left_without_a_list_is_written_again(options: dict[str, str]) -> None:
    old = ListedJob(options, run="1")
    writer = old.plan()
    left = [old.task(writer, 0, 0, b"left")]
    new = ListedJob(options, run="2")
    new.batch(0, [b"right"])
    with pytest.raises(SinkRefused, match="another driver has taken over"):
        old.commit(left, 0)
    assert committed(options) == [b"right"]


def test_an_aborted_batch_leaves_nothing(options: dict[str, str]) -> None:
    query = ListedJob(options, run="1")
    query.abort([query.task(query.plan(), 0, 0, b"wrong"), None], 0)
    ListedJob(options, run="2").batch(0, [b"right"])
    assert committed(options) == [b"right"]


def test_a_part_whose_time_was_up_is_said_to_be_lost_and_the_query_goes_on(options: dict[str, str]) -> None:
    query = ListedJob(options, run="1")
    writer = query.plan()
    messages = [query.task(writer, 0, 0, b"kept"), query.task(writer, 0, 1, b"lost")]
    asyncio.run(keep_list(writer._strategy, messages, query.read))
    query.task(writer, 0, 1, b"a successor, which aborts as time does")
    with pytest.raises(SinkRefused, match="a part of batch 0 is lost"):
        ListedJob(options, run="2").plan()
    ListedJob(options, run="3").batch(1, [b"more"], [b"even more"])
    assert committed(options) == [b"even more", b"kept", b"more"]


def test_a_job_has_no_list(options: dict[str, str]) -> None:
    writer = BatchSink(read_options(options, is_stream=False), NAMES)
    writer._strategy = ListedTransactions(f"job-{uuid4()}")
    with task_context(0, 1, {}):
        message = travelled(writer.write(iter(frames(b"a", b"b"))))
    writer.commit([message])
    assert committed(options) == [b"a", b"b"]


class WritesJob(ListedJob):
    """A query that writes its batches in foreachBatch, each perhaps several times."""

    def plan(self) -> Any:
        writer = StreamBatchSink(self.read, NAMES)
        writer._strategy = asyncio.run(taken_over(self.read, is_one_of_several=True))
        return travelled(writer)


def test_several_writes_of_a_batch_are_listed_one_behind_the_other(options: dict[str, str]) -> None:
    first = WritesJob(options, run="1")
    first.batch(0, [b"a"])
    first.batch(0, [b"b"])
    first.batch(1, [b"c"])
    again = WritesJob(options, run="2")
    for value in (b"c", b"d", b"e"):
        again.batch(1, [value])
    again.batch(2, [])
    again.batch(2, [b"f"])
    assert committed(options) == [b"a", b"b", b"c", b"d", b"e", b"f"]
    last = WritesJob({**options, "topic": f"{options['topic']}-2"}, run="3")
    with pytest.raises(SinkRefused, match="in the same order each time"):
        last.batch(2, [b"g"])
