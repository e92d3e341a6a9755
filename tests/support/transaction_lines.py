"""Transactions on a simulated node: what producers and their coordinator do, one step at a time."""

from typing import Any

from riverlog.model.errors import ErrorCode
from riverlog.model.ids import TopicPartition
from riverlog.model.transactions import ProducerIdentity, TransactionVersion
from riverlog.node import Node
from riverlog.transactions.commands import AddPartitions, EndTransaction, InitProducer
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from riverlog.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.support.asking import Line
from tests.support.reading_committed import transactional_batch

COPIER = "copier"
CLASSIC, BUMPED = TransactionVersion.CLASSIC, TransactionVersion.EPOCH_PER_TRANSACTION


async def begun(node: Node, transactional_id: str = COPIER) -> ProducerIdentity:
    """Become the producer of a transactional id."""
    await node.parts.transactions.ensure_topic()
    reply = await node.parts.transactions.decide(InitProducer(transactional_id, 60_000))
    assert reply.code is ErrorCode.NONE
    return reply.producer


async def added(node: Node, producer: ProducerIdentity, *partitions: TopicPartition) -> None:
    """Take partitions into the transaction, as clients of the first version do."""
    reply = await node.parts.transactions.submit(COPIER, AddPartitions(COPIER, producer, partitions))
    assert set(reply.codes) == {ErrorCode.NONE}


async def ended(
    node: Node, producer: ProducerIdentity, *, committed: bool, version: TransactionVersion = CLASSIC
) -> ProducerIdentity:
    """End the transaction; give who may write from here on. Its markers may still be on their way."""
    reply = await node.parts.transactions.decide(EndTransaction(COPIER, producer, committed, version))
    assert reply.code is ErrorCode.NONE
    return reply.producer


async def sent(
    line: Line,
    producer: ProducerIdentity,
    sequence: int,
    value: bytes,
    *,
    topic: str = "orders",
    version: int = 12,
    transactional_id: str | None = COPIER,
) -> Any:
    """Send one record of a transaction; give the partition's answer."""
    batch = transactional_batch(producer.id, sequence, value, epoch=producer.epoch)
    part = PartitionProduceData(index=0, records=batch)
    request = ProduceRequest(transactional_id, -1, 1_000, [TopicProduceData(name=topic, partition_data=[part])])
    response = await line.ask(ApiKey.PRODUCE, version, request)
    return response.responses[0].partition_responses[0]


def fetching(offset: int = 0, *, committed: bool = True, wait_ms: int = 0) -> FetchRequest:
    """Ask for the records of one partition from an offset on."""
    part = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    return FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=1,
        max_bytes=1 << 20,
        isolation_level=int(committed),
        topics=[FetchTopic(topic="orders", partitions=[part])],
    )
