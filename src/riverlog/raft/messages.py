"""What controllers say to each other, without the versions of the wire.

Each response tells the sender's view of epoch and leader, so that whoever is behind learns it from any exchange.
Records and bytes of snapshots are the driver's: a leader answers with a range of its log, and a follower is told which
batches have come.
"""

from dataclasses import dataclass
from typing import NamedTuple

from riverlog.model.endpoints import Endpoint
from riverlog.model.epochs import EpochEnd
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NO_OFFSET, Address, LeaderEpoch, NodeId, Offset
from riverlog.raft.log_tail import BEGINNING, SnapshotId
from riverlog.raft.voters import ReplicaKey, VoterSet


class Leadership(NamedTuple):
    """Who leads, and since when, as the sender of a response knows it; with the error of the response."""

    error: ErrorCode
    epoch: LeaderEpoch
    leader_id: NodeId | None = None
    address: Address | None = None
    """Where the leader listens, on the listener that was asked."""


class LogRange(NamedTuple):
    """Records to read from the log: whole batches from an offset on."""

    offset: Offset
    bytes_max: int


class SnapshotRange(NamedTuple):
    """Bytes to read from a snapshot."""

    snapshot: SnapshotId
    position: int
    bytes_max: int


class FetchedBatch(NamedTuple):
    """One batch that a follower was sent, as its header says; what it says of voters, where it is a control batch."""

    base_offset: Offset
    count: int  # type: ignore[assignment]  # nobody looks for values in a batch
    epoch: LeaderEpoch
    voters: tuple[tuple[Offset, VoterSet], ...] = ()
    kraft_versions: tuple[tuple[Offset, int], ...] = ()


class FetchedBatches(NamedTuple):
    """The batches of a Fetch response, and their bytes as the driver keeps them."""

    batches: tuple[FetchedBatch, ...]
    content: object


class VoteRequest(NamedTuple):
    """Ask for a vote, or, with `pre_vote`, whether one would be given (KIP-996)."""

    voter: ReplicaKey | None
    """Whom it is meant for; None where the sender does not say."""
    candidate: ReplicaKey
    epoch: LeaderEpoch
    last_epoch: LeaderEpoch
    last_offset: Offset
    pre_vote: bool


class VoteResponse(NamedTuple):
    leadership: Leadership
    granted: bool = False


class BeginEpochRequest(NamedTuple):
    """Announce to a voter who leads now."""

    voter: ReplicaKey | None
    leader_id: NodeId
    epoch: LeaderEpoch
    endpoints: tuple[Endpoint, ...]


class EndEpochRequest(NamedTuple):
    """Announce to a voter that the leader resigns; the first of the successors may stand for election at once."""

    leader_id: NodeId
    epoch: LeaderEpoch
    successors: tuple[ReplicaKey, ...]
    endpoints: tuple[Endpoint, ...]


class EpochResponse(NamedTuple):
    """The answer to BeginQuorumEpoch and to EndQuorumEpoch."""

    leadership: Leadership


class FetchRequest(NamedTuple):
    """Ask for records behind one's own; a voter has flushed all below `offset`."""

    replica: ReplicaKey
    epoch: LeaderEpoch
    offset: Offset
    last_epoch: LeaderEpoch
    high_watermark: Offset
    """What the follower knows; NO_OFFSET for nothing. A leader that knows more answers at once."""
    wait_seconds: float
    bytes_max: int


class FetchResponse(NamedTuple):
    leadership: Leadership
    high_watermark: Offset = NO_OFFSET
    """NO_OFFSET until the leader has committed something in its own epoch."""
    log_start: Offset = BEGINNING
    diverging: EpochEnd | None = None
    snapshot: SnapshotId | None = None
    records: LogRange | FetchedBatches | None = None


class FetchSnapshotRequest(NamedTuple):
    """Ask for bytes of a snapshot."""

    replica: ReplicaKey
    epoch: LeaderEpoch
    snapshot: SnapshotId
    position: int
    bytes_max: int


class FetchSnapshotResponse(NamedTuple):
    leadership: Leadership
    snapshot: SnapshotId | None = None
    size: int = 0
    position: int = 0
    content: SnapshotRange | bytes | None = None


class AddVoterRequest(NamedTuple):
    """Make an observer a voter."""

    voter: ReplicaKey
    endpoints: tuple[Endpoint, ...]
    ack_when_committed: bool = True


class RemoveVoterRequest(NamedTuple):
    """Make a voter an observer."""

    voter: ReplicaKey


class UpdateVoterRequest(NamedTuple):
    """Report to the leader where a voter listens now, and which levels of kraft.version it knows."""

    voter: ReplicaKey
    epoch: LeaderEpoch
    endpoints: tuple[Endpoint, ...]
    kraft_versions: tuple[int, int]


class VoterChangeResponse(NamedTuple):
    """The answer to a change of voters: an error, and the sentence that goes with it."""

    leadership: Leadership
    message: str | None = None


@dataclass(frozen=True, slots=True)
class VersionsRequest:
    """Ask a voter to be which levels of kraft.version it knows."""


class VersionsResponse(NamedTuple):
    kraft_versions: tuple[int, int] | None


Request = (
    VoteRequest
    | BeginEpochRequest
    | EndEpochRequest
    | FetchRequest
    | FetchSnapshotRequest
    | AddVoterRequest
    | RemoveVoterRequest
    | UpdateVoterRequest
)
"""What a node is asked."""

Response = VoteResponse | EpochResponse | FetchResponse | FetchSnapshotResponse | VoterChangeResponse
"""What it answers."""
