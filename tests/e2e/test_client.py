"""Our client and a real node: every call once, over real sockets."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from riverlog import Admin, Consumer, KafkaError, Producer, TopicPartition
from riverlog.client.admin.admin import ConfigSource
from riverlog.model.errors import ErrorCode
from riverlog.testing import RunningBroker

HERE = TopicPartition("orders", 0)


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 60))


@pytest.mark.parametrize("compression", [None, "gzip", "snappy", "lz4", "zstd"])
def test_what_is_sent_is_read(riverlog_broker_session: RunningBroker, compression: str | None) -> None:
    async def scenario() -> None:
        address = riverlog_broker_session.bootstrap_servers
        topic = f"sent-{compression}"
        async with Producer(address, compression=compression) as producer:
            first = await producer.send(topic, b"anvil", key=b"acme", headers={"trace": b"1"})
            deliveries = [producer.send_soon(topic, b"%d" % number, partition=first.partition) for number in range(500)]
            assert [(await delivery).offset for delivery in deliveries] == list(range(1, 501))
        async with Consumer(address, auto_offset_reset="earliest") as consumer:
            consumer.assign([TopicPartition(topic, first.partition)])
            records = []
            async for record in consumer:
                records.append(record)
                if len(records) == 501:
                    break
        assert records[0][2:7] == (0, first.timestamp_ms, b"acme", b"anvil", (("trace", b"1"),))
        assert [record.value for record in records[1:]] == [b"%d" % number for number in range(500)]

    run(scenario())


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_acks(riverlog_broker_session: RunningBroker, acks: Any) -> None:
    async def scenario() -> None:
        address = riverlog_broker_session.bootstrap_servers
        async with Producer(address, acks=acks) as producer:
            await producer.send(f"acks-{acks}", b"x", partition=0)
        async with Consumer(address, auto_offset_reset="earliest") as consumer:
            consumer.assign([TopicPartition(f"acks-{acks}", 0)])
            assert [record.value for record in await consumer.poll(10_000)] == [b"x"]

    run(scenario())


def test_positions(riverlog_broker: RunningBroker) -> None:
    riverlog_broker.create_topic("orders")

    async def scenario() -> None:
        address = riverlog_broker.bootstrap_servers
        async with Producer(address) as producer:
            for number in range(10):
                await producer.send("orders", b"%d" % number, timestamp_ms=1_700_000_000_000 + number * 1_000)
        async with Consumer(address) as consumer:
            consumer.assign([HERE])
            await consumer.seek(HERE, 4)
            assert (await consumer.poll(10_000, max_records=1))[0].value == b"4"
            await consumer.seek_to_beginning()
            assert (await consumer.poll(10_000, max_records=1))[0].value == b"0"
            assert await consumer.seek_to_time(HERE, 1_700_000_006_500) == 7
            assert [record.offset for record in await consumer.poll(10_000)] == [7, 8, 9]
            await consumer.seek_to_end()
            assert await consumer.position(HERE) == 10
            assert await consumer.beginning_offsets([HERE]) == {HERE: 0}
            assert await consumer.end_offsets([HERE]) == {HERE: 10}

    run(scenario())


def test_the_admin(riverlog_broker: RunningBroker) -> None:
    async def scenario() -> None:
        address = riverlog_broker.bootstrap_servers
        async with Admin(address) as admin, Producer(address) as producer:
            created = await admin.create_topic("orders", partitions=2, configs={"retention.ms": "3600000"})
            assert created.partitions == 2
            with pytest.raises(KafkaError) as raised:
                await admin.create_topic("orders")
            assert raised.value.code is ErrorCode.TOPIC_ALREADY_EXISTS
            await admin.create_partitions("orders", 3)
            (orders,) = await admin.describe_topics("orders")
            assert orders.topic_id == created.topic_id
            assert len(orders.partitions) == 3
            with pytest.raises(KafkaError) as raised:
                await admin.create_partitions("orders", 1)
            assert raised.value.code is ErrorCode.INVALID_PARTITIONS

            assert (await admin.describe_configs(topic="orders"))["retention.ms"].value == "3600000"
            await admin.alter_configs({"retention.ms": None, "max.message.bytes": "2000"}, topic="orders")
            configs = await admin.describe_configs(topic="orders")
            assert configs["retention.ms"].source in (ConfigSource.DEFAULT, ConfigSource.BROKER_STATIC)
            assert configs["max.message.bytes"].value == "2000"
            with pytest.raises(KafkaError) as raised:
                await producer.send("orders", bytes(5_000), partition=0)
            assert raised.value.code is ErrorCode.MESSAGE_TOO_LARGE

            for number in range(5):
                await producer.send("orders", b"%d" % number, partition=0)
            assert await admin.delete_records({HERE: 3}) == {HERE: 3}
            offsets = await admin.list_offsets({HERE: "earliest", TopicPartition("orders", 1): "latest"})
            assert [found.offset for found in offsets.values()] == [3, 0]

            cluster = await admin.describe_cluster()
            assert [broker.address for broker in cluster.brokers] == [riverlog_broker.address]
            (directory,) = await admin.describe_log_dirs()
            assert directory.partitions[HERE] > 0
            assert [topic.name for topic in await admin.list_topics()] == ["orders"]
            await admin.delete_topics(["orders"])
            assert await admin.list_topics() == []

    run(scenario())
