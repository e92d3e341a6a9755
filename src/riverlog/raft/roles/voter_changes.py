"""Changes of the voters, one at a time, by the leader (KIP-853).

A change begins only when the one before is committed, and this leader has committed something in its own epoch: so the
majorities of both sets of voters always overlap. The new set holds as soon as it is in the log.
"""

from dataclasses import dataclass
from typing import Protocol

from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NO_OFFSET, Offset
from riverlog.model.machine import Instant, Ticket
from riverlog.raft.limits import VOTERS_MAX
from riverlog.raft.messages import (
    AddVoterRequest,
    RemoveVoterRequest,
    UpdateVoterRequest,
    VersionsRequest,
    VersionsResponse,
    VoterChangeResponse,
)
from riverlog.raft.replica import Replica
from riverlog.raft.roles.progress import QuorumProgress
from riverlog.raft.voters import RECONFIGURABLE, Voter, VoterSet, address_on


class VotersWriter(Protocol):
    """Who appends the record that changes the voters: the leader."""

    def write_voters(self, voters: VoterSet, now: Instant) -> Offset:
        """Append the record and take it over; return its offset."""
        ...


@dataclass(slots=True)
class PendingChange:
    """The change that is under way."""

    ticket: Ticket | None
    """Who waits for it; None once he was answered."""
    deadline: Instant
    added: AddVoterRequest | None = None
    """The voter that was asked which levels it knows; None once the record is written."""
    call: int | None = None
    offset: Offset = NO_OFFSET
    """Of the record, once it is written."""


class VoterChanges:
    """Adds, removes and updates voters."""

    def __init__(self, replica: Replica, progress: QuorumProgress, writer: VotersWriter) -> None:
        self._replica = replica
        self._progress = progress
        self._writer = writer
        self._pending: PendingChange | None = None

    @property
    def deadline(self) -> Instant | None:
        return None if self._pending is None else self._pending.deadline

    def add(self, ticket: Ticket, request: AddVoterRequest, committed: Offset, now: Instant) -> None:
        """Begin to make an observer a voter: ask it whether it can follow changes of voters."""
        address = address_on(request.endpoints, self._replica.listener)
        if request.voter.directory_id is None or address is None:
            what = f"an address on the listener {self._replica.listener} and the id of its log directory"
            return self._refuse(ticket, ErrorCode.INVALID_REQUEST, f"A voter to be added needs {what}.")
        if self._is_held_up(ticket, committed, now):
            return None
        voters = self._replica.voters.latest
        if request.voter.id in voters.by_id:
            what = f"Node {request.voter.id} is a voter already; remove that one first if its disk was replaced."
            return self._refuse(ticket, ErrorCode.DUPLICATE_VOTER, what)
        if len(voters) >= VOTERS_MAX:
            return self._refuse(ticket, ErrorCode.INVALID_REQUEST, f"There are {VOTERS_MAX} voters; no more may be.")
        number = self._replica.call(address, request.voter.id, VersionsRequest())
        self._pending = PendingChange(ticket, self._until(now), request, number)
        return None

    def remove(self, ticket: Ticket, request: RemoveVoterRequest, committed: Offset, now: Instant) -> None:
        """Make a voter an observer."""
        if self._is_held_up(ticket, committed, now):
            return None
        voters = self._replica.voters.latest
        if request.voter.directory_id is None or not voters.includes(request.voter):
            names = ", ".join(str(each.key) for each in voters)
            what = f"Node {request.voter} is not among the voters: {names}."
            return self._refuse(ticket, ErrorCode.VOTER_NOT_FOUND, what)
        if len(voters) == 1:
            return self._refuse(ticket, ErrorCode.INVALID_REQUEST, "The last voter cannot be removed.")
        offset = self._writer.write_voters(voters.without(request.voter), now)
        self._pending = PendingChange(ticket, self._until(now), offset=offset)
        return None

    def update(self, ticket: Ticket, request: UpdateVoterRequest, committed: Offset, now: Instant) -> None:
        """Note where a voter listens now."""
        if self._replica.kraft_version.latest < RECONFIGURABLE:
            return self._answer(ticket, ErrorCode.NONE)  # the settings say where voters are
        if self._is_held_up(ticket, committed, now):
            return None
        voters = self._replica.voters.latest
        low, high = request.kraft_versions
        can_be_reached = address_on(request.endpoints, self._replica.listener) is not None
        if not (low <= self._replica.kraft_version.latest <= high and can_be_reached):
            return self._refuse(ticket, ErrorCode.INVALID_REQUEST, "The voter cannot be reached, or is too old.")
        if request.voter.directory_id is None or not voters.includes(request.voter):
            return self._refuse(ticket, ErrorCode.VOTER_NOT_FOUND, f"Node {request.voter} is not among the voters.")
        voter = Voter(request.voter, request.endpoints, request.kraft_versions)
        offset = self._writer.write_voters(voters.with_voter(voter), now)
        self._answer(ticket, ErrorCode.NONE)
        self._pending = PendingChange(None, self._until(now), offset=offset)
        return None

    def answered(self, number: int, response: VersionsResponse, now: Instant) -> None:
        """Add the voter, if it can follow changes of voters and is caught up."""
        pending = self._pending
        if pending is None or pending.call != number or pending.added is None:
            return None
        added, versions = pending.added, response.kraft_versions or (0, 0)
        level = self._replica.kraft_version.latest
        if not versions[0] <= level <= versions[1]:
            what = f"Node {added.voter} knows kraft.version {versions[0]} to {versions[1]}, and {level} is in use."
            return self._end(ErrorCode.INVALID_REQUEST, what)
        if not self._progress.is_caught_up(added.voter, now):
            return self._end(ErrorCode.REQUEST_TIMED_OUT, f"Node {added.voter} has not caught up with the log yet.")
        voter = Voter(added.voter, added.endpoints, versions)
        pending.offset = self._writer.write_voters(self._replica.voters.latest.with_voter(voter), now)
        pending.added = pending.call = None
        if not added.ack_when_committed and pending.ticket is not None:
            self._answer(pending.ticket, ErrorCode.NONE)
            pending.ticket = None
        return None

    def failed(self, number: int) -> None:
        """Drop the change whose voter could not be asked."""
        if self._pending is not None and self._pending.call == number:
            self._end(ErrorCode.REQUEST_TIMED_OUT, "The node to be added does not answer.")

    def committed(self, high_watermark: Offset) -> None:
        """End the change whose record is committed."""
        pending = self._pending
        if pending is not None and NO_OFFSET < pending.offset < high_watermark:
            self._end(ErrorCode.NONE)

    def wake(self, now: Instant) -> None:
        """Answer who has waited for too long; a record that is written stays, and may be committed yet."""
        if self._pending is not None and now >= self._pending.deadline:
            self._end(ErrorCode.REQUEST_TIMED_OUT, "The change could not be committed in time; it may be later.")

    def lost(self) -> None:
        """Answer whoever waits: this node leads no longer."""
        self._end(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def _is_held_up(self, ticket: Ticket, committed: Offset, now: Instant) -> bool:
        """Refuse a change that must wait for another one."""
        written_at = self._replica.voters.latest_offset
        if self._replica.kraft_version.latest < RECONFIGURABLE:
            what = "The voters are those of controller.quorum.voters as long as kraft.version is 0."
            self._refuse(ticket, ErrorCode.UNSUPPORTED_VERSION, what)
        elif self._pending is not None:
            self._refuse(ticket, ErrorCode.REQUEST_TIMED_OUT, "Another change of voters is under way; try again.")
        elif committed == NO_OFFSET or written_at is None or written_at >= committed:
            self._refuse(
                ticket, ErrorCode.REQUEST_TIMED_OUT, "The last change of voters is not committed yet; try again."
            )
        else:
            return False
        return True

    def _until(self, now: Instant) -> Instant:
        return Instant(now + self._replica.timing.request_timeout)

    def _end(self, error: ErrorCode, message: str | None = None) -> None:
        pending, self._pending = self._pending, None
        if pending is not None and pending.ticket is not None:
            self._answer(pending.ticket, error, message)

    def _refuse(self, ticket: Ticket, error: ErrorCode, message: str) -> None:
        self._answer(ticket, error, message)

    def _answer(self, ticket: Ticket, error: ErrorCode, message: str | None = None) -> None:
        self._replica.answer(ticket, VoterChangeResponse(self._replica.leadership(error), message))
