"""The sink on a real Spark and a real node: what is written, how often, and what is refused."""

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, Message, TopicPartition
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from riverlog import Admin
from tests.e2e.clients import create_topic
from tests.support.node import Node
from tests.support.waiting import until

SECONDS_MAX = 90.0
PARTITIONS = 3


@pytest.fixture
def topic(node: Node) -> str:
    name = f"out-{uuid4()}"
    create_topic(node.bootstrap, name, partitions=PARTITIONS)
    return name


def messages(node: Node, topic: str) -> list[Message]:
    """Read a topic to its end at read_committed."""
    consumer = Consumer(
        {
            "bootstrap.servers": node.bootstrap,
            "group.id": "unused",
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition(topic, index, 0) for index in range(PARTITIONS)])
    found: list[Message] = []
    ended: set[int] = set()
    deadline = time.monotonic() + SECONDS_MAX
    while len(ended) < PARTITIONS:
        assert time.monotonic() < deadline
        for message in consumer.consume(10_000, 0.2):
            if message.error() is None:
                found.append(message)
            else:
                ended.add(message.partition())
    consumer.close()
    return found


def numbers(node: Node, topic: str) -> list[int]:
    return sorted(int(message.value()) for message in messages(node, topic))


def write(frame: DataFrame, node: Node, **options: str) -> None:
    frame.write.format("riverlog").option("kafka.bootstrap.servers", node.bootstrap).options(**options).mode(
        "append"
    ).save()


def test_every_column_arrives_as_it_was(spark: SparkSession, node: Node, topic: str) -> None:
    frame = spark.sql(
        f"""SELECT 'key' AS key, X'00FF' AS value, '{topic}' AS topic, 2 AS partition, 1 AS more,
            TIMESTAMP '2020-01-02 03:04:05.678999+00:00' AS timestamp,
            array(named_struct('key', 'a', 'value', X'01'), named_struct('key', 'a', 'value', NULL)) AS headers
            UNION ALL SELECT NULL, NULL, '{topic}', 0, 2, NULL, NULL"""
    )
    before = int(time.time() * 1000)
    write(frame, node)
    second, first = sorted(messages(node, topic), key=lambda message: message.partition())
    assert (first.partition(), first.key(), first.value()) == (2, b"key", b"\x00\xff")
    assert first.headers() == [("a", b"\x01"), ("a", None)]
    assert first.timestamp()[1] == 1_577_934_245_678
    assert (second.partition(), second.key(), second.value(), second.headers()) == (0, None, None, None)
    assert second.timestamp()[1] >= before


@pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once"])
def test_a_frame_is_written_whole_by_the_kernel(spark: SparkSession, node: Node, topic: str, delivery: str) -> None:
    frame = spark.range(0, 130_000, 1, 2).selectExpr("CAST(id % 100 AS STRING) AS key", "CAST(id AS STRING) AS value")
    write(frame, node, topic=topic, delivery=delivery, **{"kafka.compression.type": "lz4"})
    found = messages(node, topic)
    assert sorted(int(message.value()) for message in found) == list(range(130_000))
    homes: dict[bytes, set[int]] = {}
    for message in found:
        homes.setdefault(message.key(), set()).add(message.partition())
    assert {len(partitions) for partitions in homes.values()} == {1}


@pytest.mark.parametrize("large", ["true", "false"])
def test_names_in_any_case_and_types_of_any_size(spark: SparkSession, node: Node, topic: str, large: str) -> None:
    settings = {"useLargeVarTypes": large, "maxRecordsPerBatch": "7000"}
    for name, value in settings.items():
        spark.conf.set(f"spark.sql.execution.arrow.{name}", value)
    try:
        frame = spark.range(0, 60_000, 1, 1).selectExpr(
            "CAST(id AS STRING) AS VALUE",
            "IF(id % 3 = 0, NULL, encode(id, 'utf-8')) AS Key",
            f"'{topic}' AS Topic",
            f"CAST(id % {PARTITIONS} AS INT) AS partition",
            "IF(id % 5 = 0, NULL, array(named_struct('key', concat('n', id), 'value', encode(id, 'utf-8')))) HEADERS",
        )
        write(frame, node)
    finally:
        for name in settings:
            spark.conf.unset(f"spark.sql.execution.arrow.{name}")
    found = messages(node, topic)
    assert sorted(int(message.value()) for message in found) == list(range(60_000))
    for message in found:
        number = int(message.value())
        assert message.partition() == number % PARTITIONS
        assert message.key() == (None if number % 3 == 0 else message.value())
        assert (message.headers() or []) == ([] if number % 5 == 0 else [(f"n{number}", message.value())])


def test_a_job_that_fails_leaves_nothing(spark: SparkSession, node: Node, topic: str) -> None:
    frame = spark.range(0, 1_000, 1, 2).selectExpr(
        "CAST(id AS STRING) AS value", "CASE WHEN id = 999 THEN 77 ELSE 0 END AS partition"
    )
    with pytest.raises(Exception, match="partitions 0 to 2, and a row names 77"):
        write(frame, node, topic=topic)
    assert numbers(node, topic) == []


@pytest.mark.parametrize(
    ("columns", "options", "problem"),
    [
        (["CAST(id AS STRING) AS text"], {"topic": "out"}, 'there is no column "value" among text'),
        (["CAST(id AS STRING) AS value"], {}, 'set the option "topic"'),
        (["id AS value"], {"topic": "out"}, 'the column "value" has the type bigint'),
        (["'v' AS value", "'k' AS Key", "'K' AS KEY"], {"topic": "out"}, "differ in their case alone"),
        (["'v' AS value", "TIMESTAMP_NTZ '2026-01-01 00:00:00' AS timestamp"], {"topic": "out"}, "by a cast"),
        (["CAST(id AS STRING) AS value"], {"topic": "out", "topik": "x"}, "did you mean topic?"),
        (["CAST(id AS STRING) AS value"], {"topic": "not.there!"}, "not.there!"),
    ],
)
def test_what_cannot_be_written_is_refused_in_one_sentence(
    spark: SparkSession, node: Node, columns: list[str], options: dict[str, str], problem: str
) -> None:
    with pytest.raises(Exception) as refused:  # noqa: PT011 - Spark's own kinds, with the sentence in the middle
        write(spark.range(10).selectExpr(*columns), node, **options)
    assert problem in str(refused.value)


def test_a_row_that_is_too_large_is_refused(spark: SparkSession, node: Node, topic: str) -> None:
    frame = spark.range(1).selectExpr("repeat('x', 5000) AS value")
    with pytest.raises(Exception, match=r"raise kafka\.max\.request\.size"):
        write(frame, node, topic=topic, **{"kafka.max.request.size": "4000"})


# Streams --------------------------------------------------------------------------------------------------

Start = Callable[..., StreamingQuery]


@pytest.fixture
def start(spark: SparkSession, node: Node, topic: str) -> Iterator[Start]:
    """Yield how a query is started that copies numbers, a few in each batch."""
    started: list[StreamingQuery] = []

    def start(checkpoint: str, **more: str) -> StreamingQuery:
        rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).option("numPartitions", 2).load()
        options = {"kafka.bootstrap.servers": node.bootstrap, "topic": topic, "checkpointLocation": checkpoint, **more}
        writer = rows.selectExpr("CAST(value AS STRING) AS value").writeStream.format("riverlog").options(**options)
        started.append(writer.start())
        return started[-1]

    yield start
    for query in started:
        query.stop()


@pytest.fixture(params=["node", "folder"])
def place(request: pytest.FixtureRequest, node: Node, checkpoint: str) -> str:
    """Return where a checkpoint lies: on the node, or in a folder."""
    return checkpoint if request.param == "folder" else f"{node.addresses['checkpoints']}/pipelines/{uuid4()}"


def run_until(query: StreamingQuery, batches: int) -> None:
    """Make a query run until so many batches are done, and stop it."""
    wait_for(query, batches)
    problem = query.exception()
    query.stop()
    assert problem is None, problem


def wait_for(query: StreamingQuery, batches: int) -> None:
    until(
        lambda: _done(query) >= batches or not query.isActive,
        lambda: f"the query has done {_done(query)} batches",
        seconds_max=SECONDS_MAX,
    )


def _done(query: StreamingQuery) -> int:
    return int(query.lastProgress["batchId"]) + 1 if query.lastProgress else 0


def test_a_query_that_is_stopped_and_started_writes_every_number_once(
    node: Node, topic: str, start: Start, place: str
) -> None:
    run_until(start(place), 3)
    run_until(start(place), 6)
    found = numbers(node, topic)
    assert len(found) >= 60
    assert found == list(range(len(found)))


def test_a_node_that_is_restarted_is_waited_for(
    spark: SparkSession, tmp_path: Path, checkpoint: str, start: Start
) -> None:
    with Node(tmp_path / "node") as node:
        create_topic(node.bootstrap, "out", partitions=PARTITIONS)
        query = start(checkpoint, **{"kafka.bootstrap.servers": node.bootstrap, "topic": "out"})
        wait_for(query, 2)
        node.kill()
        node.start()
        run_until(query, _done(query) + 3)
        found = numbers(node, "out")
    assert found == list(range(len(found)))


def test_a_query_without_a_location_has_the_checkpoint_of_its_session_or_none(
    spark: SparkSession, node: Node, topic: str, tmp_path: Path
) -> None:
    name, setting = f"named 5%20 #{uuid4()}?", "spark.sql.streaming.checkpointLocation"
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
    writer = source.selectExpr("CAST(value AS STRING) AS value").writeStream.format("riverlog").queryName(name)
    writer = writer.options(**{"kafka.bootstrap.servers": node.bootstrap, "topic": topic})
    try:
        spark.conf.set(setting, f"{node.addresses['checkpoints']}/pipelines")
        run_until(writer.start(), 2)
        spark.conf.set(setting, str(tmp_path / "checkpoints"))
        query = writer.start()
        with pytest.raises(Exception, match="names no checkpoint, and another application may have one of this name"):
            query.awaitTermination(SECONDS_MAX)
    finally:
        spark.conf.unset(setting)
    found = numbers(node, topic)
    assert len(found) >= 20
    assert found == list(range(len(found)))
    assert f"pipeline:{name}" in asyncio.run(transactional_ids(node))


def test_a_location_is_read_as_spark_reads_it(spark: SparkSession, node: Node, topic: str) -> None:
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
    writer = source.selectExpr("CAST(value AS STRING) AS value").writeStream.format("riverlog")
    place = f"{node.addresses['checkpoints']}/pipelines/50%20 #{uuid4()}?"
    options = {"kafka.bootstrap.servers": node.bootstrap, "topic": topic, "checkpointLocation": place}
    run_until(writer.options(**options).start(), 1)
    run_until(writer.options(**options).start(), 3)
    found = numbers(node, topic)
    assert len(found) >= 30
    assert found == list(range(len(found)))


async def transactional_ids(node: Node) -> set[str]:
    async with Admin(node.bootstrap) as admin:
        return {each.transactional_id for each in await admin.list_transactions()}
