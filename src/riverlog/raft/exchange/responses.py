"""Responses between controllers, there and back: the machine's, and the wire's."""

from typing import Any, assert_never

from riverlog.model.epochs import EpochEnd
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import Address, LeaderEpoch, Offset
from riverlog.model.ports import Buffer, FileRange
from riverlog.raft.exchange.batches import fetched_batches
from riverlog.raft.exchange.log_name import METADATA_TOPIC, METADATA_TOPIC_ID, NOBODY, node_or_nobody, only
from riverlog.raft.log_tail import EPOCH_ZERO, SnapshotId
from riverlog.raft.messages import (
    EpochResponse,
    FetchResponse,
    FetchSnapshotResponse,
    Leadership,
    Response,
    VersionsResponse,
    VoterChangeResponse,
    VoteResponse,
)
from riverlog.wire.messages import (
    add_raft_voter,
    api_versions,
    begin_quorum_epoch,
    end_quorum_epoch,
    fetch,
    fetch_snapshot,
    remove_raft_voter,
    update_raft_voter,
    vote,
)
from riverlog.wire.messages.endpoints import NodeEndpoint

KRAFT_VERSION = "kraft.version"


class BadResponse(Exception):
    """A response that says nothing about the log that was asked for, or nothing that can be."""


class RequestRefused(BadResponse):
    """The sender takes no such request from this node."""

    def __init__(self, code: ErrorCode) -> None:
        super().__init__(f"refused: {code.name}")
        self.code = code


def encode_response(asked: Any, response: Response, content: Buffer | FileRange | None = None) -> Any:
    """Return the message that answers a request; `content` is what was read of log or snapshot."""
    heard = response.leadership
    match response:
        case VoteResponse(granted=granted):
            voted = vote.VotePartitionResult(0, heard.error, _leader(heard), heard.epoch, granted)
            topic = vote.VoteTopicResult(METADATA_TOPIC, [voted])
            return vote.VoteResponse(topics=[topic], node_endpoints=_endpoints(heard))
        case EpochResponse():
            return _epoch_response(asked, heard)
        case FetchResponse():
            return _fetch_response(asked, response, content)
        case FetchSnapshotResponse():
            return _snapshot_response(response, content)
        case VoterChangeResponse(message=message):
            return _change_response(asked, heard, message)
        case _:
            assert_never(response)


def encode_refusal(asked: Any, error: ErrorCode) -> Any:
    """Return the message that refuses all of a request."""
    match asked:
        case vote.VoteRequest():
            return vote.VoteResponse(error_code=error)
        case begin_quorum_epoch.BeginQuorumEpochRequest():
            return begin_quorum_epoch.BeginQuorumEpochResponse(error_code=error)
        case end_quorum_epoch.EndQuorumEpochRequest():
            return end_quorum_epoch.EndQuorumEpochResponse(error_code=error)
        case fetch.FetchRequest():
            return fetch.FetchResponse(error_code=error)
        case fetch_snapshot.FetchSnapshotRequest():
            return fetch_snapshot.FetchSnapshotResponse(error_code=error)
        case add_raft_voter.AddRaftVoterRequest():
            return add_raft_voter.AddRaftVoterResponse(error_code=error)
        case remove_raft_voter.RemoveRaftVoterRequest():
            return remove_raft_voter.RemoveRaftVoterResponse(error_code=error)
        case _:
            return update_raft_voter.UpdateRaftVoterResponse(error_code=error)


def decode_response(message: Any) -> Response | VersionsResponse:
    """Return what a message says; BadResponse, CorruptBatch or BadControlRecord where it cannot be used."""
    match message:
        case api_versions.ApiVersionsResponse():
            return _versions(message)
        case add_raft_voter.AddRaftVoterResponse() | remove_raft_voter.RemoveRaftVoterResponse():
            return VoterChangeResponse(Leadership(_error(message.error_code), EPOCH_ZERO), message.error_message)
        case update_raft_voter.UpdateRaftVoterResponse():
            return VoterChangeResponse(_leader_of_change(message))
        case _:
            return _of_partition(message)


def _of_partition(message: Any) -> Response:
    """Read a response that is about the log."""
    if message.error_code:
        raise RequestRefused(_error(message.error_code))
    topic = only(message.responses if isinstance(message, fetch.FetchResponse) else message.topics)
    partition = None if topic is None else only(topic.partitions)
    if partition is None:
        raise BadResponse("the response is about another log")
    match message:
        case fetch.FetchResponse():
            return _fetched(partition, message.node_endpoints)
        case fetch_snapshot.FetchSnapshotResponse():
            return _fetched_snapshot(partition, message.node_endpoints)
        case vote.VoteResponse():
            return VoteResponse(_leadership(partition, partition, message.node_endpoints), partition.vote_granted)
        case _:
            return EpochResponse(_leadership(partition, partition, message.node_endpoints))


# -- there


def _leader(heard: Leadership) -> int:
    return NOBODY if heard.leader_id is None else heard.leader_id


def _endpoints(heard: Leadership) -> list[NodeEndpoint]:
    if heard.leader_id is None or heard.address is None:
        return []
    return [NodeEndpoint(heard.leader_id, heard.address.host, heard.address.port)]


def _epoch_response(asked: Any, heard: Leadership) -> Any:
    said = (0, heard.error, _leader(heard), heard.epoch)
    if isinstance(asked, begin_quorum_epoch.BeginQuorumEpochRequest):
        begun = begin_quorum_epoch.BeginEpochTopicResult(
            METADATA_TOPIC, [begin_quorum_epoch.BeginEpochPartitionResult(*said)]
        )
        return begin_quorum_epoch.BeginQuorumEpochResponse(topics=[begun], node_endpoints=_endpoints(heard))
    ended = end_quorum_epoch.EndEpochTopicResult(METADATA_TOPIC, [end_quorum_epoch.EndEpochPartitionResult(*said)])
    return end_quorum_epoch.EndQuorumEpochResponse(topics=[ended], node_endpoints=_endpoints(heard))


def _fetch_response(asked: Any, response: FetchResponse, content: Buffer | FileRange | None) -> fetch.FetchResponse:
    heard, diverging, snapshot = response.leadership, response.diverging, response.snapshot
    partition = fetch.PartitionData(
        error_code=heard.error,
        high_watermark=response.high_watermark,
        log_start_offset=response.log_start,
        diverging_epoch=None if diverging is None else fetch.EpochEndOffset(diverging.epoch, diverging.end_offset),
        current_leader=fetch.LeaderIdAndEpoch(_leader(heard), heard.epoch),
        snapshot_id=None if snapshot is None else fetch.SnapshotId(*snapshot),
        records=b"" if content is None else content,
    )
    topic = fetch.FetchableTopicResponse(METADATA_TOPIC, METADATA_TOPIC_ID, [partition])
    nodes = [fetch.NodeEndpoint(each.node_id, each.host, each.port) for each in _endpoints(heard)]
    return fetch.FetchResponse(responses=[topic], node_endpoints=nodes)


def _snapshot_response(
    response: FetchSnapshotResponse, content: Buffer | FileRange | None
) -> fetch_snapshot.FetchSnapshotResponse:
    heard, snapshot = response.leadership, response.snapshot
    partition = fetch_snapshot.FetchSnapshotPartitionResult(
        error_code=heard.error,
        current_leader=fetch_snapshot.SnapshotLeader(_leader(heard), heard.epoch),
        size=response.size,
        position=response.position,
        unaligned_records=b"" if content is None else content,
    )
    if snapshot is not None:
        partition.snapshot_id = fetch_snapshot.SnapshotName(*snapshot)
    topic = fetch_snapshot.FetchSnapshotTopicResult(METADATA_TOPIC, [partition])
    return fetch_snapshot.FetchSnapshotResponse(topics=[topic], node_endpoints=_endpoints(heard))


def _change_response(asked: Any, heard: Leadership, message: str | None) -> Any:
    match asked:
        case add_raft_voter.AddRaftVoterRequest():
            return add_raft_voter.AddRaftVoterResponse(error_code=heard.error, error_message=message)
        case remove_raft_voter.RemoveRaftVoterRequest():
            return remove_raft_voter.RemoveRaftVoterResponse(error_code=heard.error, error_message=message)
        case _:
            leader = update_raft_voter.LeaderEndpoint(_leader(heard), heard.epoch)
            if heard.address is not None:
                leader.host, leader.port = heard.address
            return update_raft_voter.UpdateRaftVoterResponse(error_code=heard.error, current_leader=leader)


# -- back


def _error(code: int) -> ErrorCode:
    try:
        return ErrorCode(code)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR


def _leadership(partition: Any, leader: Any, nodes: Any) -> Leadership:
    """Return what a response says of epoch and leader; `leader` is None where it says nothing."""
    error = _error(partition.error_code)
    if leader is None or leader.leader_epoch < 0:
        return Leadership(error, EPOCH_ZERO)
    leader_id = node_or_nobody(leader.leader_id)
    address = next((Address(each.host, each.port) for each in nodes if each.node_id == leader_id), None)
    return Leadership(error, LeaderEpoch(leader.leader_epoch), leader_id, address)


def _fetched(partition: fetch.PartitionData, nodes: Any) -> FetchResponse:
    diverging, snapshot = partition.diverging_epoch, partition.snapshot_id
    assert not isinstance(partition.records, FileRange), "a response that has come is in memory"
    return FetchResponse(
        _leadership(partition, partition.current_leader, nodes),
        Offset(partition.high_watermark),
        Offset(partition.log_start_offset),
        None if diverging is None else EpochEnd(LeaderEpoch(diverging.epoch), Offset(diverging.end_offset)),
        None if snapshot is None else SnapshotId(Offset(snapshot.end_offset), LeaderEpoch(snapshot.epoch)),
        fetched_batches(partition.records) if partition.records else None,
    )


def _fetched_snapshot(partition: fetch_snapshot.FetchSnapshotPartitionResult, nodes: Any) -> FetchSnapshotResponse:
    name = partition.snapshot_id
    assert not isinstance(partition.unaligned_records, FileRange), "a response that has come is in memory"
    return FetchSnapshotResponse(
        _leadership(partition, partition.current_leader, nodes),
        SnapshotId(Offset(name.end_offset), LeaderEpoch(name.epoch)),
        partition.size,
        partition.position,
        bytes(partition.unaligned_records),
    )


def _leader_of_change(message: update_raft_voter.UpdateRaftVoterResponse) -> Leadership:
    leader, error = message.current_leader, _error(message.error_code)
    if leader is None or leader.leader_epoch < 0:
        return Leadership(error, EPOCH_ZERO)
    address = Address(leader.host, leader.port) if leader.host else None
    return Leadership(error, LeaderEpoch(leader.leader_epoch), node_or_nobody(leader.leader_id), address)


def _versions(message: api_versions.ApiVersionsResponse) -> VersionsResponse:
    if message.error_code:
        raise RequestRefused(_error(message.error_code))
    known = (each for each in message.supported_features if each.name == KRAFT_VERSION)
    return VersionsResponse(next(((each.min_version, each.max_version) for each in known), None))
