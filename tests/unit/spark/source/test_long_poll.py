"""Waiting for records, on virtual time."""

import asyncio

from riverlog.client.network.cluster import Cluster
from riverlog.client.offsets import IsolationLevel
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import Offset, TopicPartition
from riverlog.spark.source.long_poll import wait_for_records
from riverlog.wire.apis import ApiKey
from tests.support.brokers import FakeCluster


async def waited(fake: FakeCluster, *, partitions: int = 2, seconds: float = 5.0) -> float:
    """Return how long a wait took."""
    loop = asyncio.get_running_loop()
    cluster = Cluster(fake.bootstrap, ports=fake.ports)
    try:
        await cluster.topic("orders")
        begun = loop.time()
        ends = {TopicPartition("orders", index): Offset(0) for index in range(partitions)}
        await wait_for_records(cluster, ends, IsolationLevel.READ_COMMITTED, seconds)
        return loop.time() - begun
    finally:
        await cluster.close()


async def test_a_record_ends_the_wait_wherever_it_comes() -> None:
    fake = FakeCluster(nodes=2)
    fake.create_topic("orders", 2)
    asyncio.get_running_loop().call_later(2, fake.write, "orders", 1, b"new")
    assert 2 <= await waited(fake) < 2.5


async def test_without_one_it_takes_its_time() -> None:
    fake = FakeCluster()
    fake.create_topic("orders", 2)
    assert 5 <= await waited(fake) < 5.5


async def test_a_refusal_is_no_news() -> None:
    fake = FakeCluster()
    fake.create_topic("orders", 2)
    fake.mishap(ApiKey.FETCH, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert 5 <= await waited(fake) < 5.5
    assert await waited(fake, partitions=0) >= 5, "nobody leads anything"
