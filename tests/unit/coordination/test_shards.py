"""The shards of an internal topic on a whole node, with groups as the example: where names live, and what happens
without the topic."""

import asyncio
import traceback

import pytest

from riverlog.coordination.shards import index_of
from riverlog.groups.commands import ListGroups
from riverlog.metadata.delta import delta_of
from riverlog.metadata.draft import after
from riverlog.metadata.records import PartitionChangeRecord
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import TopicPartition
from riverlog.model.internal_topics import OFFSETS_TOPIC
from riverlog.node import Node
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.api_versions import OWN_SOFTWARE, ApiVersionsRequest
from riverlog.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from riverlog.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from riverlog.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from riverlog.wire.messages.heartbeat import HeartbeatRequest
from riverlog.wire.messages.list_groups import ListGroupsRequest
from riverlog.wire.messages.list_transactions import ListTransactionsRequest
from tests.support import coordinator_lines
from tests.support.asking import Line, connected, serving
from tests.support.group_lines import GROUP, commit, committed, in_a_group, join_request, prepared
from tests.support.second_broker import SecondBroker
from tests.support.world import Universe, WorkersThatFlushSlowly


@pytest.mark.parametrize(
    ("name", "java_hash"),
    [
        ("", 0),
        ("a", 97),
        ("hello", 99162322),
        ("console-consumer-12345", 158455506),
        ("größe", 98762257),
        ("🙂", 1772965),
        ("polygenelubricants", 0),  # the smallest int32, of which Kafka takes 0 as the absolute value
    ],
)
def test_a_name_lives_where_kafka_would_put_it(name: str, java_hash: int) -> None:
    assert index_of(name, 50) == abs(java_hash) % 50


async def test_without_the_topic_there_is_no_coordinator() -> None:
    async with serving() as (line, node):
        answer = await line.ask(ApiKey.HEARTBEAT, 4, HeartbeatRequest(GROUP, 1, "m"))
        assert answer.error_code == ErrorCode.NOT_COORDINATOR
        assert node.parts.groups.submit_to_all(ListGroups()) == []


async def test_a_coordinator_that_fails_again_stays_away_longer() -> None:
    async with serving() as (_line, node):
        groups = node.parts.groups
        assert [groups._seconds_away(0) for _ in range(7)] == [0.25, 0.5, 1.0, 2.0, 4.0, 5.0, 5.0]
        assert groups._seconds_away(1) == 0.25
        await asyncio.sleep(11)
        assert groups._seconds_away(0) == 0.25


async def test_deleting_the_topic_of_groups_forgets_them() -> None:
    async with serving() as (line, _node):
        await prepared(line, "t")
        await commit(line, "t", 1)
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name=OFFSETS_TOPIC)])
        (deleted,) = (await line.ask(ApiKey.DELETE_TOPICS, 6, request)).responses
        assert deleted.error_code == ErrorCode.NONE
        assert await commit(line, "t", 1) is ErrorCode.NOT_COORDINATOR
        await asyncio.sleep(5)
        await prepared(line)
        assert await committed(line, "t") == -1
        assert await commit(line, "t", 3) is ErrorCode.NONE


async def test_shards_know_in_which_epoch_their_partitions_are_led() -> None:
    async with serving() as (line, node):
        await prepared(line, "t")
        await commit(line, "t", 1)
        (shard,) = node.parts.groups
        before = node.parts.metadata.image
        topic = before.topic(OFFSETS_TOPIC)
        assert topic is not None
        moved = PartitionChangeRecord(partition_id=shard.name.partition, topic_id=topic.id, leader=1)
        node.parts.groups._follow(delta_of(before, after(before, [moved]), [moved]))
        assert shard.epoch == 1


async def damage_told(line: Line) -> tuple[list[str], list[int]]:
    """Ask, as a client of ours, which partitions and which coordinators of transactions are damaged."""
    await line.ask(ApiKey.API_VERSIONS, 4, ApiVersionsRequest(OWN_SOFTWARE, "1"))
    (described,) = (await line.ask(ApiKey.DESCRIBE_LOG_DIRS, 4, DescribeLogDirsRequest([]))).results
    listed = await line.ask(ApiKey.LIST_TRANSACTIONS, 1, ListTransactionsRequest())
    return described.damaged, listed.damaged_partitions


async def test_a_damaged_record_takes_neither_its_groups_away_nor_those_of_other_shards() -> None:
    universe = Universe()
    async with serving(universe) as (line, _node):
        await prepared(line, "t")
        for offset in range(4):
            await commit(line, "t", offset)
    (path,) = (path for path in universe.disk.everything() if OFFSETS_TOPIC in path and path.endswith(".log"))
    universe.disk.damage(path, 300)
    async with serving(universe) as (line, _node):
        await asyncio.sleep(5)
        listed = await line.ask(ApiKey.LIST_GROUPS, 5, ListGroupsRequest())
        assert listed.error_code == ErrorCode.NONE
        assert [each.group_id for each in listed.groups] == [GROUP]
        assert await committed(line, "t") == 3
        assert await damage_told(line) == ([path.split("/")[2]], [])


async def test_a_damaged_record_takes_its_transactional_ids_away_and_no_others() -> None:
    universe = Universe()
    async with serving(universe) as (line, node):
        await coordinator_lines.prepared(line)
        assert (await coordinator_lines.init(line)).error_code == ErrorCode.NONE
        assert (await coordinator_lines.init(line, transactional_id="refunds")).error_code == ErrorCode.NONE
        damaged = node.parts.transactions.partition_of(coordinator_lines.ID)
        assert damaged != node.parts.transactions.partition_of("refunds")
    universe.disk.damage(f"/data/{damaged}/{0:020d}.log", 80)
    async with serving(universe) as (line, node):
        await asyncio.sleep(5)
        assert node.parts.transactions.loading() == 0
        assert (await coordinator_lines.init(line)).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert (await coordinator_lines.init(line, transactional_id="refunds")).error_code == ErrorCode.NONE
        listed = await line.ask(ApiKey.LIST_TRANSACTIONS, 1, ListTransactionsRequest())
        assert listed.error_code == ErrorCode.NONE
        assert [each.transactional_id for each in listed.transaction_states] == ["refunds"]
        found = await line.ask(ApiKey.LIST_TRANSACTIONS, 1, ListTransactionsRequest(producer_id_filters=[0]))
        assert found.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert await damage_told(line) == ([str(damaged)], [damaged.partition])
        for _ in range(50):
            with pytest.raises(Refusal):
                node.parts.transactions.check_loaded(damaged.partition)
        kept = node.parts.transactions.damage()[damaged.partition].__traceback__
        assert len(list(traceback.walk_tb(kept))) < 10, "who asks again and again takes no memory"


async def with_groups_elsewhere(line: Line, node: Node) -> SecondBroker:
    """Have another broker lead the only partition of the groups' topic."""
    other = await SecondBroker.join(node)
    await other.create(OFFSETS_TOPIC, (2, 1), cleanup_policy="compact")
    await line.ask(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest([CreatableTopic("t", 2, 1)]))
    return other


async def test_what_another_broker_coordinates_is_refused_and_not_listed() -> None:
    async with serving() as (line, node):
        other = await with_groups_elsewhere(line, node)
        assert await commit(line, "t", 1) is ErrorCode.NOT_COORDINATOR
        assert node.parts.groups.submit_to_all(ListGroups()) == []
        with pytest.raises(Refusal) as refused:
            node.parts.groups.check_loaded(0)
        assert refused.value.code is ErrorCode.NOT_COORDINATOR
        assert not node.parts.replicas.has_folder(TopicPartition(OFFSETS_TOPIC, 0))
        await other.fence()
        assert await commit(line, "t", 1) is ErrorCode.NONE


async def test_a_coordinator_resigns_at_once_and_reads_its_log_when_it_leads_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    universe = Universe()
    async with serving(universe) as (line, node):
        other = await with_groups_elsewhere(line, node)
        await other.fence()
        assert await commit(line, "t", 1) is ErrorCode.NONE
        await in_a_group(line)
        parked = (await connected(universe)).send(ApiKey.JOIN_GROUP, 3, join_request())
        await asyncio.sleep(0.01)
        assert not parked.done()
        await other.lead(OFFSETS_TOPIC)
        assert (await parked).error_code == ErrorCode.NOT_COORDINATOR
        assert await commit(line, "t", 2) is ErrorCode.NOT_COORDINATOR
        await asyncio.sleep(6)
        assert list(node.parts.groups) == [], "nobody brings it back"
        assert not [each for each in caplog.records if each.levelname == "ERROR"]
        await other.fence()
        await asyncio.sleep(0.01)
        assert await committed(line, "t") == 1
        (shard,) = node.parts.groups
        assert shard.epoch == other.facts(OFFSETS_TOPIC).leader_epoch


async def test_a_new_coordinator_waits_until_all_of_its_log_is_committed() -> None:
    universe = Universe()
    universe.workers = WorkersThatFlushSlowly(universe.random, f"/{OFFSETS_TOPIC}-")
    async with serving(universe, durability="fsync") as (line, node):
        other = await with_groups_elsewhere(line, node)
        await other.fence()
        waiting = asyncio.ensure_future(commit(line, "t", 1))
        await other.lead(OFFSETS_TOPIC)
        assert await waiting is ErrorCode.NOT_COORDINATOR
        await other.fence()
        assert await commit(line, "t", 2) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        await asyncio.sleep(11)
        assert await committed(line, "t") == 1


async def test_a_coordinator_that_resigns_while_it_reads_its_log_stays_away() -> None:
    async with serving() as (line, node):
        other = await with_groups_elsewhere(line, node)
        await other.fence()
        for offset in range(3_000):
            await commit(line, "t", offset)
        await other.lead(OFFSETS_TOPIC)
        await other.fence()
        (first,) = node.parts.groups
        assert not first.loaded
        node.parts.groups.resign(0)
        node.parts.groups.lead(0, other.facts(OFFSETS_TOPIC).leader_epoch)
        (second,) = node.parts.groups
        await asyncio.sleep(1)
        assert (first.loaded, second.loaded) == (False, True)
        assert await committed(line, "t") == 2_999
