"""What Raft is told by its driver."""

from dataclasses import dataclass
from typing import NamedTuple

from riverlog.model.ids import Offset
from riverlog.model.machine import Ticket
from riverlog.raft.log_tail import SnapshotId
from riverlog.raft.messages import Request, Response, VersionsResponse
from riverlog.raft.voters import VoterSet


class Asked(NamedTuple):
    """A peer, or somebody who administers, has sent a request; it is answered by its ticket."""

    ticket: Ticket
    request: Request


class Answered(NamedTuple):
    """The response to a call has come."""

    number: int
    response: Response | VersionsResponse


class CallFailed(NamedTuple):
    """No response will come: no connection, no time left, or the peer does not know the request."""

    number: int
    unsupported: bool = False
    refused: bool = False
    """Nobody listens there: the peer's process is gone."""


class Appended(NamedTuple):
    """This leader's log has taken records of its own."""

    count: int  # type: ignore[assignment]  # nobody looks for values in an event


class Flushed(NamedTuple):
    """Everything below is on the medium; said after every flush, and after the log was cut off."""

    end: Offset
    generation: int
    """That of the log's tail when the flush began."""


class SnapshotTaken(NamedTuple):
    """A snapshot of committed records was written here, and is on the medium."""

    snapshot: SnapshotId
    size: int


class LogShortened(NamedTuple):
    """Records below were deleted from the log, and older snapshots; one that ends there stands for them."""

    start: Offset


class SnapshotInstalled(NamedTuple):
    """The snapshot that was fetched has taken the place of the log."""

    snapshot: SnapshotId
    size: int
    voters: VoterSet | None
    """What it says of voters; None where it says nothing."""
    kraft_version: int


@dataclass(frozen=True, slots=True)
class SnapshotRefused:
    """The snapshot that was fetched is not whole; the log stays as it is."""


@dataclass(frozen=True, slots=True)
class Woken:
    """A deadline may have come."""


@dataclass(frozen=True, slots=True)
class Stalled:
    """This node did nothing for so long that it must not count the silence of others."""


@dataclass(frozen=True, slots=True)
class Stopping:
    """The node is about to stop in good order."""


Event = (
    Asked
    | Answered
    | CallFailed
    | Appended
    | Flushed
    | SnapshotTaken
    | LogShortened
    | SnapshotInstalled
    | SnapshotRefused
    | Woken
    | Stalled
    | Stopping
)
