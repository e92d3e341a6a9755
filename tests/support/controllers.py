"""What controllers say to each other, by the wire: one request of each kind, and its way."""

from typing import Any

from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NO_OFFSET, LeaderEpoch, NodeId, Offset
from riverlog.raft.log_tail import SnapshotId
from riverlog.raft.messages import (
    AddVoterRequest,
    BeginEpochRequest,
    EndEpochRequest,
    FetchRequest,
    FetchSnapshotRequest,
    Leadership,
    RemoveVoterRequest,
    Request,
    UpdateVoterRequest,
    VoteRequest,
)
from riverlog.wire.apis import API_BY_KEY
from riverlog.wire.codec import decode, encode
from riverlog.wire.types import key_of
from tests.support.raft import address, endpoints, key

CLUSTER = "aCluster"
SNAPSHOT = SnapshotId(Offset(900), LeaderEpoch(3))
HEARD = Leadership(ErrorCode.NONE, LeaderEpoch(7), NodeId(2), address(2))
UNKNOWN = Leadership(ErrorCode.NOT_LEADER_OR_FOLLOWER, LeaderEpoch(8))

REQUESTS: list[Request] = [
    VoteRequest(key(2), key(1), LeaderEpoch(7), LeaderEpoch(6), Offset(1000), pre_vote=True),
    VoteRequest(key(2), key(1), LeaderEpoch(8), LeaderEpoch(6), Offset(1000), pre_vote=False),
    BeginEpochRequest(key(2), NodeId(1), LeaderEpoch(7), endpoints(1)),
    EndEpochRequest(NodeId(1), LeaderEpoch(7), (key(3), key(2)), endpoints(1)),
    FetchRequest(key(2), LeaderEpoch(7), Offset(1000), LeaderEpoch(6), Offset(990), 0.15, 8_000_000),
    FetchRequest(key(2), LeaderEpoch(0), Offset(0), LeaderEpoch(0), NO_OFFSET, 0.0, 1),
    FetchSnapshotRequest(key(2), LeaderEpoch(7), SNAPSHOT, 4096, 1_000_000),
    AddVoterRequest(key(4), endpoints(4), ack_when_committed=False),
    AddVoterRequest(key(4), endpoints(4)),
    RemoveVoterRequest(key(4)),
    UpdateVoterRequest(key(2), LeaderEpoch(7), endpoints(2), (0, 1)),
]


def over_the_wire(message: Any, version: int | None = None) -> Any:
    """Write a message and read it again, in the newest version unless said otherwise."""
    api = API_BY_KEY[key_of(type(message))]
    version = api.versions.max if version is None else version
    return decode(type(message), version, encode(message, version))[0]
