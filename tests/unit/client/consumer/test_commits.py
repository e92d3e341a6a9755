"""Committed offsets: kept, read back, and refused with the right words."""

import pytest

from riverlog.client.consumer.commits import OUTSIDE, CommittedOffset, Identity, commit_offsets, committed_offsets
from riverlog.client.errors import CommitFailed, KafkaError
from riverlog.client.network.cluster import Cluster
from riverlog.client.network.coordinator import GroupCoordinator
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import Offset, TopicPartition
from tests.support.members import ADDRESS, TOPIC, a_node
from tests.support.world import Universe

ZERO, ONE = TopicPartition(TOPIC, 0), TopicPartition(TOPIC, 1)


async def connected(universe: Universe) -> tuple[Cluster, GroupCoordinator]:
    cluster = Cluster(ADDRESS, ports=universe.ports)
    await cluster.start()
    return cluster, GroupCoordinator(cluster, "billing")


async def test_what_was_committed_is_read_back_and_the_rest_is_nothing() -> None:
    async with a_node() as universe:
        cluster, coordinator = await connected(universe)
        kept = CommittedOffset(Offset(5), 0, "note")
        await commit_offsets(cluster, coordinator, OUTSIDE, {ZERO: kept})
        assert await committed_offsets(cluster, coordinator, [ONE, ZERO]) == {ZERO: kept, ONE: None}
        assert await committed_offsets(cluster, coordinator, []) == {}
        await commit_offsets(cluster, coordinator, OUTSIDE, {})
        await cluster.close()


async def test_a_member_that_the_group_does_not_know_commits_nothing() -> None:
    async with a_node() as universe:
        cluster, coordinator = await connected(universe)
        with pytest.raises(CommitFailed, match="gone on without this member"):
            await commit_offsets(cluster, coordinator, Identity(3, "ghost"), {ZERO: CommittedOffset(Offset(1))})
        await cluster.close()


async def test_a_note_that_is_too_long_is_refused_at_once() -> None:
    async with a_node() as universe:
        cluster, coordinator = await connected(universe)
        with pytest.raises(KafkaError) as refused:
            await commit_offsets(cluster, coordinator, OUTSIDE, {ZERO: CommittedOffset(Offset(1), -1, "x" * 5_000)})
        assert refused.value.code is ErrorCode.OFFSET_METADATA_TOO_LARGE
        await cluster.close()
