"""Offsets by place and time, from whoever leads."""

import pytest

from riverlog.client.errors import KafkaError
from riverlog.client.network.cluster import Cluster
from riverlog.client.offsets import IsolationLevel, list_offsets
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import TopicPartition
from riverlog.wire.apis import ApiKey
from tests.support.brokers import FakeCluster

PARTITIONS = [TopicPartition("orders", index) for index in range(4)]


def filled() -> FakeCluster:
    brokers = FakeCluster(nodes=2, auto_create=False)
    brokers.create_topic("orders", 4)
    for index in range(4):
        brokers.write("orders", index, *[b"x"] * (index + 1), timestamp_ms=1_000)
    return brokers


async def test_every_leader_is_asked_for_its_own_in_one_request() -> None:
    brokers = filled()
    cluster = Cluster(brokers.bootstrap, ports=brokers.ports)
    found = await list_offsets(cluster, dict.fromkeys(PARTITIONS, "latest"))
    assert [found[partition].offset for partition in PARTITIONS] == [1, 2, 3, 4]
    assert sorted(node for node, key, *_ in brokers.requests if key is ApiKey.LIST_OFFSETS) == [1, 2]
    await cluster.close()


async def test_questions_may_differ_and_time_finds_the_first_at_or_after() -> None:
    brokers = filled()
    cluster = Cluster(brokers.bootstrap, ports=brokers.ports)
    first, second, third, fourth = PARTITIONS
    found = await list_offsets(
        cluster,
        {first: "earliest", second: "latest", third: 1_001, fourth: 9_000},
        isolation=IsolationLevel.READ_COMMITTED,
    )
    assert [found[partition].offset for partition in PARTITIONS] == [0, 2, 1, -1]
    assert found[third].timestamp_ms == 1_001
    assert {request.isolation_level for request in brokers.asked(ApiKey.LIST_OFFSETS)} == {1}
    await cluster.close()


async def test_leaders_that_moved_or_fell_silent_are_asked_again() -> None:
    brokers = filled()
    cluster = Cluster(brokers.bootstrap, ports=brokers.ports)
    await cluster.topic("orders")
    brokers.move("orders", 0, 2)
    brokers.mishap(ApiKey.LIST_OFFSETS, None, "drop", ErrorCode.LEADER_NOT_AVAILABLE)
    found = await list_offsets(cluster, dict.fromkeys(PARTITIONS, "latest"))
    assert [found[partition].offset for partition in PARTITIONS] == [1, 2, 3, 4]
    await cluster.close()


async def test_it_ends_when_time_is_up() -> None:
    brokers = filled()
    cluster = Cluster(brokers.bootstrap, ports=brokers.ports)
    brokers.mishap(ApiKey.LIST_OFFSETS, *[ErrorCode.LEADER_NOT_AVAILABLE] * 1_000)
    with pytest.raises(KafkaError) as raised:
        await list_offsets(cluster, {PARTITIONS[0]: "latest"}, seconds=5)
    assert raised.value.code is ErrorCode.LEADER_NOT_AVAILABLE
    await cluster.close()


async def test_what_does_not_exist_is_refused() -> None:
    brokers = filled()
    cluster = Cluster(brokers.bootstrap, ports=brokers.ports)
    with pytest.raises(KafkaError, match="partitions 0 to 3, not 4"):
        await list_offsets(cluster, {TopicPartition("orders", 4): "latest"})
    with pytest.raises(KafkaError, match="no such topic"):
        await list_offsets(cluster, {TopicPartition("unknown", 0): "latest"})
    with pytest.raises(ValueError, match="earliest, latest, max_timestamp"):
        await list_offsets(cluster, {PARTITIONS[0]: "newest"})  # type: ignore[dict-item]
    await cluster.close()
