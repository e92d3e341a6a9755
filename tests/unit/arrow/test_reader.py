"""Ranges of partitions: all of each, in order, within bounds, whatever the cluster does meanwhile."""

import asyncio

import pytest

from riverlog.arrow.columns import Cut
from riverlog.arrow.reader import RangeReader
from riverlog.client.errors import KafkaError, OffsetOutOfRange
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import Offset, TopicPartition
from riverlog.wire.apis import ApiKey
from tests.support.brokers import FakeCluster


def filled(*, nodes: int = 1, partitions: int = 1, batches: int = 20, size: int = 1_000) -> FakeCluster:
    cluster = FakeCluster(nodes=nodes)
    cluster.create_topic("orders", partitions)
    for partition in range(partitions):
        for _ in range(batches):
            cluster.write("orders", partition, bytes(size))
    return cluster


def cut(from_offset: int, until_offset: int) -> Cut:
    return Cut(Offset(from_offset), Offset(until_offset))


async def read(reader: RangeReader, cuts: dict[TopicPartition, Cut]) -> dict[int, list[int]]:
    """Return the base offsets of all batches that came, by partition."""
    reader.want(cuts)
    found: dict[int, list[int]] = {}
    while (taken := await reader.next_chunk()) is not None:
        assert taken.cut.until_offset == cuts[taken.partition].until_offset
        while (raw := taken.chunk.next_raw(taken.partition, taken.cut.from_offset)) is not None:
            found.setdefault(taken.partition.partition, []).append(raw.header.base_offset)
    return found


async def test_every_range_is_covered_in_order_and_then_it_ends() -> None:
    cluster = filled(nodes=2, partitions=3)
    async with RangeReader(cluster.bootstrap, ports=cluster.ports, partition_bytes_max=3_000) as reader:
        await reader.cluster.topic("orders")
        cuts = {TopicPartition("orders", index): cut(index, 15) for index in range(3)}
        cuts[TopicPartition("orders", 2)] = cut(4, 4)
        found = await read(reader, cuts)
        assert {index: [each for each in offsets if each < 15] for index, offsets in found.items()} == {
            0: [*range(15)],
            1: [*range(1, 15)],
        }
        assert await reader.next_chunk() is None
        assert await read(reader, {TopicPartition("orders", 2): cut(18, 20)}) == {2: [18, 19]}


async def test_no_more_is_fetched_ahead_than_allowed() -> None:
    cluster = filled(partitions=5, batches=50)
    async with RangeReader(
        cluster.bootstrap, ports=cluster.ports, partition_bytes_max=4_000, prefetch_bytes_max=10_000
    ) as reader:
        await reader.cluster.topic("orders")
        reader.want({TopicPartition("orders", index): cut(0, 50) for index in range(5)})
        await asyncio.sleep(30)
        buffered = [state.buffered_bytes for state in reader._fetcher.assigned.values()]
        assert 0 < sum(buffered) <= 10_000 + 1_100
        asked = len(cluster.asked(ApiKey.FETCH))
        await asyncio.sleep(30)
        assert len(cluster.asked(ApiKey.FETCH)) == asked


async def test_a_moved_leader_is_found() -> None:
    cluster = filled(nodes=2)
    here = TopicPartition("orders", 0)
    async with RangeReader(cluster.bootstrap, ports=cluster.ports, partition_bytes_max=2_000) as reader:
        await reader.cluster.topic("orders")
        reader.want({here: cut(0, 20)})
        assert await reader.next_chunk() is not None
        cluster.move("orders", 0, 2 if reader.cluster.leader_of(here) == 1 else 1)
        cluster.mishap(ApiKey.FETCH, ErrorCode.NOT_LEADER_OR_FOLLOWER, "drop")
        last = 0
        while (taken := await reader.next_chunk()) is not None:
            last = taken.chunk.next_offset
        assert last == 20


async def test_deleted_records_are_skipped_or_told() -> None:
    cluster = filled()
    here = TopicPartition("orders", 0)
    cluster.topics["orders"].logs[0].start = 7
    async with RangeReader(cluster.bootstrap, ports=cluster.ports) as reader:
        await reader.cluster.topic("orders")
        assert await read(reader, {here: cut(2, 20)}) == {0: [*range(7, 20)]}
        assert await read(reader, {here: cut(2, 6)}) == {}
    async with RangeReader(cluster.bootstrap, ports=cluster.ports, skip_deleted=False) as reader:
        await reader.cluster.topic("orders")
        with pytest.raises(OffsetOutOfRange):
            await read(reader, {here: cut(2, 20)})


async def test_what_cannot_be_mended_is_raised() -> None:
    cluster = filled()
    cluster.mishap(ApiKey.FETCH, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    async with RangeReader(cluster.bootstrap, ports=cluster.ports) as reader:
        await reader.cluster.topic("orders")
        with pytest.raises(KafkaError) as raised:
            await read(reader, {TopicPartition("orders", 0): cut(0, 20)})
        assert raised.value.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED


async def test_nothing_behind_a_range_is_fetched() -> None:
    cluster = filled(partitions=2)
    async with RangeReader(cluster.bootstrap, ports=cluster.ports, partition_bytes_max=3_000) as reader:
        await reader.cluster.topic("orders")
        await read(reader, {TopicPartition("orders", 0): cut(0, 8), TopicPartition("orders", 1): cut(5, 20)})
        await asyncio.sleep(5)
        fetches = [topic for request in cluster.asked(ApiKey.FETCH) for topic in request.topics]
        asked = {(part.partition, part.fetch_offset) for topic in fetches for part in topic.partitions}
        assert max(offset for partition, offset in asked if partition == 0) < 8
        assert max(offset for partition, offset in asked if partition == 1) < 20
