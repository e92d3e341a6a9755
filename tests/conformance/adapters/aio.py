"""aiokafka: asyncio; this adapter runs each call to its end on a loop of its own."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager

import aiokafka
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError

from tests.conformance.adapters import (
    REQUEST_BYTES_MAX,
    WAIT_SECONDS_MAX,
    Acks,
    Administrator,
    Joins,
    Member,
    Message,
    Placed,
    Protocol,
    Refused,
    Stored,
)


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

    def produce(
        self,
        topic: str,
        messages: Sequence[Message],
        *,
        compression: str = "none",
        acks: Acks = "all",
        idempotent: bool = False,
        like_java: bool = False,
    ) -> list[Placed]:
        async def work() -> list[Placed]:
            producer = AIOKafkaProducer(
                bootstrap_servers=self.bootstrap,
                acks=acks,
                compression_type=None if compression == "none" else compression,
                enable_idempotence=idempotent,
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
                stored = await asyncio.wait_for(asyncio.gather(*futures), WAIT_SECONDS_MAX)
            finally:
                await producer.stop()
            return [Placed(-1, -1) if place is None else Placed(place.partition, place.offset) for place in stored]

        with _refusals():
            return self._runner.run(work())

    def consume(self, topic: str, partition: int, *, count: int, offset: int = 0) -> list[Stored]:
        async def work() -> list[Stored]:
            place = TopicPartition(topic, partition)
            records: list[Stored] = []
            async with self._consumer() as consumer, asyncio.timeout(WAIT_SECONDS_MAX):
                consumer.assign([place])
                consumer.seek(place, offset)
                while len(records) < count:
                    record = await consumer.getone()
                    records.append(
                        Stored(
                            record.partition,
                            record.offset,
                            record.timestamp,
                            record.key,
                            record.value,
                            tuple(record.headers),
                        )
                    )
            return records

        with _refusals():
            return self._runner.run(work())

    def offset_for_time(self, topic: str, partition: int, timestamp_ms: int) -> int | None:
        async def work() -> int | None:
            place = TopicPartition(topic, partition)
            async with self._consumer() as consumer:
                found = (await consumer.offsets_for_times({place: timestamp_ms}))[place]
            return None if found is None else int(found.offset)

        with _refusals():
            return self._runner.run(work())

    def bounds(self, topic: str, partition: int) -> tuple[int, int]:
        async def work() -> tuple[int, int]:
            place = TopicPartition(topic, partition)
            async with self._consumer() as consumer:
                first = await consumer.beginning_offsets([place])
                end = await consumer.end_offsets([place])
            return first[place], end[place]

        with _refusals():
            return self._runner.run(work())

    def partition_count(self, topic: str) -> int:
        async def work() -> int:
            async with self._admin() as admin:
                (described,) = await admin.describe_topics([topic])
            return len(described["partitions"])

        return self._runner.run(work())

    def create_topic(
        self, topic: str, *, partitions: int = 1, replicas: int = 1, configs: Mapping[str, str] | None = None
    ) -> None:
        async def work() -> None:
            async with self._admin() as admin:
                answer = await admin.create_topics(
                    [NewTopic(topic, partitions, replicas, topic_configs=dict(configs or {}))]
                )
            ((_, code, message, *_),) = answer.topic_errors
            if code:
                raise Refused(code, message)

        self._runner.run(work())

    def delete_topic(self, topic: str) -> None:
        async def work() -> None:
            async with self._admin() as admin:
                answer = await admin.delete_topics([topic])
            ((_, code),) = answer.topic_error_codes
            if code:
                raise Refused(code, topic)

        self._runner.run(work())

    def topics(self) -> set[str]:
        async def work() -> set[str]:
            async with self._admin() as admin:
                return set(await admin.list_topics())

        return self._runner.run(work())

    def create_partitions(self, topic: str, total: int) -> None:
        async def work() -> None:
            async with self._admin() as admin:
                await admin.create_partitions({topic: NewPartitions(total)})

        with _refusals():
            self._runner.run(work())

    def delete_records(self, topic: str, partition: int, before: int) -> int:
        async def work() -> int:
            place = TopicPartition(topic, partition)
            async with self._admin() as admin:
                return int((await admin.delete_records({place: RecordsToDelete(before)}))[place])

        with _refusals():
            return self._runner.run(work())

    def configs(self, topic: str) -> dict[str, str | None]:
        async def work() -> dict[str, str | None]:
            async with self._admin() as admin:
                (answer,) = await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])
            ((code, message, _, _, entries),) = answer.resources
            if code:
                raise Refused(code, message)
            return {name: value for name, value, *_ in entries}

        return self._runner.run(work())

    def alter_config(self, topic: str, name: str, value: str) -> None:
        async def work() -> None:
            async with self._admin() as admin:
                (answer,) = await admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, {name: value})])
            ((code, message, _, _),) = answer.resources
            if code:
                raise Refused(code, message)

        self._runner.run(work())

    def _consumer(self) -> AIOKafkaConsumer:
        return AIOKafkaConsumer(
            bootstrap_servers=self.bootstrap, group_id=None, auto_offset_reset="none", fetch_max_wait_ms=50
        )

    @asynccontextmanager
    async def _admin(self) -> AsyncIterator[AIOKafkaAdminClient]:
        admin = AIOKafkaAdminClient(bootstrap_servers=self.bootstrap)
        await admin.start()
        try:
            yield admin
        finally:
            await admin.close()


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
        found = await self._consumer.getmany(timeout_ms=200)
        return [Placed(record.partition, record.offset) for records in found.values() for record in records]

    def commit(self) -> None:
        assert self._consumer is not None
        self._runner.run(self._consumer.commit())

    def leave(self) -> None:
        assert self._consumer is not None
        self._runner.run(self._consumer.stop())


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except KafkaError as error:
        if error.errno > 0:
            raise Refused(error.errno, str(error)) from error
        raise
