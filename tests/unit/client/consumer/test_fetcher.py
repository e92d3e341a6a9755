"""Fetching ahead: bounds, moved leaders, lost offsets."""

import asyncio

import pytest

from riverlog.client.consumer.consumer import Consumer
from riverlog.client.errors import KafkaError, Unreachable
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import TopicPartition
from riverlog.wire.apis import ApiKey, Versions
from tests.support.brokers import FakeCluster

HERE = TopicPartition("orders", 0)


def filled(*, nodes: int = 1, partitions: int = 1, batches: int = 20, size: int = 1_000) -> FakeCluster:
    cluster = FakeCluster(nodes=nodes)
    cluster.create_topic("orders", partitions)
    for partition in range(partitions):
        for _ in range(batches):
            cluster.write("orders", partition, bytes(size))
    return cluster


@pytest.mark.parametrize("version", range(4, 19))
async def test_every_version_of_fetch_works(version: int) -> None:
    cluster = filled(batches=3)
    cluster.versions[ApiKey.FETCH] = Versions(0, version)
    async with Consumer(cluster.bootstrap, ports=cluster.ports, auto_offset_reset="earliest") as consumer:
        consumer.assign([HERE])
        assert len(await consumer.poll()) == 3


async def test_what_is_fetched_ahead_is_bounded() -> None:
    cluster = filled(partitions=10, batches=100)
    async with Consumer(
        cluster.bootstrap,
        ports=cluster.ports,
        auto_offset_reset="earliest",
        partition_bytes_max=5_000,
        prefetch_bytes_max=20_000,
    ) as consumer:
        consumer.assign(await consumer.partitions("orders"))
        await asyncio.sleep(30)
        buffered = [state.buffered_bytes for state in consumer._fetcher.assigned.values()]
        assert 0 < sum(buffered) <= 20_000 + 1_100
        assert max(buffered) <= 10_000
        asked = len(cluster.asked(ApiKey.FETCH))
        await asyncio.sleep(30)
        assert len(cluster.asked(ApiKey.FETCH)) == asked, "a full reader asks for nothing"
        total = 0
        while records := await consumer.poll(1_000, 50):
            total += len(records)
        assert total == 1_000


async def test_a_quiet_partition_is_waited_for_by_the_broker_not_by_asking_again() -> None:
    cluster = filled(batches=0)
    async with Consumer(cluster.bootstrap, ports=cluster.ports, fetch_wait_ms_max=500) as consumer:
        consumer.assign([HERE])
        assert await consumer.poll(10_000) == []
        assert len(cluster.asked(ApiKey.FETCH)) <= 22


async def test_a_partition_that_moves_is_followed() -> None:
    cluster = filled(nodes=2, batches=5)
    async with Consumer(cluster.bootstrap, ports=cluster.ports, auto_offset_reset="earliest") as consumer:
        consumer.assign([HERE])
        assert len(await consumer.poll()) == 5
        cluster.move("orders", 0, 2)
        cluster.write("orders", 0, b"after")
        assert [record.value for record in await consumer.poll(10_000)] == [b"after"]


async def test_offsets_that_retention_took_are_replaced_as_told() -> None:
    cluster = filled(batches=10)
    log = cluster.topics["orders"].logs[0]
    async with Consumer(cluster.bootstrap, ports=cluster.ports, auto_offset_reset="earliest") as consumer:
        log.start = 6
        consumer.assign([HERE])
        await consumer.seek(HERE, 2)
        assert [record.offset for record in await consumer.poll()] == [6, 7, 8, 9]
    async with Consumer(cluster.bootstrap, ports=cluster.ports, auto_offset_reset="latest") as consumer:
        consumer.assign([HERE])
        await consumer.seek(HERE, 2)
        assert await consumer.poll(1_000) == []
        assert await consumer.position(HERE) == 10


async def test_a_refusal_that_waiting_does_not_mend_reaches_the_reader() -> None:
    cluster = filled()
    async with Consumer(cluster.bootstrap, ports=cluster.ports, auto_offset_reset="earliest") as consumer:
        cluster.mishap(ApiKey.FETCH, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        consumer.assign([HERE])
        with pytest.raises(KafkaError, match="orders-0") as raised:
            await consumer.poll()
        assert raised.value.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED
        assert len(await consumer.poll()) == 20, "once the right was given, reading goes on"


async def test_an_answer_from_before_a_jump_does_not_count() -> None:
    cluster = filled(batches=10)
    async with Consumer(cluster.bootstrap, ports=cluster.ports, auto_offset_reset="earliest") as consumer:
        cluster.mishap(ApiKey.FETCH, "delay")
        consumer.assign([HERE])
        await asyncio.sleep(0.5)
        await consumer.seek(HERE, 7)
        assert [record.offset for record in await consumer.poll(5_000)] == [7, 8, 9]


async def test_a_partition_that_is_no_longer_assigned_is_not_fetched() -> None:
    cluster = filled(partitions=2, batches=2)
    async with Consumer(cluster.bootstrap, ports=cluster.ports, auto_offset_reset="earliest") as consumer:
        consumer.assign(await consumer.partitions("orders"))
        await consumer.poll()
        consumer.assign([TopicPartition("orders", 1)])
        await asyncio.sleep(2)
        cluster.requests.clear()
        await asyncio.sleep(2)
        for request in cluster.asked(ApiKey.FETCH):
            assert [part.partition for part in request.topics[0].partitions] == [1]


async def test_a_reader_knows_for_how_long_it_has_had_no_answer() -> None:
    cluster = filled(batches=1)
    async with Consumer(cluster.bootstrap, ports=cluster.ports, auto_offset_reset="earliest") as consumer:
        consumer.assign([HERE])
        assert len(await consumer.poll()) == 1
        assert await consumer.poll(5_000) == []
        assert consumer.unanswered() == (0.0, None), "nothing to read is no silence"
        cluster.mishap(ApiKey.FETCH, "silence")
        await consumer.poll(5_000)
        seconds, problem = consumer.unanswered()
        assert (3.5 < seconds < 5, problem) == (True, None)


async def test_a_reader_knows_why_it_gets_nothing() -> None:
    cluster = filled(batches=1)
    async with Consumer(cluster.bootstrap, ports=cluster.ports, auto_offset_reset="earliest") as consumer:
        consumer.assign([HERE])
        cluster.mishap(ApiKey.FETCH, *[ErrorCode.KAFKA_STORAGE_ERROR] * 6)
        assert await consumer.poll(2_000) == []
        seconds, problem = consumer.unanswered()
        assert seconds > 1.5
        assert problem is not None
        assert problem.code is ErrorCode.KAFKA_STORAGE_ERROR
        assert len(await consumer.poll(10_000)) == 1
        assert consumer.unanswered() == (0.0, None)
        await asyncio.sleep(5)
        for broker in cluster.brokers.values():
            broker.stop()
        await consumer.poll(3_000)
        seconds, problem = consumer.unanswered()
        assert 1.5 < seconds < 3.1
        assert isinstance(problem, Unreachable)
        for broker in cluster.brokers.values():
            broker.start()
        await consumer.poll(5_000)
        assert consumer.unanswered() == (0.0, None)
