"""Transaction coordinators on a node: the topic that they write to, producer ids, and verification."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from riverlog import Admin
from riverlog import Producer as Client
from riverlog.drivers.transactions import Transactions
from riverlog.metadata.image import TRANSACTIONS_TOPIC
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.transactions import MarkerPort, Outcome, Producer, TransactionVersion
from riverlog.observe.metrics import TransactionsReading
from riverlog.transactions.commands import AddPartitions, EndTransaction, InitProducer
from riverlog.transactions.records import TransactionFact
from riverlog.transactions.states import Transaction
from tests.support.asking import serving
from tests.support.coordinators import transactions_of
from tests.support.markers import Markers
from tests.support.members import ADDRESS
from tests.support.transactions import ID, P0, P1, V2, producer_of
from tests.support.virtual_time import run
from tests.support.world import Universe


@asynccontextmanager
async def coordinating(port: MarkerPort) -> AsyncIterator[Transactions]:
    universe = Universe()
    async with serving(universe) as (_line, node), transactions_of(universe, node, port) as transactions:
        await transactions.ensure_topic()
        yield transactions


async def verify(transactions: Transactions, producer: Producer, *, adds: bool) -> ErrorCode:
    return await transactions.verify(ID, producer.id, producer.epoch, P0, adds=adds)


def test_the_topic_is_created_when_first_needed_and_is_as_kafka_makes_it() -> None:
    async def scenario() -> None:
        universe = Universe()
        async with (
            serving(universe, transaction_state_log_num_partitions="7") as (_line, node),
            transactions_of(universe, node, Markers()) as transactions,
        ):
            with pytest.raises(Refusal) as refused:
                transactions.submit(ID, InitProducer(ID, 1_000))
            assert refused.value.code is ErrorCode.NOT_COORDINATOR
            await transactions.ensure_topic()
            topic = node._metadata.image.topic(TRANSACTIONS_TOPIC)
            assert topic is not None
            assert (topic.partition_count, topic.is_internal) == (7, True)
            config = node._metadata.topic_config(TRANSACTIONS_TOPIC)
            assert (config.cleanup_compact, config.compression_type) == (True, "uncompressed")

    run(scenario())


def test_a_node_shows_what_is_open_and_counts_what_was_decided() -> None:
    async def scenario() -> None:
        universe = Universe()
        async with serving(universe) as (_line, node):
            async with Admin(ADDRESS, ports=universe.ports) as admin:
                await admin.create_topic("t", partitions=1)
            async with Client(ADDRESS, transactional_id=ID, ports=universe.ports) as producer:
                await producer.begin()
                await producer.send("t", b"1")
                await asyncio.sleep(3)
                shown = node.transactions()
                assert shown.ids_by_state == {"Ongoing": 1}
                assert 3 <= shown.oldest_open_seconds < 4
                (lagging,) = [each for each in node.partitions() if each.last_stable_offset < each.high_watermark]
                assert (lagging.topic, lagging.last_stable_offset, lagging.high_watermark) == ("t", 0, 1)
                await producer.commit()
            await asyncio.sleep(1)
            assert node.transactions() == TransactionsReading({"CompleteCommit": 1}, 0.0)
            assert all(each.last_stable_offset == each.high_watermark for each in node.partitions())
            assert node.stats.transactions.ended[Outcome.COMMITTED] == 1
            assert node.stats.transactions.markers_waiting == 0

    run(scenario())


def test_a_producer_is_given_an_id_that_nobody_had() -> None:
    async def scenario() -> None:
        async with coordinating(Markers()) as transactions:
            first = await transactions.decide(InitProducer(ID, 60_000))
            other = await transactions.decide(InitProducer("other", 60_000))
            again = await transactions.decide(InitProducer(ID, 60_000))
            assert first.producer.id != other.producer.id
            assert again.producer == producer_of(first.producer.id, 1)

    run(scenario())


def test_partitions_ask_whether_a_batch_belongs_to_a_transaction() -> None:
    async def scenario() -> None:
        async with coordinating(Markers()) as transactions:
            assert await verify(transactions, producer_of(1, 0), adds=True) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
            producer = (await transactions.decide(InitProducer(ID, 60_000))).producer
            assert await verify(transactions, producer, adds=False) is ErrorCode.TRANSACTION_ABORTABLE
            assert await verify(transactions, producer, adds=True) is ErrorCode.NONE
            assert await verify(transactions, producer, adds=False) is ErrorCode.NONE
            other = await transactions.verify(ID, producer.id, producer.epoch, P1, adds=False)
            assert other is ErrorCode.TRANSACTION_ABORTABLE
            transactions.stop_waiting()
            assert await verify(transactions, producer, adds=True) is ErrorCode.NOT_COORDINATOR

    run(scenario())


def test_what_is_decided_and_written_is_answered_at_once() -> None:
    async def scenario() -> None:
        async with coordinating(Markers()) as transactions:
            producer = (await transactions.decide(InitProducer(ID, 60_000))).producer
            await transactions.decide(AddPartitions(ID, producer, (P0,), TransactionVersion.CLASSIC))
            ended = transactions.decide(EndTransaction(ID, producer, True, TransactionVersion.CLASSIC))
            assert ended.done()
            assert ended.result().code is ErrorCode.NONE

    run(scenario())


def test_an_end_that_needs_a_new_id_gets_one() -> None:
    async def scenario() -> None:
        async with coordinating(Markers()) as transactions:
            await transactions.decide(InitProducer(ID, 60_000))
            coordinator = transactions._coordinator(transactions.partition_of(ID).partition)
            last = producer_of(7, 32_766)
            coordinator._coordinator.machine.apply(TransactionFact(ID, Transaction(last, 60_000, 0)))
            ended = await transactions.decide(EndTransaction(ID, last, False, V2))
            assert (ended.producer.epoch, ended.producer.id != last.id) == (0, True)
            assert await transactions.decide(EndTransaction(ID, last, False, V2)) == ended

    run(scenario())


def test_a_node_without_transactions_does_not_import_their_machine() -> None:
    program = (
        "import sys, riverlog.node, riverlog.drivers.transactions\n"
        "print(*[name for name in sys.modules if name.startswith(('riverlog.transactions', "
        "'riverlog.drivers.transaction_'))])"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    of_partitions = ["riverlog.transactions", "riverlog.transactions.limits", "riverlog.transactions.verification"]
    assert sorted(run.stdout.split()) == of_partitions
