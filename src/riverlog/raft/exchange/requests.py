"""Requests between controllers, there and back: the machine's, and the wire's."""

from typing import Any, assert_never

from riverlog.model.errors import ErrorCode
from riverlog.model.ids import LeaderEpoch, NodeId, Offset
from riverlog.raft.exchange.log_name import (
    METADATA_TOPIC,
    METADATA_TOPIC_ID,
    NOBODY,
    directory_of,
    endpoints_of,
    listeners_of,
    only,
    replica_key,
)
from riverlog.raft.log_tail import SnapshotId
from riverlog.raft.messages import (
    AddVoterRequest,
    BeginEpochRequest,
    EndEpochRequest,
    FetchRequest,
    FetchSnapshotRequest,
    RemoveVoterRequest,
    Request,
    UpdateVoterRequest,
    VersionsRequest,
    VoteRequest,
)
from riverlog.wire.messages import begin_quorum_epoch, end_quorum_epoch, fetch, fetch_snapshot, vote
from riverlog.wire.messages.add_raft_voter import AddRaftVoterRequest
from riverlog.wire.messages.api_versions import OWN_SOFTWARE, ApiVersionsRequest
from riverlog.wire.messages.remove_raft_voter import RemoveRaftVoterRequest
from riverlog.wire.messages.update_raft_voter import KRaftVersions, UpdateRaftVoterRequest

_ADD_TIMEOUT_MS = 30_000
_MILLISECONDS = 1000


class BadRequest(Exception):
    """A request that no controller can mean, with the error that answers all of it."""

    def __init__(self, error: ErrorCode) -> None:
        super().__init__(error.name)
        self.error = error


def encode_request(request: Request | VersionsRequest, cluster_id: str) -> Any:
    """Return the message that says this."""
    match request:
        case VoteRequest():
            return _vote(request, cluster_id)
        case BeginEpochRequest(voter, leader_id, epoch, endpoints):
            begun = begin_quorum_epoch.BeginEpochPartition(0, directory_of(voter), leader_id, epoch)
            return begin_quorum_epoch.BeginQuorumEpochRequest(
                cluster_id,
                NOBODY if voter is None else voter.id,
                [begin_quorum_epoch.BeginEpochTopic(METADATA_TOPIC, [begun])],
                listeners_of(endpoints),
            )
        case EndEpochRequest(leader_id, epoch, successors, endpoints):
            candidates = [end_quorum_epoch.EpochCandidate(each.id, directory_of(each)) for each in successors]
            ids = [each.id for each in successors]
            ended = end_quorum_epoch.EndEpochPartition(0, leader_id, epoch, list(ids), candidates)
            return end_quorum_epoch.EndQuorumEpochRequest(
                cluster_id, [end_quorum_epoch.EndEpochTopic(METADATA_TOPIC, [ended])], listeners_of(endpoints)
            )
        case FetchRequest():
            return _fetch(request, cluster_id)
        case FetchSnapshotRequest():
            return _fetch_snapshot(request, cluster_id)
        case AddVoterRequest(voter, endpoints, ack_when_committed):
            return AddRaftVoterRequest(
                cluster_id, _ADD_TIMEOUT_MS, voter.id, directory_of(voter), listeners_of(endpoints), ack_when_committed
            )
        case RemoveVoterRequest(voter):
            return RemoveRaftVoterRequest(cluster_id, voter.id, directory_of(voter))
        case UpdateVoterRequest(voter, epoch, endpoints, versions):
            return UpdateRaftVoterRequest(
                cluster_id, epoch, voter.id, directory_of(voter), listeners_of(endpoints), KRaftVersions(*versions)
            )
        case VersionsRequest():
            return ApiVersionsRequest(OWN_SOFTWARE, "0")
        case _:
            assert_never(request)


def decode_request(message: Any, cluster_id: str) -> Request:
    """Return what a message says; BadRequest where it is of another cluster or speaks of another log."""
    if message.cluster_id is not None and message.cluster_id != cluster_id:
        raise BadRequest(ErrorCode.INCONSISTENT_CLUSTER_ID)
    match message:
        case AddRaftVoterRequest():
            key = replica_key(message.voter_id, message.voter_directory_id)
            return AddVoterRequest(key, endpoints_of(message.listeners), message.ack_when_committed)
        case RemoveRaftVoterRequest():
            return RemoveVoterRequest(replica_key(message.voter_id, message.voter_directory_id))
        case UpdateRaftVoterRequest():
            known = message.k_raft_version_feature
            return UpdateVoterRequest(
                replica_key(message.voter_id, message.voter_directory_id),
                LeaderEpoch(message.current_leader_epoch),
                endpoints_of(message.listeners),
                (known.min_supported_version, known.max_supported_version),
            )
        case _:
            return _of_partition(message, _partition_of(message))


def _of_partition(message: Any, partition: Any) -> Request:
    match message:
        case vote.VoteRequest():
            return VoteRequest(
                None if message.voter_id < 0 else replica_key(message.voter_id, partition.voter_directory_id),
                replica_key(partition.replica_id, partition.replica_directory_id),
                LeaderEpoch(partition.replica_epoch),
                LeaderEpoch(partition.last_offset_epoch),
                Offset(partition.last_offset),
                partition.pre_vote,
            )
        case begin_quorum_epoch.BeginQuorumEpochRequest():
            return BeginEpochRequest(
                None if message.voter_id < 0 else replica_key(message.voter_id, partition.voter_directory_id),
                NodeId(partition.leader_id),
                LeaderEpoch(partition.leader_epoch),
                endpoints_of(message.leader_endpoints),
            )
        case end_quorum_epoch.EndQuorumEpochRequest():
            candidates = partition.preferred_candidates
            successors = [replica_key(each.candidate_id, each.candidate_directory_id) for each in candidates]
            return EndEpochRequest(
                NodeId(partition.leader_id),
                LeaderEpoch(partition.leader_epoch),
                tuple(successors or (replica_key(each, directory_of(None)) for each in partition.preferred_successors)),
                endpoints_of(message.leader_endpoints),
            )
        case fetch.FetchRequest():
            state = message.replica_state
            known = partition.high_watermark
            return FetchRequest(
                replica_key(message.replica_id if state is None else state.replica_id, partition.replica_directory_id),
                LeaderEpoch(partition.current_leader_epoch),
                Offset(partition.fetch_offset),
                LeaderEpoch(partition.last_fetched_epoch),
                Offset(known),
                max(0, message.max_wait_ms) / _MILLISECONDS,
                min(message.max_bytes, partition.partition_max_bytes),
            )
        case fetch_snapshot.FetchSnapshotRequest():
            wanted = partition.snapshot_id
            return FetchSnapshotRequest(
                replica_key(message.replica_id, partition.replica_directory_id),
                LeaderEpoch(partition.current_leader_epoch),
                SnapshotId(Offset(wanted.end_offset), LeaderEpoch(wanted.epoch)),
                partition.position,
                message.max_bytes,
            )
        case _:
            raise AssertionError(f"no controller is sent {type(message).__name__}")


def _vote(request: VoteRequest, cluster_id: str) -> vote.VoteRequest:
    partition = vote.VotePartition(
        replica_epoch=request.epoch,
        replica_id=request.candidate.id,
        replica_directory_id=directory_of(request.candidate),
        voter_directory_id=directory_of(request.voter),
        last_offset_epoch=request.last_epoch,
        last_offset=request.last_offset,
        pre_vote=request.pre_vote,
    )
    voter_id = NOBODY if request.voter is None else request.voter.id
    return vote.VoteRequest(cluster_id, voter_id, [vote.VoteTopic(METADATA_TOPIC, [partition])])


def _fetch(request: FetchRequest, cluster_id: str) -> fetch.FetchRequest:
    partition = fetch.FetchPartition(
        current_leader_epoch=request.epoch,
        fetch_offset=request.offset,
        last_fetched_epoch=request.last_epoch,
        partition_max_bytes=request.bytes_max,
        replica_directory_id=directory_of(request.replica),
        high_watermark=request.high_watermark,
    )
    return fetch.FetchRequest(
        cluster_id=cluster_id,
        replica_id=request.replica.id,
        replica_state=fetch.ReplicaState(request.replica.id),
        max_wait_ms=round(request.wait_seconds * _MILLISECONDS),
        max_bytes=request.bytes_max,
        topics=[fetch.FetchTopic(METADATA_TOPIC, METADATA_TOPIC_ID, [partition])],
    )


def _fetch_snapshot(request: FetchSnapshotRequest, cluster_id: str) -> fetch_snapshot.FetchSnapshotRequest:
    partition = fetch_snapshot.FetchSnapshotPartition(
        current_leader_epoch=request.epoch,
        snapshot_id=fetch_snapshot.SnapshotName(*request.snapshot),
        position=request.position,
        replica_directory_id=directory_of(request.replica),
    )
    topics = [fetch_snapshot.FetchSnapshotTopic(METADATA_TOPIC, [partition])]
    return fetch_snapshot.FetchSnapshotRequest(cluster_id, request.replica.id, request.bytes_max, topics)


def _partition_of(message: Any) -> Any:
    """Find the one partition that a message is about; BadRequest where it is about anything else."""
    topic = only(message.topics)
    partition = None if topic is None else only(topic.partitions)
    if partition is None:
        raise BadRequest(ErrorCode.INVALID_REQUEST)
    match topic:
        case fetch.FetchTopic():
            index, is_ours = partition.partition, topic.topic_id == METADATA_TOPIC_ID or topic.topic == METADATA_TOPIC
        case fetch_snapshot.FetchSnapshotTopic():
            index, is_ours = partition.partition, topic.name == METADATA_TOPIC
        case _:
            index, is_ours = partition.partition_index, topic.topic_name == METADATA_TOPIC
    if index != 0 or not is_ours:
        raise BadRequest(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_ours else ErrorCode.INVALID_REQUEST)
    return partition
