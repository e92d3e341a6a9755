"""What Raft asks of its driver. The order is part of it: an effect is begun when those before it are done.

`SaveElection`, `Truncate` and `InstallSnapshot` are done when they are on the medium; no answer may overtake them.
`Append` and `AppendControl` are done when the log has the records; the driver flushes it and says how far by `Flushed`.
"""

from typing import NamedTuple

from riverlog.model.ids import Address, LeaderEpoch, NodeId, Offset
from riverlog.model.machine import Ticket
from riverlog.raft.election import ElectionState
from riverlog.raft.log_tail import SnapshotId
from riverlog.raft.messages import FetchedBatches, Request, Response, VersionsRequest
from riverlog.raft.voters import VoterSet


class SaveElection(NamedTuple):
    """Write the file `quorum-state`, durably."""

    election: ElectionState
    kraft_version: int


class Call(NamedTuple):
    """Send a request; the driver says how it ended by `Answered` or `CallFailed`, with this number."""

    number: int
    address: Address
    node: NodeId | None
    """Who is expected there; None for an address of which only the settings know."""
    request: Request | VersionsRequest


class Answer(NamedTuple):
    """Answer a request of a peer."""

    ticket: Ticket
    response: Response


class Append(NamedTuple):
    """Append what the leader sent; say so by `Flushed` once it is on the medium."""

    fetched: FetchedBatches


class AppendControl(NamedTuple):
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


class Truncate(NamedTuple):
    """Cut the log off, durably: what the leader does not have."""

    end: Offset


class WriteSnapshot(NamedTuple):
    """Write bytes of a snapshot that is being fetched, from this position on; 0 begins it anew."""

    snapshot: SnapshotId
    position: int
    content: bytes


class InstallSnapshot(NamedTuple):
    """Put the snapshot that was fetched in the place of the whole log, durably; then say `SnapshotInstalled`."""

    snapshot: SnapshotId
    size: int


class Committed(NamedTuple):
    """All records below are committed, and stay."""

    high_watermark: Offset


class LeaderChanged(NamedTuple):
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
