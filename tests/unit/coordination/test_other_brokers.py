"""Transactions whose coordinators, partitions and groups are on different brokers of a cluster."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from riverlog import Admin, Consumer, KafkaError, Member, NewRecord, Producer, SharedTransactions
from riverlog.client.consumer.group import GroupMetadata
from riverlog.model.ids import TopicPartition
from tests.support.clusters import ClusterOfNodes
from tests.support.virtual_time import run

TOPIC = "events"
ZERO = TopicPartition(TOPIC, 0)
NAMES = [f"name-{number}" for number in range(6)]


@asynccontextmanager
async def two_brokers() -> AsyncIterator[ClusterOfNodes]:
    """Start a controller and two brokers, each of which leads some of each topic's partitions."""
    cluster = ClusterOfNodes(
        {1: "controller", 4: "broker", 5: "broker"},
        offsets_topic_num_partitions="4",
        transaction_state_log_num_partitions="4",
    )
    await cluster.start()
    async with Admin(cluster.address(4), ports=cluster.ports) as admin:
        await admin.create_topic(TOPIC, partitions=4)
        for name in NAMES:  # which creates the topics of coordinators, too
            async with Producer(cluster.address(4), transactional_id=name, ports=cluster.ports):
                pass
            assert await admin.group_offsets(name) == {}
    parts = cluster.nodes[4].parts
    for shards in (parts.groups, parts.transactions):
        assert {shards.is_here(shards.partition_of(name)) for name in NAMES} == {True, False}
    yield cluster
    await cluster.stop()


async def committed(cluster: ClusterOfNodes, count: int) -> list[bytes | None]:
    """Read so many records of committed transactions, wherever they are, and no more."""
    async with Consumer(
        cluster.address(5), isolation_level="read_committed", auto_offset_reset="earliest", ports=cluster.ports
    ) as consumer:
        consumer.assign(await consumer.partitions(TOPIC))
        found: list[bytes | None] = []
        async with asyncio.timeout(20):
            while len(found) < count:
                found += [record.value for record in await consumer.poll()]
        assert await consumer.poll(timeout_ms=1_000) == []
        return sorted(found, key=lambda value: value or b"")


async def offset_of(cluster: ClusterOfNodes, group: str) -> int | None:
    async with Admin(cluster.address(5), ports=cluster.ports) as admin:
        found = (await admin.group_offsets(group)).get(ZERO)
        return None if found is None else found.offset


@pytest.mark.parametrize("commits", [True, False])
def test_a_transaction_ends_on_every_broker_that_it_has_touched(commits: bool) -> None:
    async def scenario() -> None:
        async with two_brokers() as cluster:
            for number, name in enumerate(NAMES):
                group = NAMES[-1 - number]
                async with Producer(cluster.address(4), transactional_id=name, ports=cluster.ports) as producer:
                    await producer.begin()
                    for partition in range(4):
                        await producer.send(TOPIC, name.encode(), partition=partition)
                    await producer.send_offsets(GroupMetadata(group), {ZERO: 10 + number})
                    await (producer.commit() if commits else producer.abort())
            expected = sorted(name.encode() for name in NAMES for _ in range(4)) if commits else []
            assert await committed(cluster, len(expected)) == expected
            offsets = [10 + number if commits else None for number in reversed(range(len(NAMES)))]
            assert [await offset_of(cluster, group) for group in NAMES] == offsets
            for node in (4, 5):
                partitions = cluster.nodes[node].parts.registry.list_opened()
                assert all(each.last_stable_offset == each.high_watermark for each in partitions)

    run(scenario())


def test_a_shared_transaction_commits_offsets_of_a_group_on_another_broker() -> None:
    async def scenario() -> None:
        async with two_brokers() as cluster:
            for name in NAMES:
                async with SharedTransactions(cluster.address(4), name, incarnation="a", ports=cluster.ports) as owner:
                    batch = owner.batch(0)
                    async with Member(cluster.address(5), batch, task=0, attempt=0, ports=cluster.ports) as member:
                        await member.write([NewRecord(TOPIC, name.encode(), partition=each) for each in range(4)])
                        membership = await member.finish()
                    await owner.commit(batch, [membership], group=f"{name}-group", offsets={ZERO: 42})
            assert await committed(cluster, 24) == sorted(name.encode() for name in NAMES for _ in range(4))
            assert [await offset_of(cluster, f"{name}-group") for name in NAMES] == [42] * len(NAMES)

    run(scenario())


def test_a_group_with_members_is_theirs_on_every_broker() -> None:
    async def scenario() -> None:
        async with two_brokers() as cluster:
            for name in NAMES:
                async with (
                    Consumer(cluster.address(4), group=name, ports=cluster.ports) as consumer,
                    SharedTransactions(cluster.address(4), "owner", incarnation=name, ports=cluster.ports) as owner,
                ):
                    consumer.subscribe(TOPIC)
                    await consumer.poll(timeout_ms=5_000)
                    with pytest.raises(KafkaError, match="consumers are members of this group"):
                        await owner.commit(owner.batch(0), [], group=name, offsets={ZERO: 42})

    run(scenario())


def test_markers_reach_a_broker_that_comes_back() -> None:
    async def scenario() -> None:
        async with two_brokers() as cluster:
            here = cluster.nodes[4].parts.transactions
            name = next(each for each in NAMES if here.is_here(here.partition_of(each)))
            async with Producer(cluster.address(4), transactional_id=name, ports=cluster.ports) as producer:
                await producer.begin()
                for partition in range(4):
                    await producer.send(TOPIC, b"x", partition=partition)
                await cluster.stop(5)
                await producer.commit()
                await asyncio.sleep(3)
                assert cluster.nodes[4].stats.transactions.markers_waiting > 0
                await cluster.start(5)
                assert await committed(cluster, 4) == [b"x"] * 4
                await cluster.until(lambda: cluster.nodes[4].stats.transactions.markers_waiting == 0)

    run(scenario())
