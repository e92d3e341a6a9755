"""The options of a sink."""

import pickle

import pytest

from riverlog.spark.options import BadOption
from riverlog.spark.sink.options import read_options


def test_without_options_records_arrive_exactly_once() -> None:
    options = read_options({}, is_stream=True)
    assert options.is_exactly_once
    assert (options.topic, options.compression, options.checkpoint) == (None, "none", None)
    assert options.cluster.bootstrap == "127.0.0.1:9092"
    assert options.producer["delivery_timeout_ms"] == options.producer["block_ms_max"] == 120_000
    assert options.patience_seconds == 30
    assert read_options({}, is_stream=False).timeout_ms > options.timeout_ms
    assert pickle.loads(pickle.dumps(options)) == options


def test_what_a_program_may_set() -> None:
    options = read_options(
        {
            "kafka.bootstrap.servers": "one:1,two:2",
            "topic": "orders",
            "checkpointlocation": "/checkpoint",
            "queryname": "orders",
            "includeHeaders": "true",
            "kafka.compression.type": "zstd",
            "kafka.compression.zstd.level": "-1",
            "kafka.batch.size": "2000",
            "kafka.max.request.size": "3000",
            "kafka.buffer.memory": "4000",
            "kafka.delivery.timeout.ms": "5000",
            "kafka.transaction.timeout.ms": "6000",
            "kafka.transactional.id": "pipeline",
            "kafka.client.id": "me",
            "kafka.linger.ms": "5",
        },
        is_stream=True,
    )
    assert options.cluster.client == {"client_id": "me"}
    assert options.producer == {
        "delivery_timeout_ms": 5000,
        "block_ms_max": 5000,
        "request_bytes_max": 3000,
        "buffer_bytes_max": 4000,
        "request_timeout_ms": 5000,
    }
    assert (options.compression, options.level, options.batch_bytes_max, options.timeout_ms) == ("zstd", -1, 2000, 6000)
    assert (options.checkpoint, options.query_name, options.transactional_id) == ("/checkpoint", "orders", "pipeline")


def test_who_wants_speed_may_give_up_guarantees() -> None:
    producer = read_options({"delivery": "at-least-once", "kafka.acks": "1"}, is_stream=False).producer
    assert (producer["acks"], producer["idempotent"]) == ("1", False)
    assert read_options({"delivery": "at-least-once"}, is_stream=False).producer["idempotent"]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"delivery": "twice"}, "write exactly-once or at-least-once"),
        ({"kafka.acks": "1"}, "exactly once needs all; set delivery=at-least-once"),
        ({"kafka.enable.idempotence": "false"}, "exactly once needs all"),
        ({"kafka.compression.type": "brotli"}, "none, gzip, snappy, lz4 or zstd"),
        ({"topics": "orders"}, "did you mean topic?"),
        ({"path": "/orders"}, "topics, which have no path"),
        ({"kafka.partitioner.class": "mine"}, 'a column "partition"'),
        (
            {"kafka.request.timeout.ms": "9000", "kafka.delivery.timeout.ms": "1000"},
            "request.timeout.ms=9000 is longer",
        ),
        ({"startingOffsets": "earliest"}, "there is no such option"),
    ],
)
def test_what_cannot_be_is_refused(given: dict[str, str], problem: str) -> None:
    with pytest.raises(BadOption) as refused:
        read_options(given, is_stream=True)
    assert problem in str(refused.value)
