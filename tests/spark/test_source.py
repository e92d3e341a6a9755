"""The source on a real Spark: what a program sees of it. What it plans is tested without Spark, in tests/unit/spark."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import riverlog
from riverlog.checkpoints.pipelines.spark_logs import source_offsets
from tests.support.node import Node
from tests.support.spark import create, send

WAIT_SECONDS_MAX = 60.0
PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


def batch(spark: SparkSession, node: Node, topic: str, **options: str) -> DataFrame:
    return spark.read.format("riverlog").options(**reading(node, topic), **dotted(options)).load()


def stream(spark: SparkSession, node: Node, topic: str, **options: str) -> DataFrame:
    given = {"startingOffsets": "earliest"} | reading(node, topic) | dotted(options)
    return spark.readStream.format("riverlog").options(**given).load()


def reading(node: Node, topic: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": node.bootstrap, "subscribe": topic}


def dotted(options: dict[str, str]) -> dict[str, str]:
    return {name.replace("__", "."): value for name, value in options.items()}


def wait_for(condition: Callable[[], bool], query: StreamingQuery) -> None:
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while not condition():
        assert query.isActive, query.exception()
        assert time.monotonic() < deadline, query.lastProgress
        query.awaitTermination(1)


def available_now(rows: DataFrame, checkpoint: str) -> list[Any]:
    """Run a query over what is available now and give what it found, batch by batch."""
    found: list[Any] = []
    query = (
        rows.writeStream.foreachBatch(lambda frame, _number: found.append(frame.collect()))
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(WAIT_SECONDS_MAX)
    return found


def test_the_columns_are_those_of_sparks_kafka_source(spark: SparkSession, node: Node) -> None:
    create(node.bootstrap, "columns", partitions=2)
    send(node.bootstrap, "columns", [b"a", None], key=b"k", headers=[("h", b"1"), ("n", None)], timestamp_ms=1_500)
    send(node.bootstrap, "columns", [b"b"], partition=1, timestamp_ms=2_000)
    rows = batch(spark, node, "columns", includeHeaders="true")
    assert rows.schema.simpleString() == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,timestamp:timestamp,"
        "timestampType:int,headers:array<struct<key:string,value:binary>>>"
    )
    first, second, third = (tuple(row) for row in rows.orderBy("partition", "offset").collect())
    headers = [("h", bytearray(b"1")), ("n", None)]
    moment = datetime.fromtimestamp(1.5, UTC).astimezone().replace(tzinfo=None)
    assert first == (bytearray(b"k"), bytearray(b"a"), "columns", 0, 0, moment, 0, headers)
    assert second[:2] == (bytearray(b"k"), None)
    assert (third[0], third[1], third[3], third[7]) == (None, bytearray(b"b"), 1, None)
    assert batch(spark, node, "columns").schema.names == rows.schema.names[:-1]
    chosen = (
        spark.read.format("riverlog").options(**reading(node, "columns")).schema("offset long, value binary").load()
    )
    assert sorted(chosen.collect()) == [(0, bytearray(b"a")), (0, bytearray(b"b")), (1, None)]


def test_filters_are_pushed_down_where_spark_does_that_and_right_everywhere(spark: SparkSession, node: Node) -> None:
    create(node.bootstrap, "filtered", partitions=2)
    for row in range(20):
        send(node.bootstrap, "filtered", [b"%d" % row], partition=row % 2, timestamp_ms=(row + 1) * 1_000)
    where = "partition = 1 and offset between 2 and 8 and timestamp > timestamp_seconds(9) and value != '17'"
    plans = []
    for pushed in ("false", "true"):
        spark.conf.set(PUSHDOWN, pushed)
        try:
            rows = batch(spark, node, "filtered").where(where)
            assert sorted(row.value for row in rows.collect()) == [b"11", b"13", b"15", b"9"]
            plans.append(rows._jdf.queryExecution().executedPlan().toString())
            counted = batch(spark, node, "filtered").count()
        finally:
            spark.conf.unset(PUSHDOWN)
        assert counted == 20
    assert "partition" in plans[0].partition("BatchScan")[0], "Spark filters where nothing is pushed down"
    assert "(partition" not in plans[1].partition("BatchScan")[0], "and not again where it is"


def test_values_that_are_json_are_columns(spark: SparkSession, node: Node) -> None:
    create(node.bootstrap, "json", partitions=2)
    create(node.bootstrap, "json-dead")
    values = [
        b'{"order": %d, "amount": %d.5, "tags": ["a"], "when": "2026-01-31T12:00:00Z"}' % (n, n) for n in range(5)
    ]
    send(node.bootstrap, "json", [*values, b"broken", b'{"order": 9}'])
    options = {
        "value__format": "json",
        "value__schema": "order bigint, amount double, tags array<string>, when timestamp, gone boolean",
        "columns": "offset",
        "deadLetterTopic": "json-dead",
    }
    rows = batch(spark, node, "json", **options)
    assert rows.schema.names == ["offset", "order", "amount", "tags", "when", "gone"]
    found = [tuple(row) for row in rows.orderBy("offset").collect()]
    moment = datetime(2026, 1, 31, 12, tzinfo=UTC).astimezone().replace(tzinfo=None)
    assert found[1] == (1, 1, 1.5, ["a"], moment, None)
    assert found[5] == (6, 9, None, None, None, None)
    dead = riverlog.scan("json-dead", bootstrap=node.bootstrap, columns=["value"]).to_arrow()["value"].to_pylist()
    assert set(dead) == {b"broken"}
    del options["deadLetterTopic"]
    with pytest.raises(PySparkException, match=r"the value at offset 5 of json-0 is not what value.schema says"):
        batch(spark, node, "json", **options).collect()


def test_a_stream_goes_on_where_it_was(spark: SparkSession, node: Node, checkpoint: str) -> None:
    create(node.bootstrap, "stream", partitions=2)
    for partition in range(2):
        send(node.bootstrap, "stream", [b"%d" % row for row in range(30)], partition=partition)
    rows = stream(spark, node, "stream", maxOffsetsPerTrigger="40")
    found = available_now(rows, checkpoint)
    assert [len(part) for part in found] == [40, 20]
    assert {(row.partition, row.offset) for part in found for row in part} == {
        (p, o) for p in range(2) for o in range(30)
    }
    written = Path(checkpoint, "offsets", "1").read_bytes()
    assert source_offsets(written) == (("stream", 0, 30), ("stream", 1, 30))
    send(node.bootstrap, "stream", [b"new"])
    assert [[row.offset for row in part] for part in available_now(rows, checkpoint)] == [[30]]
    assert available_now(rows, checkpoint) == []


def test_only_what_was_committed_is_read(spark: SparkSession, node: Node, checkpoint: str) -> None:
    create(node.bootstrap, "transactions")
    writer = confluent_kafka.Producer({"bootstrap.servers": node.bootstrap, "transactional.id": "spark-source"})
    writer.init_transactions()
    for end in (writer.commit_transaction, writer.abort_transaction, writer.commit_transaction):
        writer.begin_transaction()
        writer.produce("transactions", end.__name__)
        assert writer.flush(30) == 0
        end()
    values = [row.value for part in available_now(stream(spark, node, "transactions"), checkpoint) for row in part]
    assert values == [b"commit_transaction"] * 2
    everything = batch(spark, node, "transactions", kafka__isolation__level="read_uncommitted")
    assert everything.count() == 3


def test_a_node_that_restarts_does_not_end_a_query(spark: SparkSession, tmp_path: Path, checkpoint: str) -> None:
    with Node(tmp_path / "node") as node:
        create(node.bootstrap, "restart")
        send(node.bootstrap, "restart", [b"0"])
        query = (
            stream(spark, node, "restart")
            .writeStream.format("memory")
            .queryName("restart")
            .option("checkpointLocation", checkpoint)
            .start()
        )
        try:
            wait_for(lambda: spark.table("restart").count() == 1, query)
            node.kill()
            node.start()
            send(node.bootstrap, "restart", [b"1", b"2"])
            wait_for(lambda: spark.table("restart").count() == 3, query)
            send(node.bootstrap, "restart", [b"3"])
            wait_for(lambda: spark.table("restart").count() == 4, query)
            assert query.lastProgress is not None
            (source,) = query.lastProgress.sources
            assert source.latestOffset == '{"restart": {"0": 4}}'
        finally:
            query.stop()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"subscrbe": "x"}, "option subscrbe: there is no such option; did you mean subscribe?"),
        ({"startingOffsets": "{"}, "option startingOffsets='{': that is not JSON"),
        ({"subscribe": "nothing-here"}, "topic 'nothing-here': the cluster has no such topic"),
        ({"kafka.security.protocol": "TLS"}, "option kafka.security.protocol: write PLAINTEXT, SSL, SASL_PLAINTEXT or"),
        (
            {
                "bootstrap": "127.0.0.1:1",
                "kafka.bootstrap.servers": "127.0.0.1:1",
                "kafka.default.api.timeout.ms": "500",
            },
            "no broker could be reached: 127.0.0.1:1: Connection refused",
        ),
    ],
)
def test_a_mistake_is_one_clear_message(spark: SparkSession, node: Node, options: dict[str, str], message: str) -> None:
    with pytest.raises(PySparkException) as raised:
        spark.read.format("riverlog").options(**(reading(node, "columns") | options)).load().collect()
    assert message in str(raised.value)


def test_a_topic_is_a_view_and_no_table(spark: SparkSession, node: Node) -> None:
    topic = "viewed"
    create(node.bootstrap, topic)
    send(node.bootstrap, topic, [b"1", b"2"])
    using = f"USING riverlog OPTIONS (subscribe '{topic}', `kafka.bootstrap.servers` '{node.bootstrap}')"
    spark.sql(f"CREATE TEMPORARY VIEW viewed {using}")
    assert spark.sql("SELECT count(*) FROM viewed").collect()[0][0] == 2
    with pytest.raises(PySparkException, match="a topic is no table of a catalog; CREATE TEMPORARY VIEW"):
        spark.sql(f"CREATE TABLE tabled {using}")
