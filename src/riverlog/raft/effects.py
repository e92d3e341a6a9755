"""What Raft asks of its driver. The order is part of it: an effect is begun when those before it are done.

`SaveElection`, `Truncate` and `InstallSnapshot` are done when they are on the medium; no answer may overtake them.
`Append` and `AppendControl` are done when the log has the records; the driver flushes it and says how far by `Flushed`.
"""

from dataclasses import dataclass

from riverlog.model.ids import Address, LeaderEpoch, NodeId, Offset
from riverlog.model.machine import Ticket
from riverlog.raft.election import ElectionState
from riverlog.raft.log_tail import SnapshotId
from riverlog.raft.messages import FetchedBatches, Request, Response, VersionsRequest
from riverlog.raft.voters import VoterSet


@dataclass(frozen=True, slots=True)
class SaveElection:
    """Write the file `quorum-state`, durably."""

    election: ElectionState
    kraft_version: int


@dataclass(frozen=True, slots=True)
class Call:
    """Send a request; the driver says how it ended by `Answered` or `CallFailed`, with this number."""

    number: int
    address: Address
    node: NodeId | None
    """Who is expected there; None for an address of which only the settings know."""
    request: Request | VersionsRequest


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer a request of a peer."""

    ticket: Ticket
    response: Response


@dataclass(frozen=True, slots=True)
class Append:
    """Append what the leader sent; say so by `Flushed` once it is on the medium."""

    fetched: FetchedBatches


@dataclass(frozen=True, slots=True)
class AppendControl:
    """Append one control batch as leader: who was elected by whom, and, where they are to be written, the voters."""

    base_offset: Offset
    epoch: LeaderEpoch
    elected_by: tuple[NodeId, ...] | None
    """Who voted for the leader; None where the batch does not begin an epoch."""
    leader_id: NodeId
    voters: VoterSet
    kraft_version: int | None
    """The level to write, before the voters."""
    writes_voters: bool


@dataclass(frozen=True, slots=True)
class Truncate:
    """Cut the log off, durably: what the leader does not have."""

    end: Offset


@dataclass(frozen=True, slots=True)
class WriteSnapshot:
    """Write bytes of a snapshot that is being fetched, from this position on; 0 begins it anew."""

    snapshot: SnapshotId
    position: int
    content: bytes


@dataclass(frozen=True, slots=True)
class InstallSnapshot:
    """Put the snapshot that was fetched in the place of the whole log, durably; then say `SnapshotInstalled`."""

    snapshot: SnapshotId
    size: int


@dataclass(frozen=True, slots=True)
class Committed:
    """All records below are committed, and stay."""

    high_watermark: Offset


@dataclass(frozen=True, slots=True)
class LeaderChanged:
    """Another epoch, or another leader. Who leads here may decide once its first record is committed."""

    epoch: LeaderEpoch
    leader_id: NodeId | None


Effect = (
    SaveElection
    | Call
    | Answer
    | Append
    | AppendControl
    | Truncate
    | WriteSnapshot
    | InstallSnapshot
    | Committed
    | LeaderChanged
)
