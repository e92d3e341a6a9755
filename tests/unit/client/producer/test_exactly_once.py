"""Consume, transform, produce: exactly once on virtual time, whatever is lost, refused or replaced."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from random import Random
from typing import Any

import pytest

from riverlog import Admin, Consumer, NewRecord, Producer, ProducerFenced, process_exactly_once
from riverlog.client.consumer.fetched_records import ConsumerRecord
from riverlog.client.errors import KafkaError
from riverlog.model.ids import TopicPartition
from riverlog.wire.messages.end_txn import EndTxnRequest
from tests.support.members import ADDRESS, TOPIC, a_node, write
from tests.support.mishaps import Mishaps
from tests.support.world import Universe

OUTPUT = "copies"
PARTITIONS = 4


def copy(record: ConsumerRecord) -> list[NewRecord]:
    return [NewRecord(OUTPUT, record.value, partition=record.partition)]


def reader(universe: Universe, **settings: Any) -> Consumer:
    given: dict[str, Any] = {
        "group": "copiers",
        "isolation_level": "read_committed",
        "auto_offset_reset": "earliest",
        "auto_commit": False,
        "heartbeat_interval_ms": 500,
        "session_timeout_ms": 6_000,
        "ports": universe.ports,
    }
    return Consumer(ADDRESS, **(given | settings))


async def output(universe: Universe) -> list[list[int]]:
    """Read what was committed, partition by partition."""
    async with Consumer(ADDRESS, isolation_level="read_committed", ports=universe.ports) as consumer:
        partitions = [TopicPartition(OUTPUT, index) for index in range(PARTITIONS)]
        consumer.assign(partitions)
        await consumer.seek_to_beginning()
        ends = await consumer.end_offsets(partitions)
        values: list[list[int]] = [[] for _ in partitions]
        while any((consumer.held()[at] or 0) < end for at, end in ends.items()):
            for record in await consumer.poll(100):
                values[record.partition].append(int(record.value or b""))
        return values


class Copier:
    """A worker that copies until it is stopped or dies."""

    def __init__(self, universe: Universe, number: int, transform: Callable[[ConsumerRecord], Any] = copy) -> None:
        self.stopping = asyncio.Event()
        self._universe = universe
        self._number = number
        self._transform = transform
        self.task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        self.stopping.set()
        await self.task

    async def _run(self) -> None:
        async with (
            reader(self._universe) as consumer,
            Producer(ADDRESS, transactional_id=f"copier-{self._number}", ports=self._universe.ports) as producer,
        ):
            consumer.subscribe([TOPIC])
            await process_exactly_once(consumer, producer, self._transform, records_max=7, stopping=self.stopping)


async def until_copied(universe: Universe, count: int, *, seconds: float = 300.0) -> list[list[int]]:
    async with asyncio.timeout(seconds):
        while sum(map(len, copied := await output(universe))) < count:  # noqa: ASYNC110 - nobody else would tell
            await asyncio.sleep(0.5)
        return copied


def expected(count: int) -> list[list[int]]:
    return [list(range(index, count, PARTITIONS)) for index in range(PARTITIONS)]


async def with_output(universe: Universe, count: int) -> None:
    async with Admin(ADDRESS, ports=universe.ports) as admin:
        await admin.create_topic(OUTPUT, partitions=PARTITIONS)
    await write(universe, count)


async def test_everything_is_copied_once_and_in_order_while_workers_come_and_go() -> None:
    async with a_node() as universe:
        chance = Random(5)

        async def moody(record: ConsumerRecord) -> Iterable[NewRecord]:
            await asyncio.sleep(0.01)
            if chance.random() < 0.02:
                raise ZeroDivisionError
            return copy(record)

        await with_output(universe, 400)
        workers = [Copier(universe, number, moody) for number in range(3)]
        async with asyncio.timeout(600):
            while sum(map(len, await output(universe))) < 400:
                await asyncio.sleep(0.3)
                for number, worker in enumerate(workers):
                    if chance.random() < 0.1:
                        worker.task.cancel()
                    if worker.task.done():
                        workers[number] = Copier(universe, number, moody)
        assert await output(universe) == expected(400)
        await asyncio.gather(*(worker.stop() for worker in workers), return_exceptions=True)


@pytest.mark.parametrize("what", ["lost", "unsent"])
async def test_a_commit_in_doubt_is_settled_before_the_next_portion(monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    mishaps = Mishaps(monkeypatch)
    async with a_node() as universe:
        await with_output(universe, 40)
        async with (
            reader(universe) as consumer,
            Producer(ADDRESS, transactional_id="c", block_ms_max=500, ports=universe.ports) as producer,
        ):
            consumer.subscribe([TOPIC])
            stopping = asyncio.Event()
            getattr(mishaps, what).extend([EndTxnRequest] * 8)
            work = asyncio.create_task(
                process_exactly_once(consumer, producer, copy, records_max=10, stopping=stopping)
            )
            assert await until_copied(universe, 40) == expected(40)
            stopping.set()
            await work
            assert not producer.in_doubt


async def test_a_failure_of_the_transform_takes_its_portion_back_and_is_raised() -> None:
    async with a_node() as universe:
        await with_output(universe, 40)

        def fail(record: ConsumerRecord) -> Sequence[NewRecord]:
            if record.offset == 5:
                raise ZeroDivisionError
            return copy(record)

        copier = Copier(universe, 1, fail)
        with pytest.raises(ZeroDivisionError):
            await copier.task
        assert all(
            values == part[: len(values)] for values, part in zip(await output(universe), expected(40), strict=True)
        )
        copier = Copier(universe, 1)
        assert await until_copied(universe, 40) == expected(40)
        await copier.stop()


async def test_a_portion_that_was_taken_back_is_read_again_also_by_a_group_that_began_at_the_end() -> None:
    async with a_node() as universe:
        await with_output(universe, 4)
        failing = [True]

        def fail(record: ConsumerRecord) -> Sequence[NewRecord]:
            if failing:
                raise ZeroDivisionError
            return copy(record)

        async with (
            reader(universe, auto_offset_reset="latest") as consumer,
            Producer(ADDRESS, transactional_id="c", ports=universe.ports) as producer,
        ):
            consumer.subscribe([TOPIC])
            await consumer.poll(5_000)
            await write(universe, 40)
            with pytest.raises(ZeroDivisionError):
                await process_exactly_once(consumer, producer, fail)
            failing.clear()
            stopping = asyncio.Event()
            work = asyncio.create_task(process_exactly_once(consumer, producer, fail, stopping=stopping))
            assert await until_copied(universe, 40) == expected(40)
            stopping.set()
            await work


async def test_a_worker_that_was_replaced_ends() -> None:
    async with a_node() as universe:
        await with_output(universe, 40)
        zombie = Copier(universe, 1)
        await until_copied(universe, 40)
        successor = Copier(universe, 1)
        await asyncio.sleep(10)
        await write(universe, 40)
        assert await until_copied(universe, 80) == [part + part for part in expected(40)]
        outcomes = await asyncio.gather(zombie.stop(), successor.stop(), return_exceptions=True)
        assert isinstance(outcomes[0], ProducerFenced)


async def test_a_record_that_can_never_be_written_ends_the_work_in_the_end() -> None:
    async with a_node() as universe:
        await with_output(universe, 4)
        async with Admin(ADDRESS, ports=universe.ports) as admin:
            await admin.alter_configs({"max.message.bytes": "200"}, topic=OUTPUT)
        copier = Copier(universe, 1, lambda record: [NewRecord(OUTPUT, b"x" * 1_000)])
        with pytest.raises(KafkaError, match=r"max\.message\.bytes"):
            await copier.task


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"isolation_level": "read_uncommitted"}, "read_committed"),
        ({"auto_commit": True}, "auto_commit=False"),
        ({"group": None}, "group"),
    ],
)
async def test_a_consumer_that_cannot_be_part_of_it_is_refused(settings: dict[str, Any], words: str) -> None:
    async with (
        a_node() as universe,
        reader(universe, **settings) as consumer,
        Producer(ADDRESS, transactional_id="c", ports=universe.ports) as producer,
    ):
        with pytest.raises(ValueError, match=words):
            await process_exactly_once(consumer, producer, copy)


async def test_more_results_than_the_buffer_holds_are_sent_bit_by_bit() -> None:
    async with a_node() as universe:
        await with_output(universe, 4)
        stopping = asyncio.Event()

        async def many(record: ConsumerRecord) -> list[NewRecord]:
            return [NewRecord(OUTPUT, f"{number}".rjust(500, "0"), partition=0) for number in range(100)]

        async with (
            reader(universe) as consumer,
            Producer(ADDRESS, transactional_id="c", buffer_bytes_max=5_000, ports=universe.ports) as producer,
        ):
            consumer.subscribe([TOPIC])
            work: Awaitable[None] = asyncio.create_task(
                process_exactly_once(consumer, producer, many, stopping=stopping)
            )
            copied = await until_copied(universe, 400)
            assert copied[0] == list(range(100)) * 4
            stopping.set()
            await work
