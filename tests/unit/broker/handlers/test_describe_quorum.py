"""DescribeQuorum: a quorum of one."""

import pytest

from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from riverlog.wire.messages.describe_quorum import DescribeQuorumRequest, QuorumPartition, QuorumTopic
from tests.support.asking import serving
from tests.support.denial import deny

METADATA = DescribeQuorumRequest([QuorumTopic("__cluster_metadata", [QuorumPartition(0)])])


@pytest.mark.parametrize("version", range(3))
async def test_the_node_leads_and_votes(version: int) -> None:
    async with serving(node_id="3") as (line, _node):
        before = await line.ask(ApiKey.DESCRIBE_QUORUM, version, METADATA)
        (partition,) = before.topics[0].partitions
        assert (partition.error_code, partition.leader_id, partition.observers) == (ErrorCode.NONE, 3, [])
        assert partition.leader_epoch > 0
        (voter,) = partition.current_voters
        assert (voter.replica_id, voter.log_end_offset) == (3, partition.high_watermark)
        if version >= 2:
            assert [(each.name, each.host, each.port) for each in before.nodes[0].listeners] == [
                ("PLAINTEXT", "node", 9092)
            ]
            assert voter.replica_directory_id.int > 0
        await line.ask(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest([CreatableTopic("t")]))
        after = await line.ask(ApiKey.DESCRIBE_QUORUM, version, METADATA)
        assert after.topics[0].partitions[0].high_watermark > partition.high_watermark


async def test_nothing_else_is_voted_on() -> None:
    async with serving() as (line, _node):
        request = DescribeQuorumRequest([QuorumTopic("t", [QuorumPartition(0)])])
        response = await line.ask(ApiKey.DESCRIBE_QUORUM, 2, request)
        assert response.topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_not_everybody_may_see_the_quorum(monkeypatch: pytest.MonkeyPatch) -> None:
    deny(monkeypatch, Operation.DESCRIBE)
    async with serving() as (line, _node):
        response = await line.ask(ApiKey.DESCRIBE_QUORUM, 1, METADATA)
        assert (response.error_code, response.topics) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, [])
