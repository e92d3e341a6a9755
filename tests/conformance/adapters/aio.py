"""aiokafka: asyncio; this adapter runs each call to its end on a loop of its own."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

import aiokafka
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError

from tests.conformance.adapters import (
    REQUEST_BYTES_MAX,
    WAIT_SECONDS_MAX,
    Administrator,
    Joins,
    Member,
    Message,
    Placed,
    Protocol,
    Refused,
    Stored,
    WriteOptions,
    placed,
    refusals,
    stored,
)

T = TypeVar("T")


class Aiokafka(Administrator, Joins):
    name = "aiokafka"

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        self._runner = asyncio.Runner()

    @staticmethod
    def version() -> str:
        return str(aiokafka.__version__)

    def close(self) -> None:
        self._runner.close()

    def join(self, topic: str, group: str, protocol: Protocol) -> Member:
        assert protocol == "classic"
        return _Member(self._runner, self.bootstrap, topic, group)

    def write(self, topic: str, messages: Sequence[Message], options: WriteOptions) -> list[Placed]:
        async def work() -> list[Placed]:
            producer = AIOKafkaProducer(
                bootstrap_servers=self.bootstrap,
                acks=options.acks,
                compression_type=options.codec,
                enable_idempotence=options.idempotent,
                linger_ms=2,
                max_request_size=REQUEST_BYTES_MAX,
            )
            await producer.start()
            try:
                futures = [
                    await producer.send(
                        topic,
                        message.value,
                        message.key,
                        message.partition,
                        message.timestamp_ms,
                        list(message.headers),
                    )
                    for message in messages
                ]
                places = await asyncio.wait_for(asyncio.gather(*futures), WAIT_SECONDS_MAX)
            finally:
                await producer.stop()
            return [Placed(-1, -1) if place is None else Placed(place.partition, place.offset) for place in places]

        return self._run(work())

    def consume(self, topic: str, partition: int, *, count: int, offset: int = 0) -> list[Stored]:
        async def read(consumer: AIOKafkaConsumer) -> list[Stored]:
            place = TopicPartition(topic, partition)
            consumer.assign([place])
            consumer.seek(place, offset)
            return [stored(await consumer.getone()) for _ in range(count)]

        return self._with_consumer(read)

    def offset_for_time(self, topic: str, partition: int, timestamp_ms: int) -> int | None:
        place = TopicPartition(topic, partition)
        found = self._with_consumer(lambda consumer: consumer.offsets_for_times({place: timestamp_ms}))[place]
        return None if found is None else int(found.offset)

    def bounds(self, topic: str, partition: int) -> tuple[int, int]:
        place = TopicPartition(topic, partition)
        first = self._with_consumer(lambda consumer: consumer.beginning_offsets([place]))
        end = self._with_consumer(lambda consumer: consumer.end_offsets([place]))
        return first[place], end[place]

    def partition_count(self, topic: str) -> int:
        (described,) = self._with_admin(lambda admin: admin.describe_topics([topic]))
        return len(described["partitions"])

    def create_topic(
        self, topic: str, *, partitions: int = 1, replicas: int = 1, configs: Mapping[str, str] | None = None
    ) -> None:
        new = NewTopic(topic, partitions, replicas, topic_configs=dict(configs or {}))
        ((_, code, message, *_),) = self._with_admin(lambda admin: admin.create_topics([new])).topic_errors
        _check(code, message)

    def delete_topic(self, topic: str) -> None:
        ((_, code),) = self._with_admin(lambda admin: admin.delete_topics([topic])).topic_error_codes
        _check(code, topic)

    def topics(self) -> set[str]:
        return set(self._with_admin(lambda admin: admin.list_topics()))

    def create_partitions(self, topic: str, total: int) -> None:
        self._with_admin(lambda admin: admin.create_partitions({topic: NewPartitions(total)}))

    def delete_records(self, topic: str, partition: int, before: int) -> int:
        place = TopicPartition(topic, partition)
        return int(self._with_admin(lambda admin: admin.delete_records({place: RecordsToDelete(before)}))[place])

    def configs(self, topic: str) -> dict[str, str | None]:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        (answer,) = self._with_admin(lambda admin: admin.describe_configs([resource]))
        ((code, message, _, _, entries),) = answer.resources
        _check(code, message)
        return {name: value for name, value, *_ in entries}

    def alter_config(self, topic: str, name: str, value: str) -> None:
        change = ConfigResource(ConfigResourceType.TOPIC, topic, {name: value})
        (answer,) = self._with_admin(lambda admin: admin.alter_configs([change]))
        ((code, message, _, _),) = answer.resources
        _check(code, message)

    def _with_consumer(self, use: Callable[[AIOKafkaConsumer], Awaitable[T]]) -> T:
        async def work() -> T:
            async with self._consumer() as consumer, asyncio.timeout(WAIT_SECONDS_MAX):
                return await use(consumer)

        return self._run(work())

    def _with_admin(self, use: Callable[[AIOKafkaAdminClient], Awaitable[T]]) -> T:
        async def work() -> T:
            admin = AIOKafkaAdminClient(bootstrap_servers=self.bootstrap)
            await admin.start()
            try:
                return await use(admin)
            finally:
                await admin.close()

        return self._run(work())

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        with refusals(KafkaError):
            return self._runner.run(work)

    def _consumer(self) -> AIOKafkaConsumer:
        return AIOKafkaConsumer(
            bootstrap_servers=self.bootstrap, group_id=None, auto_offset_reset="none", fetch_max_wait_ms=50
        )


class _Member(Member):
    def __init__(self, runner: asyncio.Runner, bootstrap: str, topic: str, group: str) -> None:
        self._runner = runner

        async def begin() -> AIOKafkaConsumer:
            consumer = AIOKafkaConsumer(
                topic,
                bootstrap_servers=bootstrap,
                group_id=group,
                enable_auto_commit=False,
                auto_offset_reset="earliest",
                fetch_max_wait_ms=50,
                heartbeat_interval_ms=200,
            )
            await consumer.start()
            return consumer

        self._beginning = runner.get_loop().create_task(begin())
        self._consumer: AIOKafkaConsumer | None = None

    def poll(self) -> list[Placed]:
        return self._runner.run(self._poll())

    async def _poll(self) -> list[Placed]:
        if self._consumer is None:  # another member may have to come back to the group first
            done, _ = await asyncio.wait([self._beginning], timeout=0.2)
            if not done:
                return []
            self._consumer = self._beginning.result()
        return placed(await self._consumer.getmany(timeout_ms=200))

    def commit(self) -> None:
        assert self._consumer is not None
        self._runner.run(self._consumer.commit())

    def leave(self) -> None:
        assert self._consumer is not None
        self._runner.run(self._consumer.stop())


def _check(code: int, message: str) -> None:
    if code:
        raise Refused(code, message)
