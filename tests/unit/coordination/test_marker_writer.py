"""Markers on a whole node: written where a transaction wrote, once they are committed, and heeded by groups."""

from dataclasses import replace

import pytest

from riverlog.coordination.marker_writer import MarkerWriter
from riverlog.groups.records import GroupRecord, OffsetCommitKey
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import ProducerEpoch, ProducerId, TopicPartition
from riverlog.model.transactions import TransactionMarkers, TransactionVersion
from riverlog.node import Node
from riverlog.records.batch import read_header
from tests.support.asking import serving
from tests.support.group_lines import GROUP, commit, prepared
from tests.support.reading_committed import transactional_batch
from tests.support.world import Universe

ORDERS = TopicPartition("orders", 0)


def writer_on(node: Node) -> MarkerWriter:
    return MarkerWriter(node.parts.replicas, node.parts.groups, node._world.clock)


def markers(*partitions: TopicPartition, committed: bool = True, coordinator_epoch: int = 0) -> TransactionMarkers:
    return TransactionMarkers(
        producer_id=ProducerId(7),
        producer_epoch=ProducerEpoch(0),
        coordinator_epoch=coordinator_epoch,
        committed=committed,
        partitions=partitions,
        version=TransactionVersion.CLASSIC,
    )


def write(node: Node, name: TopicPartition) -> None:
    partition = node.parts.replicas.get(*name)
    assert partition is not None
    batch = transactional_batch(7, -1, b"value", key=b"key")
    partition.append_own(batch, read_header(batch), now_ms=0)


@pytest.mark.parametrize("durability", ["os", "fsync"])
async def test_a_marker_is_committed_when_it_is_answered(durability: str) -> None:
    async with serving(durability=durability) as (line, node):
        await prepared(line, "orders")
        write(node, ORDERS)
        partition = node.parts.replicas.get(*ORDERS)
        assert partition is not None
        assert partition.last_stable_offset == 0
        under_way = writer_on(node).write(markers(ORDERS))
        assert under_way.done() == (durability == "os"), "what the page cache keeps is committed when it is written"
        assert await under_way == {ORDERS: ErrorCode.NONE}
        assert partition.last_stable_offset == 2


async def test_each_partition_has_its_own_answer() -> None:
    async with serving() as (line, node):
        await prepared(line, "orders")
        missing = TopicPartition("orders", 99)
        writer = writer_on(node)
        told = await writer.write(markers(ORDERS, missing, coordinator_epoch=5))
        assert told == {ORDERS: ErrorCode.NONE, missing: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        told = await writer.write(markers(ORDERS, coordinator_epoch=4))
        assert told == {ORDERS: ErrorCode.TRANSACTION_COORDINATOR_FENCED}


@pytest.mark.parametrize("committed", [True, False])
async def test_offsets_of_a_transaction_count_when_it_is_committed(committed: bool) -> None:
    async with serving() as (line, node):
        await prepared(line, "orders")
        assert await commit(line, "orders", 3) is ErrorCode.NONE
        (machine,) = node.parts.groups.machines()
        key, value = OffsetCommitKey(GROUP, *ORDERS), machine.state.offsets.of(GROUP)[ORDERS]
        machine.apply(GroupRecord(key, replace(value, offset=8), ProducerId(7), ProducerEpoch(0)))
        name = node.parts.groups.partition_of(GROUP)
        assert await writer_on(node).write(markers(name, committed=committed)) == {name: ErrorCode.NONE}
        assert machine.state.offsets.of(GROUP)[ORDERS].offset == (8 if committed else 3)
        partition = node.parts.replicas.get(*name)
        assert partition is not None
        producer = partition.log.producers.get(ProducerId(7))
        assert producer is not None, "its marker is in the log"


async def test_groups_that_are_not_there_yet_are_asked_again() -> None:
    async with serving() as (line, node):
        await prepared(line, "orders")
        assert await commit(line, "orders", 3) is ErrorCode.NONE
        name = node.parts.groups.partition_of(GROUP)
        node.parts.groups.stop_waiting()
        told = await writer_on(node).write(markers(name))
        assert told == {name: ErrorCode.NOT_LEADER_OR_FOLLOWER}, "what senders of markers know"


async def test_a_marker_waits_for_a_log_that_is_being_recovered() -> None:
    universe = Universe()
    async with serving(universe, durability="fsync") as (line, node):
        await prepared(line, "orders")
        write(node, ORDERS)
        partition = node.parts.replicas.get(*ORDERS)
        assert partition is not None
        await node.parts.registry.directories[0].flusher.drain()
        await universe.lose_power()
    async with serving(universe, durability="fsync") as (_line, node):
        assert node.parts.replicas.is_recovering(ORDERS)
        assert await writer_on(node).write(markers(ORDERS)) == {ORDERS: ErrorCode.NONE}
        partition = node.parts.replicas.get(*ORDERS)
        assert partition is not None
        assert partition.last_stable_offset == 2
