"""Offsets committed in a transaction take effect with it, and none is left pending by one that came too late."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from riverlog.coordination.offsets import TransactionalOffsets
from riverlog.groups.commands import CommitOffsets, FetchOffsets, OffsetsOfTopic, OffsetToCommit
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import Offset, ProducerEpoch, ProducerId, TopicPartition
from riverlog.model.transactions import ProducerIdentity, TransactionVersion
from riverlog.node import Node
from riverlog.transactions.commands import AddPartitions, EndTransaction, InitProducer
from tests.support.asking import serving
from tests.support.group_lines import GROUP
from tests.support.transactions import ID, V2, producer_of
from tests.support.virtual_time import run
from tests.support.world import Universe

V1 = TransactionVersion.CLASSIC


def in_a_node(scenario: "Callable[[Node, TransactionalOffsets, ProducerIdentity], Awaitable[None]]") -> None:
    """Play with a producer that may write, on a node with both topics."""

    async def play() -> None:
        universe = Universe()
        async with serving(universe) as (_line, node):
            await node.parts.groups.ensure_topic()
            await node.parts.transactions.ensure_topic()
            producer = (await node.parts.transactions.decide(InitProducer(ID, 60_000))).producer
            offsets = TransactionalOffsets(
                node.parts.groups, node.parts.replicas, node.parts.transactions, universe.clock
            )
            await scenario(node, offsets, producer)

    run(play())


def commit_of(producer: ProducerIdentity, offset: int, **more: Any) -> CommitOffsets:
    return CommitOffsets(GROUP, (OffsetToCommit("t", 0, Offset(offset)),), producer=producer, **more)


async def commit(
    offsets: TransactionalOffsets, producer: ProducerIdentity, offset: int, *, adds: bool = True
) -> ErrorCode:
    try:
        reply = await offsets.commit(ID, commit_of(producer, offset), adds=adds, knows_abortable=True)
    except Refusal as refusal:
        return refusal.code
    (code,) = reply.codes
    return code


async def committed(node: Node, *, stable: bool = False) -> int:
    command = FetchOffsets(GROUP, (OffsetsOfTopic("t", (0,)),), require_stable=stable)
    (found,) = (await node.parts.groups.submit(GROUP, command)).offsets
    assert found.code is ErrorCode.NONE
    return found.offset


@pytest.mark.parametrize(("commits", "expected"), [(True, 7), (False, -1)])
def test_they_take_effect_if_and_when_the_transaction_is_committed(commits: bool, expected: int) -> None:
    async def scenario(node: Node, offsets: TransactionalOffsets, producer: ProducerIdentity) -> None:
        assert await commit(offsets, producer, 5) is ErrorCode.NONE
        assert await commit(offsets, producer, 7) is ErrorCode.NONE
        assert await committed(node) == -1
        await node.parts.transactions.decide(EndTransaction(ID, producer, commits, V2))
        await asyncio.sleep(1)
        assert await committed(node, stable=True) == expected

    in_a_node(scenario)


def test_a_transaction_of_which_the_group_is_no_part_commits_nothing() -> None:
    async def scenario(node: Node, offsets: TransactionalOffsets, producer: ProducerIdentity) -> None:
        assert await commit(offsets, producer, 5, adds=False) is ErrorCode.TRANSACTION_ABORTABLE
        assert await commit(offsets, producer_of(producer.id, 9), 5) is ErrorCode.INVALID_PRODUCER_EPOCH
        assert await commit(offsets, producer_of(99, 0), 5) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
        partition = node.parts.groups.partition_of(GROUP)
        await node.parts.transactions.submit(ID, AddPartitions(ID, producer, (partition,), V1))
        assert await commit(offsets, producer, 5, adds=False) is ErrorCode.NONE

    in_a_node(scenario)


def test_what_comes_after_the_end_is_refused_and_leaves_the_coordinator_alone() -> None:
    async def scenario(node: Node, offsets: TransactionalOffsets, producer: ProducerIdentity) -> None:
        await commit(offsets, producer, 5)
        after = (await node.parts.transactions.decide(EndTransaction(ID, producer, True, V2))).producer
        await asyncio.sleep(1)
        assert await commit(offsets, producer, 6) is ErrorCode.INVALID_PRODUCER_EPOCH
        assert await commit(offsets, producer, 6, adds=False) is ErrorCode.INVALID_PRODUCER_EPOCH
        assert await committed(node, stable=True) == 5
        assert await commit(offsets, after, 8) is ErrorCode.NONE

    in_a_node(scenario)


def test_an_end_that_overtakes_the_answer_leaves_nothing_pending() -> None:
    async def scenario(node: Node, offsets: TransactionalOffsets, producer: ProducerIdentity) -> None:
        class Slow:
            async def verify(
                self,
                transactional_id: str,
                producer_id: ProducerId,
                producer_epoch: ProducerEpoch,
                partition: TopicPartition,
                *,
                adds: bool,
            ) -> ErrorCode:
                code = await node.parts.transactions.verify(
                    transactional_id, producer_id, producer_epoch, partition, adds=adds
                )
                await asyncio.sleep(5)
                return code

        partition = node.parts.groups.partition_of(GROUP)
        await node.parts.transactions.submit(ID, AddPartitions(ID, producer, (partition,), V1))
        slow = TransactionalOffsets(node.parts.groups, node.parts.replicas, Slow(), offsets._clock)
        late = asyncio.ensure_future(commit(slow, producer, 5, adds=False))
        await asyncio.sleep(1)
        await node.parts.transactions.decide(EndTransaction(ID, producer, True, V1))
        assert await late is ErrorCode.INVALID_TXN_STATE
        assert await committed(node, stable=True) == -1

    in_a_node(scenario)


def test_two_commits_at_once_are_both_kept() -> None:
    async def scenario(node: Node, offsets: TransactionalOffsets, producer: ProducerIdentity) -> None:
        both = await asyncio.gather(commit(offsets, producer, 5), commit(offsets, producer, 6))
        assert both == [ErrorCode.NONE] * 2
        await node.parts.transactions.decide(EndTransaction(ID, producer, True, V2))
        await asyncio.sleep(1)
        assert await committed(node, stable=True) == 6

    in_a_node(scenario)


def test_the_generation_is_checked_as_for_any_commit() -> None:
    async def scenario(node: Node, offsets: TransactionalOffsets, producer: ProducerIdentity) -> None:
        command = commit_of(producer, 5, member_id="m", generation_id=3)
        reply = await offsets.commit(ID, command, adds=True, knows_abortable=True)
        assert reply.codes == (ErrorCode.ILLEGAL_GENERATION,)

    in_a_node(scenario)


def test_offsets_survive_the_power_between_commit_and_end() -> None:
    async def play() -> None:
        universe = Universe()
        async with serving(universe, durability="fsync") as (_line, node):
            await node.parts.groups.ensure_topic()
            await node.parts.transactions.ensure_topic()
            producer = (await node.parts.transactions.decide(InitProducer(ID, 60_000))).producer
            offsets = TransactionalOffsets(
                node.parts.groups, node.parts.replicas, node.parts.transactions, universe.clock
            )
            assert await commit(offsets, producer, 5) is ErrorCode.NONE
            await universe.lose_power()
        async with serving(universe, durability="fsync") as (_line, node):
            await asyncio.sleep(2)
            await node.parts.transactions.decide(EndTransaction(ID, producer, True, V2))
            await asyncio.sleep(2)
            assert await committed(node, stable=True) == 5

    run(play())
