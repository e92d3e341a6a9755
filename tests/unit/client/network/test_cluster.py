"""The cluster as a client sees it: bootstrap, metadata, leaders, connections."""

import asyncio

import pytest

from riverlog.client.admin.admin import Admin
from riverlog.client.consumer.consumer import Consumer
from riverlog.client.errors import Closed, KafkaError, Unreachable
from riverlog.client.network.cluster import Cluster, KeptCluster
from riverlog.client.producer.producer import Producer
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NodeId, TopicPartition
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.init_producer_id import InitProducerIdRequest
from tests.support.brokers import FakeCluster
from tests.support.virtual_time import run


def cluster_of(brokers: FakeCluster, bootstrap: str | None = None, *, create_topics: bool = False) -> Cluster:
    return Cluster(bootstrap or brokers.bootstrap, ports=brokers.ports, create_topics=create_topics)


async def test_one_reachable_broker_is_enough_to_know_them_all() -> None:
    brokers = FakeCluster(nodes=3)
    cluster = cluster_of(brokers, "gone:1,node2:9092")
    await cluster.start()
    assert cluster.cluster_id == "fake"
    assert set(cluster.brokers) == {1, 2, 3}
    await cluster.close()


async def test_every_address_that_failed_is_named() -> None:
    brokers = FakeCluster()
    cluster = cluster_of(brokers, "gone:1,away:2")
    with pytest.raises(Unreachable, match=r"gone:1: Connection refused; away:2: Connection refused"):
        await cluster.start()
    await cluster.close()


async def test_partitions_are_sorted_and_leaders_known() -> None:
    brokers = FakeCluster(nodes=2)
    brokers.create_topic("orders", 4)
    cluster = cluster_of(brokers)
    topic = await cluster.topic("orders")
    assert [partition.index for partition in topic.partitions] == [0, 1, 2, 3]
    assert topic.available == (0, 1, 2, 3)
    assert [cluster.leader_of(TopicPartition("orders", index)) for index in range(5)] == [1, 2, 1, 2, None]
    assert cluster.topic_names[topic.topic_id] == "orders"
    await cluster.close()


async def test_an_unknown_topic_is_an_error_that_says_what_to_do() -> None:
    cluster = cluster_of(FakeCluster(auto_create=False))
    with pytest.raises(KafkaError, match=r"admin\.create_topic\('orders'") as raised:
        await cluster.topic("orders")
    assert raised.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    await cluster.close()


async def test_a_topic_in_the_making_is_waited_for() -> None:
    brokers = FakeCluster()
    brokers.mishap(ApiKey.METADATA, ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    cluster = cluster_of(brokers, create_topics=True)
    assert len((await cluster.topic("orders")).partitions) == 3
    await cluster.close()


async def test_callers_at_the_same_time_share_one_refresh() -> None:
    brokers = FakeCluster()
    cluster = cluster_of(brokers)
    await asyncio.gather(*(cluster.refresh() for _ in range(10)))
    assert len(brokers.asked(ApiKey.METADATA)) == 1
    await cluster.close()


async def test_an_older_epoch_does_not_replace_a_newer_one() -> None:
    brokers = FakeCluster(nodes=2)
    topic = brokers.create_topic("orders")
    cluster = cluster_of(brokers)
    await cluster.topic("orders")
    brokers.move("orders", 0, 2)
    await cluster.refresh()
    assert cluster.leader_of(TopicPartition("orders", 0)) == 2
    topic.leaders[0], topic.epochs[0] = 1, 0  # a broker that has not heard yet
    await cluster.refresh()
    assert cluster.leader_of(TopicPartition("orders", 0)) == 2
    topic.epochs[0] = 5
    await cluster.refresh()
    assert cluster.leader_of(TopicPartition("orders", 0)) == 1
    await cluster.close()


async def test_a_topic_that_was_deleted_is_forgotten() -> None:
    brokers = FakeCluster(auto_create=False)
    brokers.create_topic("orders")
    cluster = cluster_of(brokers)
    topic = await cluster.topic("orders")
    del brokers.topics["orders"]
    await cluster.refresh()
    assert "orders" not in cluster.topics
    assert topic.topic_id not in cluster.topic_names
    await cluster.close()


async def test_old_metadata_is_refreshed_by_itself() -> None:
    brokers = FakeCluster()
    cluster = Cluster(brokers.bootstrap, ports=brokers.ports, metadata_age_max_ms=60_000)
    updates = []
    cluster.on_update = lambda: updates.append(asyncio.get_running_loop().time())
    await cluster.start()
    await asyncio.sleep(200)
    assert 3 <= len(brokers.asked(ApiKey.METADATA)) <= 5
    assert len(updates) == len(brokers.asked(ApiKey.METADATA))
    await cluster.close()


async def test_background_refreshes_keep_their_distance() -> None:
    brokers = FakeCluster()
    cluster = cluster_of(brokers)
    await cluster.start()
    for _ in range(100):
        cluster.refresh_soon()
        await asyncio.sleep(0.01)
    assert len(brokers.asked(ApiKey.METADATA)) <= 14
    await cluster.close()


async def test_when_all_known_brokers_are_gone_the_bootstrap_is_asked_again() -> None:
    brokers = FakeCluster(nodes=2)
    cluster = cluster_of(brokers, "node1:9092")
    await cluster.start()
    brokers.brokers[2].stop()
    brokers.brokers[1].stop()
    with pytest.raises(Unreachable):
        await cluster.refresh()
    brokers.brokers[1].start()
    await cluster.refresh()
    await cluster.close()


@pytest.mark.parametrize("kind", [Admin, Consumer, Producer])
async def test_a_client_that_found_no_broker_may_be_started_again(kind: type[Admin | Consumer | Producer]) -> None:
    brokers = FakeCluster()
    brokers.brokers[1].stop()
    client = kind(brokers.bootstrap, ports=brokers.ports)
    with pytest.raises(Unreachable):
        await client.start()
    brokers.brokers[1].start()
    await client.start()
    await client.close()


async def test_lanes_are_connections_of_their_own_and_are_shared() -> None:
    brokers = FakeCluster()
    cluster = cluster_of(brokers)
    await cluster.start()
    control, fetch, again = await asyncio.gather(
        cluster.connection(NodeId(1)),
        cluster.connection(NodeId(1), "fetch"),
        cluster.connection(NodeId(1), "fetch"),
    )
    assert control is not fetch
    assert fetch is again
    assert cluster.open_connection(NodeId(1), "fetch") is fetch
    fetch.close()
    assert cluster.open_connection(NodeId(1), "fetch") is None
    assert await cluster.connection(NodeId(1), "fetch") is not fetch
    await cluster.close()


async def test_the_controller_is_asked_where_there_is_one() -> None:
    brokers = FakeCluster(nodes=3)
    cluster = cluster_of(brokers, "node3:9092")
    await cluster.start()
    await cluster.ask_controller(InitProducerIdRequest())
    assert brokers.requests[-1][0] == 1
    with pytest.raises(Unreachable, match="node 9 is not in"):
        await cluster.ask(NodeId(9), InitProducerIdRequest())
    await cluster.close()
    with pytest.raises(Closed):
        await cluster.ask_any(InitProducerIdRequest())


def test_back_off_doubles_up_to_its_bound() -> None:
    cluster = cluster_of(_idle())
    pauses = [cluster.backoff(attempt) for attempt in range(1, 9)]
    for pause, ideal in zip(pauses, [0.1, 0.2, 0.4, 0.8, 1.0, 1.0, 1.0, 1.0], strict=True):
        assert 0.8 * ideal <= pause <= 1.2 * ideal
    assert cluster.backoff(10_000) <= 1.2


def _idle() -> FakeCluster:
    async def build() -> FakeCluster:
        return FakeCluster()

    return run(build())


async def test_a_kept_cluster_stays_connected_between_its_users() -> None:
    brokers = FakeCluster()
    brokers.create_topic("orders", 1)
    kept = KeptCluster(brokers.bootstrap, ports=brokers.ports)
    for number in range(3):
        async with Producer(brokers.bootstrap, cluster=kept) as producer:
            await producer.send("orders", str(number))
        if number == 1:
            brokers.brokers[1].stop()
            brokers.brokers[1].start()
            await asyncio.sleep(1)
    assert len(brokers.asked(ApiKey.METADATA)) == 3  # who is there, and the topic; after the restart, both again
    assert [record.value for record in brokers.topics["orders"].logs[0].records()] == [b"0", b"1", b"2"]
    await kept.let_go()
    with pytest.raises(Closed):
        await kept.refresh()
