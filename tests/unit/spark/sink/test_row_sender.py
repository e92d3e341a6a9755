"""A task's rows on their way, to an outlet that keeps what it gets."""

from types import TracebackType
from typing import Self

import pyarrow as pa
import pytest

from riverlog.client.producer.deliveries import EncodedBatch
from riverlog.records.batch import Compression, read_header
from riverlog.records.record import read_batch
from riverlog.spark.sink.options import read_options
from riverlog.spark.sink.row_sender import CONNECTIONS, send


class Kept:
    """An outlet for tests."""

    def __init__(self) -> None:
        self.batches: list[EncodedBatch] = []
        self.heard: list[object] = []

    async def start(self) -> Self:
        self.heard.append("start")
        return self

    async def partitions(self, topic: str) -> int:
        self.heard.append(topic)
        return 2

    async def send_encoded(self, batch: EncodedBatch) -> None:
        self.batches.append(batch)

    async def finish(self) -> str:
        self.heard.append("finish")
        return "done"

    async def __aexit__(
        self, kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.heard.append(kind)


def test_rows_are_encoded_sent_and_finished() -> None:
    outlet = Kept()
    options = read_options({"topic": "t", "kafka.compression.type": "lz4"}, is_stream=False)
    rows = iter([pa.record_batch({"value": ["a", "b"]})] * 2)
    assert send(rows, lambda _: outlet, Kept.finish, options, first_partition=1) == "done"
    (batch,) = outlet.batches
    assert [record.value for record in read_batch(batch.content)] == [b"a", b"b"] * 2
    header = read_header(batch.content)
    assert (batch.partition, header.compression, header.is_transactional) == (("t", 1), Compression.LZ4, True)
    assert outlet.heard == ["start", "t", "finish", None]


def test_a_worker_counts_the_rows_of_all_its_tasks() -> None:
    options = read_options({"topic": "t", "kafka.client.id": "counted"}, is_stream=False)
    for _ in range(3):
        send(iter([pa.record_batch({"value": ["a", "b"]})]), lambda _: Kept(), Kept.finish, options, first_partition=0)
    assert CONNECTIONS.waiting[-1].rows == 6


def test_without_rows_no_topic_is_asked_for() -> None:
    outlet = Kept()
    options = read_options({"topic": "t", "delivery": "at-least-once"}, is_stream=False)
    send(iter([]), lambda _: outlet, Kept.finish, options, first_partition=0)
    assert outlet.heard == ["start", "finish", None]


def test_an_outlet_learns_what_ended_it() -> None:
    outlet = Kept()
    rows = iter([pa.record_batch({"value": ["a"], "partition": pa.array([9], pa.int32())})])
    with pytest.raises(Exception, match="a row names 9"):
        send(rows, lambda _: outlet, Kept.finish, read_options({"topic": "t"}, is_stream=False), first_partition=0)
    assert outlet.heard[0] == "start"
    assert outlet.heard[-1] is not None
    assert outlet.batches == []
