"""Batches without a transaction, of one writer at a time."""

import asyncio

import pytest

from riverlog import TopicPartition
from riverlog.client.errors import Closed, KafkaError, ProducerFenced
from riverlog.client.producer.single_writer import OnlyWriter
from tests.support.members import ADDRESS, TOPIC, a_node
from tests.support.world import Universe

PARTITION = TopicPartition(TOPIC, 0)


def writer(universe: Universe) -> OnlyWriter:
    return OnlyWriter(ADDRESS, transactional_id="only", ports=universe.ports)


async def test_batches_and_transactions_take_turns() -> None:
    async with a_node() as universe, writer(universe) as only:
        await only.lock_out(PARTITION, [], [(b"opened", b"")])
        assert await only.write_alone(PARTITION, [(b"a", b"1"), (b"b", None)]) == 1
        async with only.transaction():
            sent = await only.send(TOPIC, b"2", partition=0)
            with pytest.raises(KafkaError, match="a transaction is open"):
                await only.write_alone(PARTITION, [(b"c", b"3")])
        assert sent.offset == 3
        assert await only.write_alone(PARTITION, [(b"c", b"3")]) == 5  # behind the end of the transaction
        with pytest.raises(KafkaError, match="no transaction is open"):
            await only.send(TOPIC, b"4", partition=0)


async def test_who_was_replaced_writes_nothing() -> None:
    async with a_node() as universe:
        first, second = writer(universe), writer(universe)
        await first.start()
        await first.lock_out(PARTITION, [], [(b"opened", b"")])
        await second.start()
        assert await first.write_alone(PARTITION, [(b"a", b"1")]) == 1  # the partition does not know yet
        await second.lock_out(PARTITION, [], [(b"opened", b"")])
        for _ in range(2):
            with pytest.raises(ProducerFenced):
                await first.write_alone(PARTITION, [(b"a", b"2")])
        assert await second.write_alone(PARTITION, [(b"a", b"3")]) == 3
        await first.close()
        await second.close()


async def test_who_was_interrupted_writes_nothing_any_more() -> None:
    async with a_node() as universe, writer(universe) as only:
        await only.partitions(TOPIC)
        writing = asyncio.create_task(only.write_alone(PARTITION, [(b"a", b"1")]))
        await asyncio.sleep(0)
        writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writing
        with pytest.raises(Closed):
            await only.write_alone(PARTITION, [(b"a", b"1")])
