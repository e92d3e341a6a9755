"""What clients are told that asked a broker which does not lead a partition."""

from typing import Any

import pytest

from riverlog.model.errors import ErrorCode
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from riverlog.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from riverlog.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from riverlog.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from riverlog.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from riverlog.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from riverlog.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tests.support.asking import Line, serving
from tests.support.batches import batch_of
from tests.support.second_broker import OTHER, SecondBroker
from tests.support.world import Universe, WorkersThatFlushSlowly

NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER
MINUTE_MS = 60_000


def produce(*indexes: int, acks: int = -1, topic_id: Any = None) -> ProduceRequest:
    parts = [PartitionProduceData(index, batch_of([b"x"])) for index in indexes]  # type: ignore[arg-type]
    named = {} if topic_id is None else {"topic_id": topic_id}
    topics = [TopicProduceData(name="orders", partition_data=parts, **named)]
    return ProduceRequest(acks=acks, timeout_ms=MINUTE_MS, topic_data=topics)


def fetch(*indexes: int, offset: int = 0, wait_ms: int = 0, epoch: int = -1, topic_id: Any = None) -> FetchRequest:
    parts = [
        FetchPartition(index, current_leader_epoch=epoch, fetch_offset=offset, partition_max_bytes=1 << 20)
        for index in indexes
    ]
    named = {} if topic_id is None else {"topic_id": topic_id}
    return FetchRequest(max_wait_ms=wait_ms, min_bytes=1, topics=[FetchTopic("orders", partitions=parts, **named)])


async def produced(line: Line, request: ProduceRequest, version: int = 12) -> Any:
    return (await line.ask(ApiKey.PRODUCE, version, request)).responses[0].partition_responses[0]


async def fetched(line: Line, request: FetchRequest, version: int = 12) -> Any:
    return (await line.ask(ApiKey.FETCH, version, request)).responses[0].partitions[0]


@pytest.mark.parametrize("indexes", [(0,), (0, 1)])
async def test_a_producer_is_told_who_leads(indexes: tuple[int, ...]) -> None:
    async with serving() as (line, node):
        other = await SecondBroker.join(node, host="far", port=9, rack="r")
        topic_id = await other.create("orders", (2, 1), (1, 2))
        for version in range(3, 14):
            response = await line.ask(ApiKey.PRODUCE, version, produce(*indexes, topic_id=topic_id))
            answer, *led = response.responses[0].partition_responses
            assert (answer.error_code, [each.error_code for each in led]) == (NOT_LEADER, [0] * len(led))
            named = version >= 10
            assert (answer.current_leader is not None) == named
            assert len(response.node_endpoints) == named
            if named:
                (endpoint,) = response.node_endpoints
                assert (answer.current_leader.leader_id, answer.current_leader.leader_epoch) == (OTHER, 0)
                assert (endpoint.node_id, endpoint.host, endpoint.port, endpoint.rack) == (OTHER, "far", 9, "r")


@pytest.mark.parametrize("indexes", [(0,), (0, 1)])
async def test_a_consumer_is_told_who_leads(indexes: tuple[int, ...]) -> None:
    async with serving() as (line, node):
        other = await SecondBroker.join(node)
        topic_id = await other.create("orders", (2, 1), (1, 2))
        for version in range(4, 19):
            response = await line.ask(ApiKey.FETCH, version, fetch(*indexes, wait_ms=MINUTE_MS, topic_id=topic_id))
            answer = response.responses[0].partitions[0]
            assert answer.error_code == NOT_LEADER
            assert (answer.current_leader is not None) == (version >= 12)
            assert [(each.node_id, each.host) for each in response.node_endpoints] == [(OTHER, "other")] * (
                version >= 16
            )


async def test_where_nobody_leads_no_address_is_told() -> None:
    async with serving() as (line, node):
        other = await SecondBroker.join(node)
        await other.create("orders", (2,))
        await other.fence()
        response = await line.ask(ApiKey.PRODUCE, 12, produce(0))
        answer = response.responses[0].partition_responses[0]
        assert (answer.error_code, answer.current_leader.leader_id, response.node_endpoints) == (NOT_LEADER, -1, [])


async def test_a_consumer_of_an_earlier_epoch_is_told_the_present_one() -> None:
    async with serving() as (line, node):
        other = await SecondBroker.join(node)
        await other.create("orders", (2, 1))
        await other.fence()
        assert (await produced(line, produce(0))).error_code == ErrorCode.NONE
        fenced = await fetched(line, fetch(0, epoch=0))
        assert (fenced.error_code, fenced.current_leader.leader_epoch) == (ErrorCode.FENCED_LEADER_EPOCH, 1)
        unknown = await fetched(line, fetch(0, epoch=2))
        assert (unknown.error_code, unknown.current_leader) == (ErrorCode.UNKNOWN_LEADER_EPOCH, None)


@pytest.mark.parametrize("indexes", [(0,), (0, 1)])
async def test_a_leader_change_ends_what_waits_and_what_is_repeated(indexes: tuple[int, ...]) -> None:
    async with serving() as (line, node):
        other = await SecondBroker.join(node)
        await other.create("orders", (2, 1), (2, 1))
        await other.fence()
        for _ in range(3):  # the route is known from the first one on
            assert (await produced(line, produce(*indexes))).error_code == ErrorCode.NONE
            assert (await fetched(line, fetch(*indexes))).error_code == ErrorCode.NONE
        waiting = line.send(ApiKey.FETCH, 12, fetch(*indexes, offset=3, wait_ms=MINUTE_MS))
        await other.lead("orders")
        answer = (await waiting).responses[0].partitions[0]
        assert (answer.error_code, answer.current_leader.leader_id) == (NOT_LEADER, OTHER)
        assert (await produced(line, produce(*indexes))).error_code == NOT_LEADER
        assert (await fetched(line, fetch(*indexes))).error_code == NOT_LEADER
        await other.fence()
        back = await produced(line, produce(*indexes))
        assert (back.error_code, back.base_offset) == (ErrorCode.NONE, 3)
        assert (await fetched(line, fetch(*indexes))).high_watermark == 4


@pytest.mark.parametrize("indexes", [(0,), (0, 1)])
async def test_a_producer_that_waits_is_told_who_leads(indexes: tuple[int, ...]) -> None:
    universe = Universe()
    universe.workers = WorkersThatFlushSlowly(universe.random, "/orders-")
    async with serving(universe) as (line, node):
        other = await SecondBroker.join(node)
        await other.create("orders", (2, 1), (2, 1), durability="fsync")
        await other.fence()
        waiting = line.send(ApiKey.PRODUCE, 12, produce(*indexes))
        await other.lead("orders")
        answer = (await waiting).responses[0].partition_responses[0]
        assert (answer.error_code, answer.base_offset, answer.current_leader.leader_id) == (NOT_LEADER, -1, OTHER)


async def test_other_requests_are_refused_as_well() -> None:
    async with serving() as (line, node):
        other = await SecondBroker.join(node)
        await other.create("orders", (2, 1))
        listed = await line.ask(
            ApiKey.LIST_OFFSETS, 7, ListOffsetsRequest(topics=[ListOffsetsTopic("orders", [ListOffsetsPartition(0)])])
        )
        assert listed.topics[0].partitions[0].error_code == NOT_LEADER
        ended = await line.ask(
            ApiKey.OFFSET_FOR_LEADER_EPOCH,
            4,
            OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic("orders", [OffsetForLeaderPartition(0)])]),
        )
        assert ended.topics[0].partitions[0].error_code == NOT_LEADER
        deleted = await line.ask(
            ApiKey.DELETE_RECORDS,
            2,
            DeleteRecordsRequest([DeleteRecordsTopic("orders", [DeleteRecordsPartition(0, 0)])], 1000),
        )
        assert deleted.topics[0].partitions[0].error_code == NOT_LEADER
        described = await line.ask(
            ApiKey.DESCRIBE_PRODUCERS, 0, DescribeProducersRequest(topics=[TopicRequest("orders", [0])])
        )
        assert described.topics[0].partitions[0].error_code == NOT_LEADER
        marked = await line.ask(
            ApiKey.WRITE_TXN_MARKERS,
            1,
            WriteTxnMarkersRequest([WritableTxnMarker(7, 0, True, [WritableTxnMarkerTopic("orders", [0])], 0)]),
        )
        assert marked.markers[0].topics[0].partitions[0].error_code == NOT_LEADER
