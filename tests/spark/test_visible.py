"""Queries of a real Spark as a node shows them."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import window

from riverlog.checkpoints.files.refusals import RequestRefused
from riverlog.checkpoints.remote import RemoteStore
from riverlog.cli.main import main
from riverlog.spark.sessions.progress import Watcher, watch
from tests.support.node import Node
from tests.support.waiting import until

pytestmark = pytest.mark.timeout(600)  # a JVM takes its time on a machine that has other work


@pytest.fixture
def watcher(spark: SparkSession) -> Iterator[Watcher]:
    watcher = watch(spark)
    yield watcher
    spark.streams.removeListener(watcher)


def known(node: Node, path: str) -> dict[str, Any]:
    """Return what the node knows about a query; nothing before its checkpoint is there."""
    with RemoteStore(node.addresses["checkpoints"]) as store:
        try:
            return store.query(path)
        except RequestRefused:
            return {"state": None}


def location(node: Node, path: str) -> str:
    return f"{node.addresses['checkpoints']}{path}"


@pytest.mark.usefixtures("watcher")
def test_a_query_with_state_is_shown_from_its_first_batch_to_its_end(
    spark: SparkSession, node: Node, capsys: pytest.CaptureFixture[str]
) -> None:
    path = "/pipelines/visible-windows"
    counted = (
        spark.readStream.format("rate")
        .option("rowsPerSecond", 1000)
        .load()
        .withWatermark("timestamp", "1 second")
        .groupBy(window("timestamp", "1 second"))
        .count()
    )
    query = counted.writeStream.format("noop").option("checkpointLocation", location(node, path)).start()
    try:
        until(lambda: (known(node, path).get("state_rows") or 0) > 0, lambda: str(known(node, path)), seconds_max=180)
        until(lambda: known(node, path)["watermark_ms"] is not None, lambda: str(known(node, path)), seconds_max=180)
        until(lambda: known(node, path)["rows_per_second"] > 0, lambda: str(known(node, path)), seconds_max=180)
        shown = known(node, path)  # of a batch that closed windows, and had no rows, or of one that had
        assert shown == shown | {"state": "running", "query": str(query.id), "run": str(query.runId), "late_rows": 0}
        assert shown["batch"] >= 0
        assert shown["state_memory_bytes"] > 0
        assert shown["checkpoint_bytes"] > shown["state_bytes"] > 0
    finally:
        query.stop()
    until(lambda: known(node, path)["state"] == "stopped", lambda: str(known(node, path)), seconds_max=90)
    assert main(["pipelines", "list", "--store", node.addresses["checkpoints"], "-o", "json"]) == 0
    listed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each["state"] for each in listed if each["pipeline"] == "visible-windows"] == ["stopped"]


@pytest.mark.usefixtures("watcher")
def test_a_query_that_fails_is_shown_with_its_error(spark: SparkSession, node: Node) -> None:
    path = "/pipelines/visible-failure"

    def refuse(_rows: DataFrame, _batch: int) -> None:
        raise ValueError("the warehouse is closed")

    ticks = spark.readStream.format("rate").load()
    query = ticks.writeStream.foreachBatch(refuse).option("checkpointLocation", location(node, path)).start()
    with pytest.raises(StreamingQueryException):
        query.awaitTermination(180)
    until(lambda: known(node, path)["state"] == "failed", lambda: str(known(node, path)), seconds_max=90)
    shown = known(node, path)
    assert "the warehouse is closed" in shown["error"]
    assert "=== Streaming Query ===" not in shown["error"]
    assert (shown["batch"], shown["planned_batch"]) == (None, 0)


def test_a_query_of_a_session_that_nobody_watches_is_shown_too(spark: SparkSession, node: Node) -> None:
    path = "/elsewhere/visible-plain"
    ticks = spark.readStream.format("rate").load()
    query = ticks.writeStream.format("noop").option("checkpointLocation", location(node, path)).start()
    try:
        until(lambda: known(node, path).get("batch") is not None, lambda: str(known(node, path)), seconds_max=180)
    finally:
        query.stop()
    assert known(node, path)["state"] == "unknown"
    assert known(node, path)["pipeline"] == path
