"""ElectLeaders on a node that leads everything."""

import pytest

from riverlog.broker.handlers.elect_leaders import _why_not
from riverlog.metadata.image import PartitionImage
from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import LeaderEpoch, NodeId
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from riverlog.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from tests.support.asking import serving
from tests.support.denial import deny


@pytest.mark.parametrize("version", range(3))
async def test_the_leader_is_there_already(version: int) -> None:
    async with serving() as (line, _node):
        await line.ask(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest([CreatableTopic("t", 2)]))
        asked = ElectLeadersRequest(topic_partitions=[TopicPartitions("t", [0, 2]), TopicPartitions("u", [0])])
        response = await line.ask(ApiKey.ELECT_LEADERS, version, asked)
        assert response.error_code == ErrorCode.NONE
        codes = {
            (topic.topic, each.partition_id): each.error_code
            for topic in response.replica_election_results
            for each in topic.partition_result
        }
        assert codes == {
            ("t", 0): ErrorCode.ELECTION_NOT_NEEDED,
            ("t", 2): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ("u", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }
        everything = await line.ask(ApiKey.ELECT_LEADERS, version, ElectLeadersRequest())
        assert everything.replica_election_results == []


async def test_an_unknown_kind_of_election_is_refused() -> None:
    async with serving() as (line, _node):
        request = ElectLeadersRequest(election_type=2, topic_partitions=[TopicPartitions("t", [0])])
        response = await line.ask(ApiKey.ELECT_LEADERS, 2, request)
        assert response.error_code == ErrorCode.INVALID_REQUEST


async def test_not_everybody_may_hold_elections(monkeypatch: pytest.MonkeyPatch) -> None:
    deny(monkeypatch, Operation.ALTER)
    async with serving() as (line, _node):
        request = ElectLeadersRequest(topic_partitions=[TopicPartitions("t", [0])])
        (topic,) = (await line.ask(ApiKey.ELECT_LEADERS, 0, request)).replica_election_results
        assert topic.partition_result[0].error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


@pytest.mark.parametrize(
    ("leader", "election_type", "code"),
    [
        (0, 0, ErrorCode.ELECTION_NOT_NEEDED),
        (1, 0, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE),
        (1, 1, ErrorCode.ELECTION_NOT_NEEDED),
        (-1, 0, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE),
        (-1, 1, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE),
    ],
)
def test_why_no_election_is_held(leader: int, election_type: int, code: ErrorCode) -> None:
    replicas = (NodeId(0), NodeId(1))
    partition = PartitionImage(0, replicas, replicas, NodeId(leader), LeaderEpoch(0), 0, ())
    assert _why_not(partition, election_type).code is code
