"""aiokafka against the broker."""

import asyncio
from collections.abc import Callable

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient

from tests.conformance.adapters.aio import Aiokafka
from tests.conformance.behaviours import Administers, JoinsGroups


class TestAiokafka(Administers, JoinsGroups):
    adapter = Aiokafka

    def test_a_waiting_reader_is_woken_by_a_write(self, bootstrap: str, new_topic: Callable[..., str]) -> None:
        async def work() -> bytes | None:
            place = TopicPartition(new_topic(), 0)
            consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, group_id=None, fetch_max_wait_ms=10_000)
            async with consumer, AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
                consumer.assign([place])
                await consumer.seek_to_beginning()
                async with asyncio.timeout(5):
                    waiting = asyncio.create_task(consumer.getone())
                    await producer.send_and_wait(place.topic, b"wake up", partition=0)
                    return (await waiting).value

        assert asyncio.run(work()) == b"wake up"

    def test_the_cluster_describes_itself(self, bootstrap: str) -> None:
        async def work() -> None:
            admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
            await admin.start()
            try:
                cluster = await admin.describe_cluster()
            finally:
                await admin.close()
            assert cluster["cluster_id"]
            assert bootstrap in {f"{broker['host']}:{broker['port']}" for broker in cluster["brokers"]}

        asyncio.run(work())
