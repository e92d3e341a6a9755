"""The group coordinator on a whole node: its topic, what it survives, what it learns about topics, what is seen."""

import asyncio
import subprocess
import sys

import pytest

from riverlog.model.errors import ErrorCode
from riverlog.model.internal_topics import OFFSETS_TOPIC
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from riverlog.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from riverlog.wire.messages.heartbeat import HeartbeatRequest
from riverlog.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from riverlog.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.support.asking import Line, serving
from tests.support.batches import batch_of
from tests.support.group_lines import GROUP, commit, committed, in_a_group, prepared
from tests.support.second_broker import SecondBroker
from tests.support.world import Universe


async def test_the_topic_of_groups_is_created_when_first_needed_and_is_internal() -> None:
    async with serving(offsets_topic_num_partitions="7") as (line, node):
        assert node.parts.metadata.image.topic(OFFSETS_TOPIC) is None
        assert await commit_refused(line) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        await prepared(line, "t")
        request = MetadataRequest([MetadataRequestTopic(name=OFFSETS_TOPIC)])
        (topic,) = (await line.ask(ApiKey.METADATA, 12, request)).topics
        assert (topic.is_internal, len(topic.partitions)) == (True, 7)
        config = node.parts.metadata.topic_config(OFFSETS_TOPIC)
        assert (config.cleanup_compact, config.segment_bytes) == (True, 104_857_600)


async def commit_refused(line: Line) -> ErrorCode:
    return await commit(line, "t", 1)


async def test_asking_for_the_topic_of_groups_creates_it_as_it_should_be() -> None:
    async with serving() as (line, _node):
        request = MetadataRequest([MetadataRequestTopic(name=OFFSETS_TOPIC), MetadataRequestTopic(name="t")])
        topics = (await line.ask(ApiKey.METADATA, 12, request)).topics
        assert [(each.name, len(each.partitions), each.is_internal) for each in topics] == [
            (OFFSETS_TOPIC, 50, True),
            ("t", 1, False),
        ]


async def test_the_node_shows_how_far_behind_a_group_is() -> None:
    async with serving() as (line, node):
        await prepared(line, "t")
        part = PartitionProduceData(index=0, records=batch_of([b"a", b"b", b"c"]))
        produce = ProduceRequest(acks=-1, timeout_ms=1_000, topic_data=[TopicProduceData("t", partition_data=[part])])
        await line.ask(ApiKey.PRODUCE, 12, produce)
        told = await in_a_group(line)
        member = {"member_id": told.member_id, "generation_id_or_member_epoch": told.generation_id}
        await commit(line, "t", 1, **member)
        await commit(line, "t", 5, partition=1, **member)
        (group,) = node.parts.metrics.groups()
        assert (group.group_id, group.state, group.members) == (GROUP, "Stable", 1)
        assert {(each.partition, each.offset, each.lag) for each in group.committed} == {(0, 1, 2), (1, 5, None)}
        assert node.parts.metrics.coordinators_loading() == 0


async def test_groups_hear_of_topics_that_grow_and_not_of_leaders_or_replicas_in_sync() -> None:
    async with serving() as (line, node):
        await prepared(line)
        other = await SecondBroker.join(node)
        await other.create("t", (2, 1))
        await commit(line, "t", 1)
        (shard,) = node.parts.groups
        heard = shard._runner._last_ticket
        await other.fence()
        await other.lead("t")
        assert other.facts("t").partition_epoch == 3
        assert shard._runner._last_ticket == heard
        growing = CreatePartitionsTopic("t", 2)
        await line.ask(ApiKey.CREATE_PARTITIONS, 3, CreatePartitionsRequest([growing], 1_000))
        assert shard._runner._last_ticket == heard + 1


@pytest.mark.parametrize("stops_cleanly", [True, False])
async def test_groups_and_offsets_survive(stops_cleanly: bool) -> None:
    universe = Universe()
    async with serving(universe, durability="fsync") as (line, node):
        await prepared(line, "t")
        told = await in_a_group(line)
        assert await commit(line, "t", 42, member_id=told.member_id, generation_id_or_member_epoch=1) is ErrorCode.NONE
        await (node.stop() if stops_cleanly else universe.lose_power())
    async with serving(universe, durability="fsync") as (line, node):
        await asyncio.sleep(1)  # until the log is read
        assert node.parts.groups.loading() == 0
        assert await committed(line, "t") == 42
        heartbeat = HeartbeatRequest(GROUP, told.generation_id, told.member_id)
        assert (await line.ask(ApiKey.HEARTBEAT, 4, heartbeat)).error_code == ErrorCode.NONE
        await asyncio.sleep(11)  # its session
        assert (await line.ask(ApiKey.HEARTBEAT, 4, heartbeat)).error_code == ErrorCode.UNKNOWN_MEMBER_ID


async def test_offsets_go_with_their_topic() -> None:
    universe = Universe()
    async with serving(universe) as (line, _node):
        await prepared(line, "t", "u")
        await commit(line, "t", 1)
        await commit(line, "u", 2)
        await line.ask(ApiKey.DELETE_TOPICS, 6, DeleteTopicsRequest(topics=[DeleteTopicState(name="t")]))
        assert (await committed(line, "t"), await committed(line, "u")) == (-1, 2)
    async with serving(universe) as (line, _node):
        await asyncio.sleep(1)
        assert (await committed(line, "t"), await committed(line, "u")) == (-1, 2)


def test_a_node_without_groups_does_not_import_their_machine() -> None:
    program = "import sys, riverlog.node\nprint(*[name for name in sys.modules if name.startswith('riverlog.groups')])"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.split() == []
