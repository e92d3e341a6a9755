"""The Spark sink writes to Apache Kafka, which has no shared transactions, by the rules of both versions."""

import asyncio
from collections.abc import Iterator

import pytest
from confluent_kafka import TopicPartition

from bench.cache import cache_folder
from bench.peer import Kafka
from riverlog.client.producer import transactions
from riverlog.spark.refusal import SinkRefused
from riverlog.spark.sink.listed_transactions import ListedTransactions
from tests.e2e.clients import create_topic, read_all
from tests.e2e.spark.sink.test_listed_transactions import keep_list
from tests.support.spark_jobs import StreamJob, write_job

PARTITIONS = 3


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    kafka = Kafka(cache_folder())
    kafka.prepare()
    home = tmp_path_factory.mktemp("kafka")
    kafka.format(home)
    broker = kafka.start(home)
    yield f"{broker.host}:{broker.port}"
    broker.stop()


@pytest.fixture(params=["newest", "older"])
def options(request: pytest.FixtureRequest, kafka: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Return the options of a sink with a fresh topic, which writes by the rules that Kafka offers or by older ones."""
    if request.param == "older":
        monkeypatch.setattr(transactions, "_FEATURE", "not.there")
    topic = request.node.name.replace("[", "-").replace("]", "")
    create_topic(kafka, topic, partitions=PARTITIONS)
    return {"kafka.bootstrap.servers": kafka, "topic": topic, "queryName": topic}


def query(options: dict[str, str], run: int) -> StreamJob:
    return StreamJob(options, query="query", run=f"{run:0>8}-0000-0000-0000-000000000000")


def committed(options: dict[str, str]) -> list[bytes]:
    places = [TopicPartition(options["topic"], index) for index in range(PARTITIONS)]
    return sorted(value for place in places for _, value in read_all(options["kafka.bootstrap.servers"], place))


def test_batches_of_a_stream(options: dict[str, str]) -> None:
    job = query(options, 1)
    writer = job.plan()
    assert isinstance(writer._strategy, ListedTransactions)
    messages = [job.task(writer, 0, 0, b"a", b"b"), job.task(writer, 0, 1, b"c")]
    job.commit(messages, 0)
    job.abort([job.task(job.plan(), 1, 0, b"wrong")], 1)
    query(options, 2).batch(1, [b"d"], [])
    assert committed(options) == [b"a", b"b", b"c", b"d"]


def test_a_list_that_was_left_is_finished_and_its_batch_not_written_again(options: dict[str, str]) -> None:
    old = query(options, 1)
    writer = old.plan()
    messages = [old.task(writer, 0, 0, b"a"), old.task(writer, 0, 1, b"b")]
    asyncio.run(keep_list(writer._strategy, messages, writer._options))
    new = query(options, 2)
    planned = new.plan()
    assert committed(options) == [b"a", b"b"]
    new.commit([new.task(planned, 0, 0, b"a"), new.task(planned, 0, 1, b"b")], 0)
    new.batch(1, [b"c"])
    assert committed(options) == [b"a", b"b", b"c"]


def test_a_driver_that_was_replaced_commits_nothing(options: dict[str, str]) -> None:
    old = query(options, 1)
    left = [old.task(old.plan(), 0, 0, b"left")]
    query(options, 2).batch(0, [b"right"])
    with pytest.raises(SinkRefused, match="another driver has taken over"):
        old.commit(left, 0)
    assert committed(options) == [b"right"]


@pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once"])
def test_jobs(options: dict[str, str], delivery: str) -> None:
    job = {name: value for name, value in options.items() if name != "queryName"} | {"delivery": delivery}
    write_job(job, [b"a"], [b"b", b"c"])
    if delivery == "exactly-once":
        write_job(job, [b"lost"], [b"lost too"], fails_at=1)
    assert committed(options) == [b"a", b"b", b"c"]
