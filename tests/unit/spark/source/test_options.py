"""The options of a source, together."""

import pytest

from riverlog.arrow.positions import PartitionEnd
from riverlog.client.offsets import IsolationLevel
from riverlog.spark.options import BadOption
from riverlog.spark.source.offset_limits import NamedTopics
from riverlog.spark.source.options import BadValues, JsonValues, batch_options, source_options, stream_options

TOPIC = {"subscribe": "orders"}


def test_defaults() -> None:
    batch, stream = batch_options(TOPIC), stream_options(TOPIC)
    assert (batch.topics, batch.starting, batch.ending) == (
        NamedTopics(("orders",)),
        PartitionEnd.EARLIEST,
        PartitionEnd.LATEST,
    )
    assert stream.starting is PartitionEnd.LATEST
    assert stream.isolation is IsolationLevel.READ_COMMITTED
    assert stream.fails_on_data_loss
    assert not stream.by_time_or_latest
    assert not stream.has_headers
    assert (stream.records_max, stream.records_min, stream.parts_min, stream.part_records_max) == (None,) * 4
    assert (stream.delay_seconds_max, stream.stall_seconds_max) == (900, 120)
    assert stream.cluster.client == {"client_id": "riverlog-spark"}
    assert stream.json is None


def test_all_that_may_be_said() -> None:
    found = stream_options(
        TOPIC
        | {
            "kafka.isolation.level": "READ_UNCOMMITTED",
            "kafka.client.id": "mine",
            "kafka.group.id": "ours",
            "kafka.max.partition.fetch.bytes": "1000",
            "failOnDataLoss": "false",
            "startingOffsetsByTimestampStrategy": "latest",
            "includeHeaders": "true",
            "maxOffsetsPerTrigger": "10",
            "minOffsetsPerTrigger": "5",
            "maxTriggerDelay": "2 minutes",
            "minPartitions": "3",
            "maxRecordsPerPartition": "4",
            "kafkaConsumer.pollTimeoutMs": "500",
            "groupIdPrefix": "us",
            "columns": "offset, value",
        }
    )
    assert found.isolation is IsolationLevel.READ_UNCOMMITTED
    assert found.cluster.client["client_id"] == "mine"
    assert found.reader == {"partition_bytes_max": 1_000}
    assert (found.fails_on_data_loss, found.by_time_or_latest, found.has_headers) == (False, True, True)
    assert (found.records_max, found.records_min, found.delay_seconds_max) == (10, 5, 120)
    assert (found.parts_min, found.part_records_max, found.stall_seconds_max) == (3, 4, 0.5)
    assert found.columns == ("offset", "value")


def test_values_that_are_json() -> None:
    json = {"value.format": "json", "value.schema": "order long"}
    assert source_options(TOPIC | json).json == JsonValues("order long", BadValues.FAIL, None)
    assert source_options(TOPIC | json | {"badValues": "null"}).json == JsonValues("order long", BadValues.NULL, None)
    dead = JsonValues("order long", BadValues.DEAD_LETTER, "dead")
    assert source_options(TOPIC | json | {"deadLetterTopic": "dead"}).json == dead
    assert source_options(TOPIC | json | {"deadLetterTopic": "dead", "badValues": "dead-letter"}).json == dead


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"value.schema": "order long"}, "option value.schema='order long': it is for value.format=json"),
        ({"badValues": "null"}, "option badValues='null': it is for value.format=json"),
        ({"value.format": "avro"}, "option value.format='avro': write binary or json"),
        (
            {"value.format": "json", "badValues": "dead-letter"},
            "option badValues='dead-letter': name a deadLetterTopic",
        ),
        (
            {"value.format": "json", "badValues": "null", "deadLetterTopic": "dead"},
            "option badValues='null': deadLetterTopic='dead' would stay empty",
        ),
        ({"maxTriggerDelay": "soon"}, "option maxTriggerDelay='soon': write a time as in 30s, 15m or 1h"),
        (
            {"minOffsetsPerTrigger": "5", "maxOffsetsPerTrigger": "4"},
            "option minOffsetsPerTrigger='5': maxOffsetsPerTrigger=4 allows fewer",
        ),
        (
            {"startingOffset": "earliest"},
            "option startingoffset: there is no such option; did you mean startingOffsets?",
        ),
        ({"kafka.auto.offset.reset": "earliest"}, "option kafka.auto.offset.reset='earliest': Spark keeps the offsets"),
        ({"endingOffsets": "latest"}, "option endingOffsets: a stream has no end"),
        ({"topic": "orders"}, "option topic='orders': that is where to write; to read, set subscribe"),
    ],
)
def test_mistakes_are_told(options: dict[str, str], message: str) -> None:
    with pytest.raises(BadOption) as refused:
        stream_options(TOPIC | options)
    assert str(refused.value).startswith(message)


def test_a_batch_does_not_begin_at_the_end() -> None:
    with pytest.raises(BadOption, match="nothing to read"):
        batch_options(TOPIC | {"startingOffsets": "latest"})
    source_options(TOPIC | {"startingOffsets": "latest"})
