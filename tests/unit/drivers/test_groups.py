"""Coordinators on a whole node: where groups live, what they survive, and who is told when they go away."""

import asyncio

import pytest

from riverlog.drivers.groups import partition_of
from riverlog.groups.commands import ListGroups
from riverlog.metadata.image import OFFSETS_TOPIC
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.limits import COORDINATOR_RELOAD_SECONDS
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from riverlog.wire.messages.heartbeat import HeartbeatRequest
from riverlog.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from riverlog.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.support.asking import Line, connected, serving
from tests.support.batches import batch_of
from tests.support.group_lines import GROUP, commit, committed, in_a_group, join_request, prepared
from tests.support.virtual_time import run
from tests.support.world import Universe


@pytest.mark.parametrize(
    ("group_id", "java_hash"),
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
def test_a_group_lives_where_kafka_would_put_it(group_id: str, java_hash: int) -> None:
    assert partition_of(group_id, 50) == abs(java_hash) % 50


def test_the_topic_of_groups_is_created_when_first_needed_and_is_internal() -> None:
    async def scenario() -> None:
        async with serving(offsets_topic_num_partitions="7") as (line, node):
            assert node._metadata.image.topic(OFFSETS_TOPIC) is None
            assert await commit_refused(line) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            await prepared(line, "t")
            request = MetadataRequest([MetadataRequestTopic(name=OFFSETS_TOPIC)])
            (topic,) = (await line.ask(ApiKey.METADATA, 12, request)).topics
            assert (topic.is_internal, len(topic.partitions)) == (True, 7)
            config = node._metadata.topic_config(OFFSETS_TOPIC)
            assert (config.cleanup_compact, config.segment_bytes) == (True, 104_857_600)

    run(scenario())


async def commit_refused(line: Line) -> ErrorCode:
    return await commit(line, "t", 1)


def test_asking_for_the_topic_of_groups_creates_it_as_it_should_be() -> None:
    async def scenario() -> None:
        async with serving() as (line, _node):
            request = MetadataRequest([MetadataRequestTopic(name=OFFSETS_TOPIC), MetadataRequestTopic(name="t")])
            topics = (await line.ask(ApiKey.METADATA, 12, request)).topics
            assert [(each.name, len(each.partitions), each.is_internal) for each in topics] == [
                (OFFSETS_TOPIC, 50, True),
                ("t", 1, False),
            ]

    run(scenario())


def test_without_the_topic_there_is_no_coordinator() -> None:
    async def scenario() -> None:
        async with serving() as (line, node):
            answer = await line.ask(ApiKey.HEARTBEAT, 4, HeartbeatRequest(GROUP, 1, "m"))
            assert answer.error_code == ErrorCode.NOT_COORDINATOR
            assert node._groups.submit_to_all(ListGroups()) == []

    run(scenario())


@pytest.mark.parametrize("stops_cleanly", [True, False])
def test_groups_and_offsets_survive(stops_cleanly: bool) -> None:
    async def scenario() -> None:
        universe = Universe()
        async with serving(universe, durability="fsync") as (line, node):
            await prepared(line, "t")
            told = await in_a_group(line)
            assert (
                await commit(line, "t", 42, member_id=told.member_id, generation_id_or_member_epoch=1) is ErrorCode.NONE
            )
            await (node.stop() if stops_cleanly else universe.lose_power())
        async with serving(universe, durability="fsync") as (line, node):
            await asyncio.sleep(1)  # until the log is read
            assert node._groups.loading() == 0
            assert await committed(line, "t") == 42
            heartbeat = HeartbeatRequest(GROUP, told.generation_id, told.member_id)
            assert (await line.ask(ApiKey.HEARTBEAT, 4, heartbeat)).error_code == ErrorCode.NONE
            await asyncio.sleep(11)  # its session
            assert (await line.ask(ApiKey.HEARTBEAT, 4, heartbeat)).error_code == ErrorCode.UNKNOWN_MEMBER_ID

    run(scenario())


def test_while_a_coordinator_reads_its_log_clients_ask_again() -> None:
    async def scenario() -> None:
        universe = Universe()
        async with serving(universe) as (line, _node):
            await prepared(line, "t")
            for offset in range(1_000):
                await commit(line, "t", offset)
        node = universe.node()
        await node.start()
        with pytest.raises(Refusal) as refused:
            node._groups.submit(GROUP, ListGroups())
        assert refused.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        with pytest.raises(Refusal):
            node._groups.submit_to_all(ListGroups())
        line = await connected(universe)
        await asyncio.sleep(1)
        assert await committed(line, "t") == 999
        await node.stop()

    run(scenario())


def test_offsets_go_with_their_topic() -> None:
    async def scenario() -> None:
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

    run(scenario())


def test_a_coordinator_whose_log_failed_comes_back_with_what_is_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise Refusal(ErrorCode.KAFKA_STORAGE_ERROR, "no room")

    async def scenario() -> None:
        universe = Universe()
        async with serving(universe) as (line, node):
            await prepared(line, "t")
            await commit(line, "t", 1)
            told = await in_a_group(line)
            member = {"member_id": told.member_id, "generation_id_or_member_epoch": told.generation_id}
            parked = (await connected(universe)).send(ApiKey.JOIN_GROUP, 3, join_request())
            await asyncio.sleep(0.01)
            assert not parked.done()
            with monkeypatch.context() as full:
                volume = node._homes[0].volume
                full.setattr(volume, "writable", False)
                full.setattr(volume, "check_writable", refuse)
                assert await commit(line, "t", 2, **member) is ErrorCode.NOT_COORDINATOR
                assert (await parked).error_code == ErrorCode.NOT_COORDINATOR
                assert await commit(line, "t", 2) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            await asyncio.sleep(COORDINATOR_RELOAD_SECONDS + 0.1)
            assert await committed(line, "t") == 1

    run(scenario())


def test_members_that_wait_for_others_are_told_when_the_node_stops() -> None:
    async def scenario() -> None:
        universe = Universe()
        async with serving(universe) as (line, node):
            await prepared(line)
            await in_a_group(line)
            other = await connected(universe)
            parked = other.send(ApiKey.JOIN_GROUP, 3, join_request())
            await asyncio.sleep(0.01)
            assert not parked.done()
            await node.stop()
            assert (await parked).error_code == ErrorCode.NOT_COORDINATOR

    run(scenario())


def test_deleting_the_topic_of_groups_forgets_them() -> None:
    async def scenario() -> None:
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

    run(scenario())


def test_the_node_shows_how_far_behind_a_group_is() -> None:
    async def scenario() -> None:
        async with serving() as (line, node):
            await prepared(line, "t")
            part = PartitionProduceData(index=0, records=batch_of([b"a", b"b", b"c"]))
            produce = ProduceRequest(
                acks=-1, timeout_ms=1_000, topic_data=[TopicProduceData("t", partition_data=[part])]
            )
            await line.ask(ApiKey.PRODUCE, 12, produce)
            told = await in_a_group(line)
            member = {"member_id": told.member_id, "generation_id_or_member_epoch": told.generation_id}
            await commit(line, "t", 1, **member)
            await commit(line, "t", 5, partition=1, **member)
            (group,) = node.groups()
            assert (group.group_id, group.state, group.members) == (GROUP, "Stable", 1)
            assert {(each.partition, each.offset, each.lag) for each in group.committed} == {(0, 1, 2), (1, 5, None)}
            assert node.coordinators_loading() == 0

    run(scenario())
