"""A batch once more, as Spark reads it."""

from pyspark.sql import SparkSession

from riverlog.pipelines.inspection.replay import ReplayedBatch
from tests.e2e.clients import create_topic, send
from tests.support.node import Node


def test_what_went_to_the_dead_letters_is_not_in_the_batch_again(spark: SparkSession, node: Node) -> None:
    create_topic(node.bootstrap, "replayed", partitions=1)
    send(node.bootstrap, "replayed", [b'{"order": 1}', b"no JSON", b"{}", b'{"order": 2}', b'{"order": 3}'])
    batch = ReplayedBatch(4, {("replayed", 0): (0, 4)})
    options = {
        "subscribe": "replayed",
        "kafka.bootstrap.servers": node.bootstrap,
        "value.format": "json",
        "value.schema": "order long NOT NULL",
        "badValues": "dead-letter",
        "deadLetterTopic": "replayed-dead",
    }
    rows = batch.frame(spark, options).select("offset", "order").collect()
    assert [tuple(row) for row in rows] == [(0, 1), (3, 2)]
