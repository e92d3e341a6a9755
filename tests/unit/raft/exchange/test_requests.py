"""Requests between controllers arrive as they were meant, in every version."""

import pytest

from riverlog.model.errors import ErrorCode
from riverlog.model.ids import LeaderEpoch, NodeId, Offset
from riverlog.raft.exchange.requests import BadRequest, decode_request, encode_request
from riverlog.raft.exchange.responses import encode_refusal
from riverlog.raft.messages import (
    BeginEpochRequest,
    EndEpochRequest,
    FetchRequest,
    Request,
    VoteRequest,
)
from riverlog.raft.voters import ReplicaKey
from riverlog.wire.types import key_of
from tests.support.controllers import CLUSTER, REQUESTS, over_the_wire


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda request: type(request).__name__)
def test_a_request_arrives_as_it_was_meant(request_: Request) -> None:
    assert decode_request(over_the_wire(encode_request(request_, CLUSTER)), CLUSTER) == request_


def test_old_versions_leave_out_disks_and_addresses() -> None:
    def arrived(request: Request) -> Request:
        return decode_request(over_the_wire(encode_request(request, CLUSTER), 0), CLUSTER)

    assert arrived(REQUESTS[1]) == VoteRequest(
        None, ReplicaKey(NodeId(1)), LeaderEpoch(8), LeaderEpoch(6), Offset(1000), pre_vote=False
    )
    assert arrived(REQUESTS[2]) == BeginEpochRequest(None, NodeId(1), LeaderEpoch(7), ())
    ended = arrived(REQUESTS[3])
    assert isinstance(ended, EndEpochRequest)
    assert ended.successors == (ReplicaKey(NodeId(3)), ReplicaKey(NodeId(2)))


def test_a_follower_that_does_not_know_the_high_watermark_is_not_hurried() -> None:
    [fetch] = [each for each in REQUESTS if isinstance(each, FetchRequest) and each.offset == 1000]
    arrived = decode_request(over_the_wire(encode_request(fetch, CLUSTER), 17), CLUSTER)
    assert isinstance(arrived, FetchRequest)
    assert arrived.high_watermark == 2**63 - 1


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda request: type(request).__name__)
def test_another_cluster_is_refused(request_: Request) -> None:
    message = encode_request(request_, "another")
    with pytest.raises(BadRequest) as refused:
        decode_request(message, CLUSTER)
    assert refused.value.error is ErrorCode.INCONSISTENT_CLUSTER_ID
    refusal = encode_refusal(message, refused.value.error)
    assert key_of(type(refusal)) is key_of(type(message))
    assert over_the_wire(refusal).error_code == ErrorCode.INCONSISTENT_CLUSTER_ID


def test_another_log_is_refused() -> None:
    for request in REQUESTS:
        message = encode_request(request, CLUSTER)
        if not hasattr(message, "topics"):
            continue
        [topic] = message.topics
        for wrong in ([], [topic, topic]):
            message.topics = wrong
            with pytest.raises(BadRequest):
                decode_request(message, CLUSTER)
        message.topics = [topic]
        topic.partitions = []
        with pytest.raises(BadRequest):
            decode_request(message, CLUSTER)
