"""What an administrator learns of transactions and does with them, against a whole node."""

import asyncio

import pytest

from riverlog import Admin, Consumer, Member, NewRecord, Producer, ProducerFenced, SharedTransactions
from riverlog.client.admin.transactions import ProducerDescription
from riverlog.client.errors import KafkaError
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import Offset, ProducerEpoch, ProducerId, TopicPartition
from tests.support.members import ADDRESS, TOPIC, a_node

ZERO = TopicPartition(TOPIC, 0)


async def test_transactional_ids_are_listed_by_what_they_do() -> None:
    async with (
        a_node() as universe,
        Admin(ADDRESS, ports=universe.ports) as admin,
        Producer(ADDRESS, transactional_id="open", ports=universe.ports) as producer,
        Producer(ADDRESS, transactional_id="idle", ports=universe.ports),
    ):
        await producer.begin()
        await producer.send(TOPIC, b"x", partition=0)
        await producer.send(TOPIC, b"x", partition=3)
        listed = await admin.list_transactions()
        assert [(each.transactional_id, each.state) for each in listed] == [("idle", "Empty"), ("open", "Ongoing")]
        assert await admin.list_transactions(states=["Ongoing"]) == listed[1:]
        assert await admin.list_transactions(producer_ids=[listed[0].producer_id]) == listed[:1]
        assert await admin.list_transactions(pattern="op.*") == listed[1:]
        assert await admin.list_transactions(states=["Ongoing"], older_than_ms=60_000) == []
        with pytest.raises(KafkaError, match="transactions have no state Asleep"):
            await admin.list_transactions(states=["Asleep"])
        found = await admin.describe_transaction("open")
        assert found.partitions == (ZERO, TopicPartition(TOPIC, 3))
        assert (found.state, found.producer_id, found.timeout_ms) == ("Ongoing", listed[1].producer_id, 60_000)
        with pytest.raises(KafkaError, match="there is no transactional id 'nobody'"):
            await admin.describe_transaction("nobody")


async def test_an_open_transaction_is_aborted_and_its_producer_fenced() -> None:
    async with a_node() as universe:
        producer = await Producer(ADDRESS, transactional_id="open", ports=universe.ports).start()
        await producer.begin()
        await producer.send(TOPIC, b"x", partition=0)
        async with Admin(ADDRESS, ports=universe.ports) as admin:
            await admin.abort_transaction("open")
            assert (await admin.describe_transaction("open")).partitions == ()
            with pytest.raises(KafkaError) as raised:
                await admin.abort_transaction("nobody")
            assert raised.value.code is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
            assert [each.transactional_id for each in await admin.list_transactions()] == ["open"]
        with pytest.raises(ProducerFenced):
            await producer.commit()
        await producer.close()


async def test_a_transaction_without_a_coordinator_hangs_until_it_is_aborted_where_it_is_open() -> None:
    """The coordinator forgets it: as if it had been written by a client that is not verified."""
    async with a_node() as universe:
        producer = await Producer(ADDRESS, transactional_id="hung", ports=universe.ports).start()
        await producer.begin()
        await producer.send(TOPIC, b"hung", partition=0)
        async with (
            Admin(ADDRESS, ports=universe.ports) as admin,
            Consumer(ADDRESS, isolation_level="read_committed", ports=universe.ports) as reader,
        ):
            assert await admin.hung_transactions([ZERO], older_than_ms=0) == []
            (open_there,) = await admin.describe_producers([ZERO])
            assert open_there.transaction_offset == 0

            async def knows_nothing(**_: object) -> list[object]:
                return []

            admin.list_transactions = knows_nothing  # type: ignore[method-assign, assignment]
            await asyncio.sleep(10)
            assert await admin.hung_transactions([ZERO], older_than_ms=60_000) == []
            assert await admin.hung_transactions([ZERO], older_than_ms=9_000) == [open_there]
            assert (await reader.end_offsets([ZERO]))[ZERO] == 0
            await admin.abort_in_partition(open_there)
            assert (await reader.end_offsets([ZERO]))[ZERO] == 2
            assert await admin.hung_transactions([ZERO], older_than_ms=0) == []
        await producer.close()


async def test_members_of_a_shared_transaction_do_not_hang_and_none_is_aborted_by_itself() -> None:
    async with (
        a_node() as universe,
        SharedTransactions(ADDRESS, "pipeline", incarnation="q", ports=universe.ports) as pipeline,
        Admin(ADDRESS, ports=universe.ports) as admin,
        Consumer(ADDRESS, isolation_level="read_committed", ports=universe.ports) as reader,
    ):
        batch, memberships = pipeline.batch(0), []
        for task in range(2):
            async with Member(ADDRESS, batch, task=task, attempt=0, ports=universe.ports) as member:
                await member.write([NewRecord(TOPIC, b"value", partition=0)])
                memberships.append(await member.finish())
        await asyncio.sleep(10)
        assert await admin.hung_transactions([ZERO], older_than_ms=0) == []
        there = await admin.describe_producers([ZERO])
        owners = [await admin.transaction_of(each) for each in there]
        assert [owner and owner.transactional_id for owner in owners] == ["pipeline", "pipeline"]
        for each in there:
            with pytest.raises(KafkaError) as raised:
                await admin.abort_in_partition(each)
            assert raised.value.code is ErrorCode.INVALID_TXN_STATE
        await pipeline.commit(batch, memberships)
        await asyncio.sleep(1)
        reader.assign([ZERO])
        await reader.seek_to_beginning()
        assert [record.value for record in await reader.poll()] == [b"value"] * 2


async def test_what_is_not_there_is_said() -> None:
    async with a_node() as universe, Admin(ADDRESS, ports=universe.ports) as admin:
        with pytest.raises(KafkaError, match="partitions 0 to 3, not 9"):
            await admin.describe_producers([TopicPartition(TOPIC, 9)])
        nobody = ProducerDescription(TopicPartition("nowhere", 0), ProducerId(1), ProducerEpoch(0), -1, 0, 0, Offset(0))
        with pytest.raises(KafkaError, match="no such topic"):
            await admin.abort_in_partition(nobody)
