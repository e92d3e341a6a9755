"""Raft's own requests on the listener for controllers."""

from typing import Any

import pytest

from riverlog.model.errors import ErrorCode
from riverlog.model.ids import LeaderEpoch, Offset
from riverlog.raft.exchange.requests import encode_request
from riverlog.raft.messages import FetchRequest, VoteRequest
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.remove_raft_voter import RemoveRaftVoterRequest
from tests.support.clusters import CLUSTER_ID, controller_line
from tests.support.raft import key
from tests.support.virtual_time import run

FETCH = FetchRequest(key(7), LeaderEpoch(1), Offset(0), LeaderEpoch(0), Offset(-1), 0.0, 1_000_000)


def test_an_observer_is_sent_the_log_and_told_who_leads() -> None:
    async def scenario() -> None:
        async with controller_line() as (line, cluster):
            response = await line.ask(ApiKey.FETCH, 18, encode_request(FETCH, CLUSTER_ID))
            [topic] = response.responses
            [partition] = topic.partitions
            assert partition.error_code == ErrorCode.NONE
            assert (partition.current_leader.leader_id, partition.current_leader.leader_epoch) == (1, 1)
            assert [(each.node_id, each.host, each.port) for each in response.node_endpoints] == [(1, "n1", 9093)]
            assert partition.high_watermark == cluster.nodes[1].controller.end_offset
            assert len(partition.records) > 100

    run(scenario())


@pytest.mark.parametrize(
    ("version", "request_", "code"),
    [
        (2, VoteRequest(key(1), key(9), LeaderEpoch(1), LeaderEpoch(1), Offset(999), True), ErrorCode.NONE),
        (2, VoteRequest(key(9), key(7), LeaderEpoch(2), LeaderEpoch(1), Offset(9), False), ErrorCode.INVALID_VOTER_KEY),
    ],
)
def test_a_vote_is_answered_by_the_quorum(version: int, request_: VoteRequest, code: ErrorCode) -> None:
    async def scenario() -> None:
        async with controller_line() as (line, _cluster):
            response = await line.ask(ApiKey.VOTE, version, encode_request(request_, CLUSTER_ID))
            assert response.error_code == ErrorCode.NONE
            assert response.topics[0].partitions[0].error_code == code
            assert not response.topics[0].partitions[0].vote_granted

    run(scenario())


def test_another_cluster_or_log_is_refused() -> None:
    async def scenario() -> None:
        async with controller_line() as (line, _cluster):
            response = await line.ask(ApiKey.FETCH, 18, encode_request(FETCH, "anotherCluster"))
            assert response.error_code == ErrorCode.INCONSISTENT_CLUSTER_ID
            message: Any = encode_request(FETCH, CLUSTER_ID)
            message.topics[0].topic_id, message.topics[0].topic = key(3).directory_id, "orders"
            response = await line.ask(ApiKey.FETCH, 18, message)
            assert response.error_code == ErrorCode.INVALID_REQUEST
            gone = RemoveRaftVoterRequest(CLUSTER_ID, 7, key(7).directory_id)
            response = await line.ask(ApiKey.REMOVE_RAFT_VOTER, 0, gone)
            assert response.error_code == ErrorCode.VOTER_NOT_FOUND
            assert "Node 7" in response.error_message

    run(scenario())
