"""Transactions that end in another hand, against a whole node."""

from typing import Any

import pytest

from riverlog import Consumer, Producer
from riverlog.client.errors import KafkaError, ProducerFenced
from riverlog.client.producer.transaction_handover import AdoptingProducer, Ender, HandedTransaction, HandingProducer
from riverlog.model.ids import TopicPartition
from tests.support.members import ADDRESS, TOPIC, a_node
from tests.support.world import Universe

ZERO = TopicPartition(TOPIC, 0)


def handing(universe: Universe, **options: Any) -> HandingProducer:
    return HandingProducer(ADDRESS, transactional_id="task-0", ports=universe.ports, **options)


async def handed_over(universe: Universe, *values: bytes) -> HandedTransaction | None:
    async with handing(universe) as producer:
        for value in values:
            producer.send_soon(TOPIC, value, partition=0)
        return await producer.hand_over()


async def end(universe: Universe, handed: HandedTransaction, *, committed: bool) -> None:
    async with Ender(ADDRESS, ports=universe.ports) as ender:
        await ender.end(handed, committed=committed)


async def read(universe: Universe) -> list[bytes | None]:
    async with Consumer(ADDRESS, isolation_level="read_committed", ports=universe.ports) as consumer:
        consumer.assign([ZERO])
        await consumer.seek_to_beginning()
        end = (await consumer.end_offsets([ZERO]))[ZERO]
        values: list[bytes | None] = []
        while (consumer.held()[ZERO] or 0) < end:
            values += [record.value for record in await consumer.poll(100)]
        return values


@pytest.mark.parametrize("committed", [True, False])
async def test_another_ends_it_and_may_say_so_again(committed: bool) -> None:
    async with a_node() as universe:
        handed = await handed_over(universe, b"a", b"b")
        assert handed is not None
        assert await read(universe) == []
        await end(universe, handed, committed=committed)
        await end(universe, handed, committed=committed)
        assert await read(universe) == ([b"a", b"b"] if committed else [])


async def test_nothing_written_is_nothing_to_end() -> None:
    async with a_node() as universe:
        assert await handed_over(universe) is None


async def test_who_fails_takes_it_back() -> None:
    async with a_node() as universe:
        producer = await handing(universe).start()
        await producer.send(TOPIC, b"a", partition=0)
        await producer.__aexit__(ZeroDivisionError, None, None)
        async with handing(universe) as producer:
            await producer.hand_over()
            with pytest.raises(KafkaError, match="no transaction is open"):
                producer.send_soon(TOPIC, b"too late", partition=0)
        assert await read(universe) == []


async def test_a_successor_takes_it_back() -> None:
    async with a_node() as universe:
        first = await handed_over(universe, b"a")
        second = await handed_over(universe, b"b")
        assert first is not None
        assert second is not None
        with pytest.raises(ProducerFenced):
            await end(universe, first, committed=True)
        await end(universe, second, committed=True)
        assert await read(universe) == [b"b"]


async def test_an_adopted_producer_goes_on_until_another_takes_over() -> None:
    async with a_node() as universe:
        first = await handed_over(universe, b"a")
        assert first is not None
        await end(universe, first, committed=False)
        async with Producer(ADDRESS, transactional_id="task-0", ports=universe.ports):
            pass  # somebody takes over, and tells us as whom
        who = (first.producer_id, first.producer_epoch + 2)
        async with AdoptingProducer(ADDRESS, transactional_id="task-0", producer=who, ports=universe.ports) as one:
            for value in (b"b", b"c"):
                async with one.transaction():
                    one.send_soon(TOPIC, value, partition=0)
            assert one.identity == (first.producer_id, first.producer_epoch + 4)
        assert await read(universe) == [b"b", b"c"]
        async with AdoptingProducer(ADDRESS, transactional_id="task-0", producer=who, ports=universe.ports) as late:
            await late.begin()
            late.send_soon(TOPIC, b"late", partition=0)
            with pytest.raises(ProducerFenced):
                await late.commit()
        assert await read(universe) == [b"b", b"c"]
