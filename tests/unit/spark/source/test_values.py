"""Values that are JSON, and those that are not, against a broker in the same process."""

from collections.abc import Iterator

import pytest
from pyspark.sql.types import DoubleType, LongType

import riverlog
from riverlog.arrow.columns import Cut
from riverlog.model.ids import Offset, TopicPartition
from riverlog.spark.source import task
from riverlog.spark.source.columns import columns
from riverlog.spark.source.options import stream_options
from riverlog.spark.source.task import SourcePartition, read_partition
from riverlog.spark.source.values import BadRecordValue
from riverlog.spark.worker.time_zone import SETTING
from riverlog.testing import RunningBroker
from tests.support.spark import create, send, struct
from tests.support.spark_jobs import task_context

VALUES = [b'{"order": 1, "amount": 2.5}', b"no json", b'{"order": 2, "amount": 3}', None, b'{"order": "three"}']
SCHEMA = struct("offset", order=LongType(), amount=DoubleType())


@pytest.fixture
def servers(riverlog_broker: RunningBroker) -> Iterator[str]:
    servers = riverlog_broker.bootstrap_servers
    create(servers, "orders")
    create(servers, "dead")
    send(servers, "orders", VALUES, key=b"k", headers=[("trace", b"7")])
    yield servers
    task.READERS.close()


def read(servers: str, **more: str) -> list[tuple[object, ...]]:
    given = {"bootstrap": servers, "subscribe": "orders", "value.format": "json"} | more
    options = stream_options(given)
    part = SourcePartition(TopicPartition("orders", 0), Cut(Offset(0), Offset(len(VALUES))))
    batches = read_partition(part, options, columns(SCHEMA, options.json))
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]


def test_a_bad_value_fails_the_task_with_its_place(servers: str) -> None:
    message = (
        "the value at offset 1 of orders-0 is not what value.schema says: it is not one JSON object. Set badValues"
    )
    with pytest.raises(BadRecordValue, match=message):
        read(servers)


def test_a_zone_that_is_not_known_here_is_not_missed_where_no_field_is_a_time(servers: str) -> None:
    with task_context(0, 1, {SETTING: "Mars/Base"}):
        assert len(read(servers, badValues="null")) == len(VALUES)


def test_bad_values_are_null(servers: str) -> None:
    assert read(servers, badValues="null") == [
        (0, 1, 2.5),
        (1, None, None),
        (2, 2, 3.0),
        (3, None, None),
        (4, None, None),
    ]


def test_bad_values_are_skipped(servers: str) -> None:
    assert read(servers, badValues="skip") == [(0, 1, 2.5), (2, 2, 3.0), (3, None, None)]


def test_bad_values_go_to_a_topic_as_they_were(servers: str) -> None:
    assert read(servers, deadLetterTopic="dead") == [(0, 1, 2.5), (2, 2, 3.0), (3, None, None)]
    dead = riverlog.scan("dead", bootstrap=servers, columns=["key", "value", "headers"]).to_arrow().to_pylist()
    assert [row["value"] for row in dead] == [VALUES[1], VALUES[4]]
    assert {row["key"] for row in dead} == {b"k"}
    headers = {header["key"]: header["value"] for header in dead[1]["headers"]}
    assert headers.pop("error").startswith(b"JSON parse error")
    assert headers == {"trace": b"7", "source.topic": b"orders", "source.partition": b"0", "source.offset": b"4"}
