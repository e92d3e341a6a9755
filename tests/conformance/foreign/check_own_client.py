"""riverlog's own client writes transactions to Apache Kafka, by the rules of both versions."""
# ruff: noqa: PT012 - what is expected to raise is a block of several statements

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from bench.cache import cache_folder
from bench.peer import Kafka
from riverlog import (
    Admin,
    Consumer,
    NewRecord,
    Producer,
    ProducerFenced,
    TopicPartition,
    TransactionAborted,
    process_exactly_once,
)
from riverlog.client.consumer.commits import GroupMetadata
from riverlog.client.producer import transactions
from tests.conformance.adapters import WAIT_SECONDS_MAX

PARTITIONS = 4
Story = Callable[[str, str], Awaitable[None]]


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    kafka = Kafka(cache_folder())
    kafka.prepare()
    home = tmp_path_factory.mktemp("kafka")
    kafka.format(home)
    broker = kafka.start(home)
    yield f"{broker.host}:{broker.port}"
    broker.stop()


@pytest.fixture(params=["newest", "older"])
def tell(request: pytest.FixtureRequest, kafka: str, monkeypatch: pytest.MonkeyPatch) -> Callable[[Story], None]:
    """Return a way to run a story with a fresh topic, by the rules that Kafka offers or by the older ones."""
    if request.param == "older":
        monkeypatch.setattr(transactions, "_FEATURE", "not.there")
    topic = request.node.name.replace("[", "-").replace("]", "")

    async def told(story: Story) -> None:
        async with Admin(kafka) as admin:
            await admin.create_topic(topic, partitions=PARTITIONS)
        async with asyncio.timeout(2 * WAIT_SECONDS_MAX):
            await story(kafka, topic)

    return lambda story: asyncio.run(told(story))


async def read(bootstrap: str, topic: str, isolation_level: Any = "read_committed") -> list[bytes | None]:
    """Read a topic to its end, partition by partition."""
    async with Consumer(bootstrap, isolation_level=isolation_level) as consumer:
        partitions = await consumer.partitions(topic)
        consumer.assign(partitions)
        await consumer.seek_to_beginning()
        ends = await consumer.end_offsets(partitions)
        records = []
        while any((consumer.held()[at] or 0) < end for at, end in ends.items()):
            records += await consumer.poll(100)
        return [record.value for record in sorted(records, key=lambda record: (record.partition, record.offset))]


def test_commits_and_aborts(tell: Callable[[Story], None]) -> None:
    async def story(bootstrap: str, topic: str) -> None:
        async with Producer(bootstrap, transactional_id=topic) as producer:
            for number in range(12):
                await producer.begin()
                sent = [producer.send_soon(topic, b"%d" % number, partition=index) for index in range(PARTITIONS)]
                await producer.flush()
                assert all(delivery.done for delivery in sent)
                await (producer.abort() if number % 4 == 3 else producer.commit())
        committed = [b"%d" % number for number in range(12) if number % 4 != 3]
        assert await read(bootstrap, topic) == committed * PARTITIONS
        assert len(await read(bootstrap, topic, "read_uncommitted")) == 12 * PARTITIONS

    tell(story)


def test_a_refused_record_aborts_and_the_next_transaction_goes_on(tell: Callable[[Story], None]) -> None:
    async def story(bootstrap: str, topic: str) -> None:
        topic += "-narrow"
        async with Admin(bootstrap) as admin:  # with its limit from the beginning: Kafka answers before it obeys
            await admin.create_topic(topic, partitions=PARTITIONS, configs={"max.message.bytes": "2000"})
        async with Producer(bootstrap, transactional_id=topic) as producer:
            for number in range(3):
                with pytest.raises(TransactionAborted):
                    async with producer.transaction():
                        producer.send_soon(topic, b"taken back", partition=1)
                        producer.send_soon(topic, b"x" * 3_000, partition=0)
                async with producer.transaction():
                    await producer.send(topic, b"%d" % number, partition=0)
        assert await read(bootstrap, topic) == [b"0", b"1", b"2"]

    tell(story)


def test_a_zombie_is_fenced(tell: Callable[[Story], None]) -> None:
    async def story(bootstrap: str, topic: str) -> None:
        zombie = await Producer(bootstrap, transactional_id=topic).start()
        await zombie.begin()
        await zombie.send(topic, b"zombie", partition=0)
        async with Producer(bootstrap, transactional_id=topic) as producer, producer.transaction():
            await producer.send(topic, b"successor", partition=0)
        zombie.send_soon(topic, b"too late", partition=1)
        with pytest.raises(ProducerFenced):
            await zombie.commit()
        await zombie.close()
        assert await read(bootstrap, topic) == [b"successor"]

    tell(story)


def test_offsets_are_committed_with_the_records(tell: Callable[[Story], None]) -> None:
    async def story(bootstrap: str, topic: str) -> None:
        place = TopicPartition(topic, 0)
        async with Producer(bootstrap, transactional_id=topic) as producer, Admin(bootstrap) as admin:
            async with producer.transaction():
                await producer.send_offsets(GroupMetadata(topic), {place: 5})
            with pytest.raises(ZeroDivisionError):
                async with producer.transaction():
                    await producer.send_offsets(GroupMetadata(topic), {place: 9})
                    raise ZeroDivisionError
            assert (await admin.group_offsets(topic))[place].offset == 5

    tell(story)


def test_a_topic_is_copied_exactly_once(tell: Callable[[Story], None]) -> None:
    async def story(bootstrap: str, topic: str) -> None:
        copies = f"{topic}-copies"
        async with Admin(bootstrap) as admin:
            await admin.create_topic(copies, partitions=PARTITIONS)
        async with Producer(bootstrap) as producer:
            for number in range(200):
                producer.send_soon(topic, b"%d" % number, partition=number % PARTITIONS)
        stopping = asyncio.Event()
        async with (
            Consumer(
                bootstrap,
                group=topic,
                auto_offset_reset="earliest",
                isolation_level="read_committed",
                auto_commit=False,
            ) as consumer,
            Producer(bootstrap, transactional_id=topic) as producer,
        ):
            consumer.subscribe([topic])
            copying = asyncio.create_task(
                process_exactly_once(
                    consumer,
                    producer,
                    lambda record: [NewRecord(copies, record.value, partition=record.partition)],
                    records_max=20,
                    stopping=stopping,
                )
            )
            while len(await read(bootstrap, copies)) < 200:  # noqa: ASYNC110 - nobody else would tell
                await asyncio.sleep(0.1)
            stopping.set()
            await copying
        assert await read(bootstrap, copies) == await read(bootstrap, topic)

    tell(story)


def test_an_administrator_looks_at_transactions_and_aborts_them(tell: Callable[[Story], None]) -> None:
    async def story(bootstrap: str, topic: str) -> None:
        place = TopicPartition(topic, 0)
        producer = await Producer(bootstrap, transactional_id=topic).start()
        await producer.begin()
        await producer.send(topic, b"undecided", partition=0)
        async with Admin(bootstrap) as admin:
            assert topic in [each.transactional_id for each in await admin.list_transactions(states=["Ongoing"])]
            assert (await admin.describe_transaction(topic)).partitions == (place,)
            assert await admin.hung_transactions([place], older_than_ms=0) == []
            await admin.abort_transaction(topic)
            with pytest.raises(ProducerFenced):
                await producer.commit()
            await producer.close()
            async with Producer(bootstrap, transactional_id=topic) as producer:
                await producer.begin()
                await producer.send(topic, b"undecided too", partition=0)
                (there,) = [each for each in await admin.describe_producers([place]) if each.transaction_offset >= 0]
                await admin.abort_in_partition(there)
                assert all(each.transaction_offset < 0 for each in await admin.describe_producers([place]))
        assert await read(bootstrap, topic) == []

    tell(story)
