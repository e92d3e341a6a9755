"""Ranges for callers without a loop, against a broker in the same process; scans are tested on top of it."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from riverlog import Admin, Producer
from riverlog.arrow.columns import Cut, schema_of
from riverlog.arrow.ranges import Cuts, Found, read_planned
from riverlog.client.errors import KafkaError, OffsetOutOfRange
from riverlog.client.network.cluster import Cluster
from riverlog.model.ids import Offset, TopicPartition
from riverlog.testing import RunningBroker

SCHEMA = schema_of(["partition", "offset"])


def cut(from_offset: int, until_offset: int) -> Cut:
    return Cut(Offset(from_offset), Offset(until_offset))


def read_ranges(bootstrap: str, cuts: Cuts, **options: Any) -> Iterator[Found]:
    async def plan(cluster: Cluster) -> Cuts:
        for topic in {partition.topic for partition in cuts}:
            await cluster.topic(topic)
        return cuts

    return read_planned(bootstrap, plan, SCHEMA, **options)


@pytest.fixture
def servers(riverlog_broker: RunningBroker) -> str:
    """Return the address of a broker that has two topics of two partitions with ten records each."""

    async def send() -> None:
        async with Producer(riverlog_broker.bootstrap_servers) as producer:
            for topic in ("orders", "returns"):
                for row in range(20):
                    producer.send_soon(topic, value=b"%d" % row, partition=row % 2)

    for topic in ("orders", "returns"):
        riverlog_broker.create_topic(topic, partitions=2)
    asyncio.run(send())
    return riverlog_broker.bootstrap_servers


def test_ranges_of_several_topics(servers: str) -> None:
    wanted = {
        TopicPartition("orders", 1): cut(2, 5),
        TopicPartition("returns", 0): cut(9, 10),
        TopicPartition("returns", 1): cut(4, 4),
    }
    found: dict[TopicPartition, list[int]] = {}
    for partition, batch in read_ranges(servers, wanted):
        assert set(batch["partition"].to_pylist()) == {partition.partition}
        found.setdefault(partition, []).extend(batch["offset"].to_pylist())
    assert found == {TopicPartition("orders", 1): [2, 3, 4], TopicPartition("returns", 0): [9]}


def test_a_topic_that_is_not_there_is_told(servers: str) -> None:
    with pytest.raises(KafkaError, match="nothing"):
        list(read_ranges(servers, {TopicPartition("nothing", 0): cut(0, 5)}))


def test_deleted_records_are_skipped_or_told(servers: str) -> None:
    here = TopicPartition("orders", 0)

    async def delete() -> None:
        async with Admin(servers) as admin:
            await admin.delete_records({here: 4})

    asyncio.run(delete())
    (found,) = read_ranges(servers, {here: cut(0, 6)})
    assert found.batch["offset"].to_pylist() == [4, 5]
    with pytest.raises(OffsetOutOfRange):
        list(read_ranges(servers, {here: cut(0, 6)}, skip_deleted=False))
