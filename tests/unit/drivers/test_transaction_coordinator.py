"""A transaction coordinator: what was decided reaches every partition, across failures of the way and of the node."""

import asyncio
from random import Random
from uuid import UUID

import pytest

from riverlog.drivers.transactions import Transactions
from riverlog.metadata.commands.topics import CreateTopics, NewTopic
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import TopicId, TopicPartition
from riverlog.model.transactions import Producer
from riverlog.node import Node
from riverlog.transactions.commands import (
    AddPartitions,
    DescribeTransactions,
    EndTransaction,
    InitProducer,
)
from riverlog.transactions.states import TransactionState
from tests.support.asking import serving
from tests.support.coordinators import transactions_of
from tests.support.markers import FaultyMarkers, Markers
from tests.support.transactions import ID, P0, P1, V2, producer_of
from tests.support.virtual_time import run
from tests.support.world import Universe


async def prepared(node: Node, transactions: Transactions) -> Producer:
    """Create the topics, and give a producer with an open transaction on two partitions."""
    await transactions.ensure_topic()
    await node._metadata.submit(CreateTopics((NewTopic("t", TopicId(UUID(int=9)), 2, 1, configs={}),)))
    producer = (await transactions.decide(InitProducer(ID, 60_000))).producer
    await transactions.submit(ID, AddPartitions(ID, producer, (P0, P1), V2))
    return producer


async def state_of(transactions: Transactions) -> TransactionState:
    (held,) = (await transactions.submit(ID, DescribeTransactions((ID,)))).transactions
    state: TransactionState = held.state
    return state


def test_an_end_is_answered_before_its_markers_are_written_and_complete_after() -> None:
    async def scenario() -> None:
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

    run(scenario())


@pytest.mark.parametrize("loses_power", [True, False])
def test_after_a_restart_the_markers_are_sent_again(loses_power: bool) -> None:
    async def scenario() -> None:
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

    run(scenario())


def test_a_transaction_that_stays_open_is_aborted_without_being_asked() -> None:
    async def scenario() -> None:
        universe, port = Universe(), Markers()
        async with serving(universe) as (_line, node), transactions_of(universe, node, port) as transactions:
            producer = await prepared(node, transactions)
            await asyncio.sleep(61)
            assert set(port.arrived) == {(each, producer.id, 1, False) for each in (P0, P1)}
            ended = await transactions.decide(EndTransaction(ID, producer, True, V2))
            assert ended.code is ErrorCode.INVALID_TXN_STATE  # nobody has taken over: it may abort and go on

    run(scenario())


@pytest.mark.parametrize("seed", range(10))
def test_every_partition_hears_of_every_end_and_of_no_other_however_faulty_the_way_is(seed: int) -> None:
    async def scenario() -> None:
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

    run(scenario())


async def add(transactions: Transactions, producer: Producer) -> ErrorCode:
    code: ErrorCode
    code, _ = (await transactions.submit(ID, AddPartitions(ID, producer, (P0, P1), V2))).codes
    return code


def test_a_transaction_that_cannot_be_written_down_is_refused_alone() -> None:
    async def scenario() -> None:
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
            assert [each._coordinator._incarnation for each in transactions._coordinators.values()] == [0]

    run(scenario())


def test_an_end_stands_though_somebody_waited_for_it_who_wants_too_much() -> None:
    async def scenario() -> None:
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

    run(scenario())


def test_transactions_whose_time_is_up_together_end_though_no_batch_holds_them_all() -> None:
    async def scenario() -> None:
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
            (coordinator,) = transactions._coordinators.values()
            assert [held.state.is_ended for held in coordinator.machine.state.values()] == [True] * 3
            assert coordinator._coordinator._incarnation == 0

    run(scenario())
