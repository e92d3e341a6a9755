"""Several writes of one batch, in a query's foreachBatch: all arrive, once, also where the batch is run again."""

from uuid import uuid4

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from tests.e2e.clients import create_topic
from tests.spark.test_sink import PARTITIONS, numbers
from tests.support.node import Node

SECONDS_MAX = 120


class Writes:
    """A query that writes each batch to two topics, and the odd ones a third time, and breaks where it is told to."""

    def __init__(self, spark: SparkSession, node: Node, place: str) -> None:
        self._spark = spark
        self._node = node
        self._place = place
        self.topics = (f"left-{uuid4()}", f"right-{uuid4()}")
        self.fails_behind: tuple[int, int] | None = None
        for topic in self.topics:
            create_topic(node.bootstrap, topic, partitions=PARTITIONS)

    def run(self) -> StreamingQuery:
        """Run two batches, or up to the failure."""
        source = self._spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).option("numPartitions", 2)
        rows = source.load()
        writer = rows.selectExpr("CAST(value AS STRING) AS value").writeStream.foreachBatch(self._write)
        query = writer.option("checkpointLocation", self._place).trigger(processingTime="0 seconds").start()
        try:
            query.awaitTermination(SECONDS_MAX)
        except Exception as stopped:
            assert "this batch breaks" in str(stopped), stopped  # noqa: PT017 - the query is what is looked at
        return query

    def _write(self, rows: DataFrame, batch: int) -> None:
        if batch == 3:
            raise RuntimeError("this batch breaks: it is the last")
        rows.sparkSession.sparkContext.setJobDescription("a description of the program's own")
        left, right = self.topics
        for count, topic in enumerate((left, right, left) if batch % 2 else (left, right), 1):
            named = {"kafka.bootstrap.servers": self._node.bootstrap, "topic": topic, "ofStream": "true"}
            rows.write.format("riverlog").options(**named, checkpointLocation=self._place).mode("append").save()
            if self.fails_behind == (batch, count):
                self.fails_behind = None
                raise RuntimeError("this batch breaks: it is told to")


@pytest.fixture(params=["node", "folder"])
def writes(request: pytest.FixtureRequest, spark: SparkSession, node: Node, checkpoint: str) -> Writes:
    place = checkpoint if request.param == "folder" else f"{node.addresses['checkpoints']}/pipelines/{uuid4()}"
    return Writes(spark, node, place)


@pytest.mark.parametrize("fails_behind", [None, (1, 1), (1, 3)])
def test_all_writes_of_a_batch_arrive_once(writes: Writes, node: Node, fails_behind: tuple[int, int] | None) -> None:
    writes.fails_behind = fails_behind
    if fails_behind is not None:
        writes.run()
    writes.run()
    left, right = (numbers(node, topic) for topic in writes.topics)
    assert right == list(range(15))
    assert left == sorted([*range(15), *range(5, 10)])


def test_a_batch_is_not_written_with_a_checkpoint_that_is_not_of_its_query(
    spark: SparkSession, node: Node, checkpoint: str
) -> None:
    topic, elsewhere = f"elsewhere-{uuid4()}", f"{node.addresses['checkpoints']}/pipelines/{uuid4()}"
    create_topic(node.bootstrap, topic, partitions=PARTITIONS)
    named = {"kafka.bootstrap.servers": node.bootstrap, "topic": topic, "ofStream": "true"}

    def write(rows: DataFrame, _: int) -> None:
        rows.write.format("riverlog").options(**named, checkpointLocation=elsewhere).mode("append").save()

    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).load()
    query = rows.selectExpr("CAST(value AS STRING) AS value").writeStream.foreachBatch(write)
    with pytest.raises(Exception, match="the checkpointLocation is that of the query"):
        query.option("checkpointLocation", checkpoint).start().awaitTermination(SECONDS_MAX)
