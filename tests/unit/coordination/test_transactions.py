"""The transaction coordinator on a node: the topic that it writes to, producer ids, verification; and what was decided
reaches every partition, across failures of the way and of the node."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random
from uuid import UUID

import pytest

from riverlog import Admin
from riverlog import Producer as Client
from riverlog.coordination.transactions import TransactionCoordinator
from riverlog.metadata.commands.topics import CreateTopics, TopicCreation
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import ProducerId, TopicId, TopicPartition
from riverlog.model.internal_topics import TRANSACTIONS_TOPIC
from riverlog.model.transactions import MarkerPort, ProducerIdentity, TransactionOutcome, TransactionVersion
from riverlog.node import Node
from riverlog.observe.samples import TransactionsSample
from riverlog.transactions.commands import AddPartitions, DescribeTransactions, EndTransaction, InitProducer
from riverlog.transactions.records import TransactionFact
from riverlog.transactions.states import Transaction, TransactionState
from tests.support import coordinator_lines
from tests.support.asking import serving
from tests.support.coordinators import transactions_of
from tests.support.markers import FaultyMarkers, Markers
from tests.support.members import ADDRESS
from tests.support.second_broker import SecondBroker
from tests.support.transactions import ID, P0, P1, V2, producer_of
from tests.support.world import Universe


@asynccontextmanager
async def coordinating(port: MarkerPort) -> AsyncIterator[TransactionCoordinator]:
    universe = Universe()
    async with serving(universe) as (_line, node), transactions_of(universe, node, port) as transactions:
        await transactions.ensure_topic()
        yield transactions


async def verify(transactions: TransactionCoordinator, producer: ProducerIdentity, *, adds: bool) -> ErrorCode:
    return await transactions.verify(ID, producer.id, producer.epoch, P0, adds=adds)


async def test_the_topic_is_created_when_first_needed_and_is_as_kafka_makes_it() -> None:
    universe = Universe()
    async with (
        serving(universe, transaction_state_log_num_partitions="7") as (_line, node),
        transactions_of(universe, node, Markers()) as transactions,
    ):
        with pytest.raises(Refusal) as refused:
            await transactions.submit(ID, InitProducer(ID, 1_000))
        assert refused.value.code is ErrorCode.NOT_COORDINATOR
        await transactions.ensure_topic()
        topic = node.parts.metadata.image.topic(TRANSACTIONS_TOPIC)
        assert topic is not None
        assert (topic.partition_count, topic.is_internal) == (7, True)
        config = node.parts.metadata.topic_config(TRANSACTIONS_TOPIC)
        assert (config.cleanup_compact, config.compression_type) == (True, "uncompressed")


async def test_a_node_shows_what_is_open_and_counts_what_was_decided() -> None:
    universe = Universe()
    async with serving(universe) as (_line, node):
        async with Admin(ADDRESS, ports=universe.ports) as admin:
            await admin.create_topic("t", partitions=1)
        async with Client(ADDRESS, transactional_id=ID, ports=universe.ports) as producer:
            await producer.begin()
            await producer.send("t", b"1")
            await asyncio.sleep(3)
            shown = node.parts.metrics.transactions()
            assert shown.ids_by_state == {"Ongoing": 1}
            assert 3 <= shown.oldest_open_seconds < 4
            (lagging,) = [
                each for each in node.parts.metrics.partitions() if each.last_stable_offset < each.high_watermark
            ]
            assert (lagging.topic, lagging.last_stable_offset, lagging.high_watermark) == ("t", 0, 1)
            await producer.commit()
        await asyncio.sleep(1)
        assert node.parts.metrics.transactions() == TransactionsSample({"CompleteCommit": 1}, 0.0)
        assert all(each.last_stable_offset == each.high_watermark for each in node.parts.metrics.partitions())
        assert node.stats.transactions.ended[TransactionOutcome.COMMITTED] == 1
        assert node.stats.transactions.markers_waiting == 0


async def test_a_producer_is_given_an_id_that_nobody_had() -> None:
    async with coordinating(Markers()) as transactions:
        first = await transactions.decide(InitProducer(ID, 60_000))
        other = await transactions.decide(InitProducer("other", 60_000))
        again = await transactions.decide(InitProducer(ID, 60_000))
        assert first.producer.id != other.producer.id
        assert again.producer == producer_of(first.producer.id, 1)


async def test_partitions_ask_whether_a_batch_belongs_to_a_transaction() -> None:
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


async def test_what_is_decided_and_written_is_answered_at_once() -> None:
    async with coordinating(Markers()) as transactions:
        producer = (await transactions.decide(InitProducer(ID, 60_000))).producer
        await transactions.submit(ID, AddPartitions(ID, producer, (P0,), TransactionVersion.CLASSIC))
        ended = transactions.decide(EndTransaction(ID, producer, True, TransactionVersion.CLASSIC))
        assert ended.done()
        assert ended.result().code is ErrorCode.NONE


async def test_an_end_that_needs_a_new_id_gets_one() -> None:
    async with coordinating(Markers()) as transactions:
        await transactions.decide(InitProducer(ID, 60_000))
        (shard,) = transactions
        last = producer_of(7, 32_766)
        shard.machine.apply(TransactionFact(ID, Transaction(last, 60_000, 0)))
        ended = await transactions.decide(EndTransaction(ID, last, False, V2))
        assert (ended.producer.epoch, ended.producer.id != last.id) == (0, True)
        assert await transactions.decide(EndTransaction(ID, last, False, V2)) == ended


async def prepared(node: Node, transactions: TransactionCoordinator) -> ProducerIdentity:
    """Create the topics, and give a producer with an open transaction on two partitions."""
    await transactions.ensure_topic()
    await node.parts.controller.submit(CreateTopics((TopicCreation("t", TopicId(UUID(int=9)), 2, 1, configs={}),)))
    producer = (await transactions.decide(InitProducer(ID, 60_000))).producer
    await transactions.submit(ID, AddPartitions(ID, producer, (P0, P1), V2))
    return producer


async def state_of(transactions: TransactionCoordinator) -> TransactionState:
    (held,) = await transactions.submit(ID, DescribeTransactions((ID,)))
    return held.state


async def test_an_end_is_answered_before_its_markers_are_written_and_complete_after() -> None:
    universe, port = Universe(), Markers()
    port.codes[P1] = ErrorCode.NOT_ENOUGH_REPLICAS
    async with serving(universe) as (_line, node), transactions_of(universe, node, port) as transactions:
        producer = await prepared(node, transactions)
        ended = await transactions.decide(EndTransaction(ID, producer, True, V2))
        assert ended.producer == producer_of(producer.id, 1)
        await asyncio.sleep(10)
        assert await state_of(transactions) is TransactionState.PREPARE_COMMIT
        port.codes.clear()
        await asyncio.sleep(10)
        assert await state_of(transactions) is TransactionState.COMPLETE_COMMIT
        assert set(port.arrived) == {(each, producer.id, 1, True) for each in (P0, P1)}


@pytest.mark.parametrize("loses_power", [True, False])
async def test_after_a_restart_the_markers_are_sent_again(loses_power: bool) -> None:
    universe, port = Universe(), Markers()
    port.codes |= dict.fromkeys((P0, P1), ErrorCode.KAFKA_STORAGE_ERROR)
    async with serving(universe, durability="fsync") as (_line, node):
        async with transactions_of(universe, node, port) as transactions:
            producer = await prepared(node, transactions)
            await transactions.decide(EndTransaction(ID, producer, True, V2))
        await (universe.lose_power() if loses_power else node.stop())
    port.codes.clear()
    async with (
        serving(universe, durability="fsync") as (_line, node),
        transactions_of(universe, node, port) as transactions,
    ):
        running = asyncio.ensure_future(transactions.run())
        await asyncio.sleep(5)
        assert await state_of(transactions) is TransactionState.COMPLETE_COMMIT
        running.cancel()


async def test_a_transaction_that_stays_open_is_aborted_without_being_asked() -> None:
    universe, port = Universe(), Markers()
    async with serving(universe) as (_line, node), transactions_of(universe, node, port) as transactions:
        producer = await prepared(node, transactions)
        await asyncio.sleep(61)
        assert set(port.arrived) == {(each, producer.id, 1, False) for each in (P0, P1)}
        ended = await transactions.decide(EndTransaction(ID, producer, True, V2))
        assert ended.code is ErrorCode.INVALID_TXN_STATE  # nobody has taken over: it may abort and go on


@pytest.mark.parametrize("seed", range(10))
async def test_every_partition_hears_of_every_end_and_of_no_other_however_faulty_the_way_is(seed: int) -> None:
    universe, random = Universe(seed), Random(seed)
    port = FaultyMarkers(random)
    async with serving(universe) as (_line, node), transactions_of(universe, node, port) as transactions:
        producer = await prepared(node, transactions)
        decided: set[object] = set()
        for _ in range(10):
            committed = random.random() < 0.5
            after = (await transactions.decide(EndTransaction(ID, producer, committed, V2))).producer
            decided |= {(each, after.id, after.epoch, committed) for each in (P0, P1)}
            while (await add(transactions, after)) is ErrorCode.CONCURRENT_TRANSACTIONS:
                repeated = await transactions.decide(EndTransaction(ID, producer, committed, V2))
                assert repeated.code in (ErrorCode.NONE, ErrorCode.CONCURRENT_TRANSACTIONS)
            assert set(port.arrived) == decided
            producer = after


async def add(transactions: TransactionCoordinator, producer: ProducerIdentity) -> ErrorCode:
    code, _ = (await transactions.submit(ID, AddPartitions(ID, producer, (P0, P1), V2))).codes
    return code


async def test_a_transaction_that_cannot_be_written_down_is_refused_alone() -> None:
    universe, port = Universe(), Markers()
    many = tuple(TopicPartition("t" * 249 + str(number), 0) for number in range(5_000))
    settings = {"transaction_state_log_num_partitions": "1", "transaction_state_log_segment_bytes": str(1 << 20)}
    async with (
        serving(universe, **settings) as (_line, node),
        transactions_of(universe, node, port) as transactions,
    ):
        producer = await prepared(node, transactions)
        other = (await transactions.decide(InitProducer("other", 60_000))).producer
        for _ in range(3):
            with pytest.raises(Refusal) as refused:
                await transactions.submit(ID, AddPartitions(ID, producer, many, V2))
            assert refused.value.code is ErrorCode.UNKNOWN_SERVER_ERROR
            with pytest.raises(Refusal):
                await transactions.submit("other", AddPartitions("other", other, many, V2))
        assert [each._runner._incarnation for each in transactions] == [0]


async def test_an_end_stands_though_somebody_waited_for_it_who_wants_too_much() -> None:
    universe, port = Universe(), Markers()
    port.codes[P1] = ErrorCode.NOT_ENOUGH_REPLICAS
    many = tuple(TopicPartition("t" * 249 + str(number), 0) for number in range(5_000))
    async with (
        serving(universe, transaction_state_log_segment_bytes=str(1 << 20)) as (_line, node),
        transactions_of(universe, node, port) as transactions,
    ):
        producer = await prepared(node, transactions)
        after = (await transactions.decide(EndTransaction(ID, producer, True, V2))).producer
        waits = transactions.submit(ID, AddPartitions(ID, after, many, V2))
        port.codes.clear()
        with pytest.raises(Refusal) as refused:
            await waits
        assert refused.value.code is ErrorCode.UNKNOWN_SERVER_ERROR
        assert await state_of(transactions) is TransactionState.COMPLETE_COMMIT


async def test_transactions_whose_time_is_up_together_end_though_no_batch_holds_them_all() -> None:
    universe, port = Universe(), Markers()
    many = tuple(TopicPartition("t" * 249 + str(number), 0) for number in range(2_000))
    settings = {"transaction_state_log_num_partitions": "1", "transaction_state_log_segment_bytes": str(1 << 20)}
    async with (
        serving(universe, **settings) as (_line, node),
        transactions_of(universe, node, port) as transactions,
    ):
        await transactions.ensure_topic()
        for name in ("a", "b", "c"):
            producer = (await transactions.decide(InitProducer(name, 60_000))).producer
            await transactions.submit(name, AddPartitions(name, producer, many, V2))
        await asyncio.sleep(61)
        (shard,) = transactions
        assert [held.state.is_ended for held in shard.machine.state.values()] == [True] * 3
        assert shard._runner._incarnation == 0


def test_a_node_without_transactions_does_not_import_their_machine() -> None:
    program = (
        "import sys, riverlog.node, riverlog.coordination.transactions\n"
        "print(*[name for name in sys.modules if name.startswith(('riverlog.transactions', "
        "'riverlog.coordination.marker_sender'))])"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    of_partitions = ["riverlog.transactions", "riverlog.transactions.limits", "riverlog.transactions.verification"]
    assert sorted(run.stdout.split()) == of_partitions


async def test_a_coordinator_that_resigns_sends_no_markers_and_the_next_one_does() -> None:
    async with serving() as (line, node):
        other = await SecondBroker.join(node)
        await other.create(TRANSACTIONS_TOPIC, (2, 1), cleanup_policy="compact")
        await other.create("t", (2, 1))
        await other.fence()
        producer = await coordinator_lines.init(line)
        assert await coordinator_lines.add(line, producer) == [ErrorCode.NONE]
        await other.lead("t")
        await coordinator_lines.end(line, producer)
        stats = node.stats.transactions
        await asyncio.sleep(1)
        assert stats.markers_waiting == 1
        await other.lead(TRANSACTIONS_TOPIC)
        await asyncio.sleep(0)
        assert stats.markers_waiting == 0
        retried = stats.markers_retried
        await asyncio.sleep(5)
        assert stats.markers_retried == retried
        await other.fence()
        await asyncio.sleep(1)
        partition = node.parts.replicas.get("t", 0)
        assert partition is not None
        assert partition.log.log_end_offset == 1, "the marker"
        assert partition.log.producers.get(ProducerId(producer.producer_id)).coordinator_epoch == 3  # type: ignore[union-attr]
        assert (await coordinator_lines.described(line)).transaction_state == "CompleteCommit"
