"""Requests that name very many things, to a whole node: others get their turn, and the answer is that of few."""

import asyncio
from dataclasses import fields, is_dataclass
from typing import Any, Final

import pytest

from riverlog.broker.limits import REQUEST_PORTION
from riverlog.records.batch import Compression
from riverlog.records.record import BatchBuilder
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from riverlog.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from riverlog.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from riverlog.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from riverlog.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from riverlog.wire.messages.describe_quorum import DescribeQuorumRequest, QuorumPartition, QuorumTopic
from riverlog.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest, TopicRequest
from riverlog.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from riverlog.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from riverlog.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from riverlog.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from riverlog.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from riverlog.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from riverlog.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tests.support.asking import serving
from tests.support.group_lines import commit, prepared

MANY: Final = 10 * REQUEST_PORTION
INDEXES: Final = list(range(MANY))
LARGE: Final[dict[str, tuple[ApiKey, int, Any]]] = {
    "fetch": (
        ApiKey.FETCH,
        12,
        FetchRequest(topics=[FetchTopic(topic="t", partitions=[FetchPartition(partition=each) for each in INDEXES])]),
    ),
    "offsets of many groups": (
        ApiKey.OFFSET_FETCH,
        8,
        OffsetFetchRequest(groups=[OffsetFetchRequestGroup(f"g{number}", topics=[]) for number in INDEXES]),
    ),
    "offsets forgotten": (
        ApiKey.OFFSET_DELETE,
        0,
        OffsetDeleteRequest(
            "g", [OffsetDeleteRequestTopic("t", [OffsetDeleteRequestPartition(each) for each in INDEXES])]
        ),
    ),
    "a transaction": (
        ApiKey.ADD_PARTITIONS_TO_TXN,
        3,
        AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="x", v3_and_below_topics=[AddPartitionsToTxnTopic("t", INDEXES)]
        ),
    ),
    "markers": (
        ApiKey.WRITE_TXN_MARKERS,
        1,
        WriteTxnMarkersRequest([WritableTxnMarker(1, 0, True, [WritableTxnMarkerTopic("t", INDEXES)], 0)]),
    ),
    "topics described": (
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        0,
        DescribeTopicPartitionsRequest(topics=[TopicRequest(f"u{number}") for number in INDEXES]),
    ),
    "topics grown": (
        ApiKey.CREATE_PARTITIONS,
        3,
        CreatePartitionsRequest([CreatePartitionsTopic(f"u{number}", 2, None) for number in INDEXES]),
    ),
    "leaders elected": (
        ApiKey.ELECT_LEADERS,
        2,
        ElectLeadersRequest(topic_partitions=[TopicPartitions("t", INDEXES)]),
    ),
    "partitions moved": (
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        1,
        AlterPartitionReassignmentsRequest(
            topics=[ReassignableTopic("t", [ReassignablePartition(each, None) for each in INDEXES])]
        ),
    ),
    "log directories": (
        ApiKey.ALTER_REPLICA_LOG_DIRS,
        2,
        AlterReplicaLogDirsRequest([AlterReplicaLogDir("/data", [AlterReplicaLogDirTopic("t", INDEXES)])]),
    ),
    "a quorum": (
        ApiKey.DESCRIBE_QUORUM,
        2,
        DescribeQuorumRequest([QuorumTopic("__cluster_metadata", [QuorumPartition(0)] * MANY)]),
    ),
}


async def counted(answered: "asyncio.Future[Any]") -> tuple[int, Any]:
    """Count the turns of the loop until an answer is there."""
    loop = asyncio.get_running_loop()
    turns = 0

    def turn() -> None:
        nonlocal turns
        turns += 1
        once()

    with pytest.MonkeyPatch.context() as patched:
        once = loop._run_once  # type: ignore[attr-defined]
        patched.setattr(loop, "_run_once", turn)
        answer = await answered
    return turns, answer


def _leaves(message: Any) -> int:
    """Count the parts of an answer that have no parts of their own."""
    lists = [found for each in vars_of(message) if isinstance(found := getattr(message, each), list)]
    return sum(_leaves(part) for found in lists for part in found if is_dataclass(part)) or 1


def vars_of(message: Any) -> list[str]:
    return [field.name for field in fields(message)]


@pytest.mark.parametrize("name", LARGE)
async def test_nobody_waits_for_a_large_request_as_a_whole(name: str) -> None:
    async with serving() as (line, node):
        await prepared(line, "t")
        await node.parts.transactions.ensure_topic()
        await commit(line, "t", 1)
        key, version, request = LARGE[name]
        few, _ = await counted(line.send(key, version, type(request)()))
        many, answer = await counted(line.send(key, version, request))
        assert many - few >= MANY // REQUEST_PORTION - 1
        assert _leaves(answer) >= MANY


@pytest.mark.parametrize("transactional_id", [None, "mine"])
@pytest.mark.parametrize(("settings", "one_by_one"), [({"cleanup.policy": "compact"}, True), ({}, False)])
async def test_batches_that_must_be_unfolded_are_taken_one_by_one(
    transactional_id: str | None, settings: dict[str, str], one_by_one: bool
) -> None:
    """Each may unfold to thousands of times what was sent."""
    count = 30
    builder = BatchBuilder(Compression.LZ4)
    builder.append(b"key", bytes(1_000), timestamp_ms=1_000)
    batch = bytes(builder.build())

    def batches(number: int) -> ProduceRequest:
        parts = [PartitionProduceData(index=index, records=memoryview(batch)) for index in range(number)]
        return ProduceRequest(transactional_id, -1, 1_000, [TopicProduceData(name="t", partition_data=parts)])

    async with serving() as (line, _node):
        configs = [CreatableTopicConfig(name, value) for name, value in settings.items()]
        topic = CreatableTopic("t", num_partitions=count, configs=configs)
        await line.ask(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest([topic]))
        for _ in range(2):  # not opened yet, then opened
            few, _ = await counted(line.send(ApiKey.PRODUCE, 9, batches(1)))
            many, answer = await counted(line.send(ApiKey.PRODUCE, 9, batches(count)))
            assert (many - few >= count - 1) is one_by_one
            assert {part.error_code for part in answer.responses[0].partition_responses} == {0}
            assert len(answer.responses[0].partition_responses) == count


async def test_a_topic_is_described_once_however_often_it_is_named() -> None:
    async with serving() as (line, _node):
        await prepared(line, "t", "u")
        for count in (2, MANY):
            asked = MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in ("u", "t") * count])
            assert [topic.name for topic in (await line.ask(ApiKey.METADATA, 12, asked)).topics] == ["u", "t"]
