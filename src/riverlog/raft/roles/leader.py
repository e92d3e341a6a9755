"""The role of the leader of an epoch: serve fetches, count what a majority has, change voters, resign when alone.

Nothing is committed by counting alone: the leader first has to commit a record of its own epoch (the batch with which
the epoch begins), and with it all that came before. Its own copy counts as far as it is flushed.
"""

from typing import NamedTuple

from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NO_OFFSET, NodeId, Offset
from riverlog.model.machine import Instant, Ticket
from riverlog.raft.effects import AppendControl
from riverlog.raft.limits import FETCH_WAIT_SECONDS_MAX, FETCHES_PARKED_MAX
from riverlog.raft.log_tail import Behind, Diverging
from riverlog.raft.messages import (
    AddVoterRequest,
    BeginEpochRequest,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    LogRange,
    RemoveVoterRequest,
    Response,
    SnapshotRange,
    UpdateVoterRequest,
    VersionsResponse,
)
from riverlog.raft.replica import Replica
from riverlog.raft.roles.progress import QuorumProgress
from riverlog.raft.roles.voter_changes import VoterChanges
from riverlog.raft.transitions import Resign, Transition
from riverlog.raft.voters import RECONFIGURABLE, ReplicaKey, VoterSet

_CHECK_QUORUM_FACTOR = 1.5
"""In fetch time-outs: how long a leader goes on without hearing a majority."""


class ParkedFetch(NamedTuple):
    """A Fetch that is answered when there is something to say, or its time is up."""

    request: FetchRequest
    deadline: Instant


class Leader:
    """Leads one epoch."""

    name = "Leader"

    def __init__(self, replica: Replica, elected_by: tuple[NodeId, ...], now: Instant) -> None:
        self._replica = replica
        self._elected_by = elected_by
        self.starts_at = replica.log.end
        """Where this epoch begins: the leader may decide once the record there is committed."""
        self.committed: Offset = NO_OFFSET
        """The high watermark as this leader tells it: nothing until it has committed in its own epoch."""
        self.progress = QuorumProgress(replica.key, replica.voters.latest)
        self._changes = VoterChanges(replica, self.progress, self)
        self._quorum_until = self._next_check(now)
        self._begin_at = now
        self._beginning: dict[int, NodeId] = {}
        self._parked: dict[Ticket, ParkedFetch] = {}
        self._resigns = False

    @property
    def deadline(self) -> Instant | None:
        waits = [self._begin_at, self._quorum_until] if self.progress.voters else []
        waits += [parked.deadline for parked in self._parked.values()]
        if self._changes.deadline is not None:
            waits.append(self._changes.deadline)
        return min(waits, default=None)

    def begin(self, now: Instant) -> Transition | None:
        """Append the batch with which the epoch begins, and tell the voters."""
        replica = self._replica
        voters, version = replica.voters.latest, replica.kraft_version.latest
        written_at = replica.voters.latest_offset
        # Below offset 0 is what a node was formatted with: whoever fetches the log from its beginning does not have it.
        is_in_log = written_at is not None and written_at >= 0
        is_news = not is_in_log or voters.by_id.get(replica.key.id) != replica.as_voter
        writes = version >= RECONFIGURABLE and replica.is_voter and is_news
        self._append_control(
            voters.with_voter(replica.as_voter) if writes else voters, elected_by=self._elected_by, writes_voters=writes
        )
        return self.wake(now)

    def wake(self, now: Instant) -> Transition | None:
        if self._resigns:
            return Resign()
        if self.progress.voters and now >= self._quorum_until:
            return Resign()
        if self.progress.voters and now >= self._begin_at:
            self._tell_silent_voters(now)
        self._changes.wake(now)
        for ticket in [ticket for ticket, parked in self._parked.items() if now >= parked.deadline]:
            self._replica.answer(ticket, self._answer_to(self._parked.pop(ticket).request))
        return None

    def grants(self, candidate: ReplicaKey, *, has_all: bool, pre_vote: bool) -> bool:
        return False

    def answered(self, number: int, response: Response | VersionsResponse, now: Instant) -> Transition | None:
        if self._beginning.pop(number, None) is None and isinstance(response, VersionsResponse):
            self._changes.answered(number, response, now)
        return self.wake(now)

    def failed(self, number: int, now: Instant, *, unsupported: bool) -> Transition | None:
        if self._beginning.pop(number, None) is None:
            self._changes.failed(number)
        return self.wake(now)

    def stalled(self, now: Instant) -> None:
        self._quorum_until = max(self._quorum_until, Instant(now + self._replica.timing.fetch_timeout / 2))

    def end(self) -> None:
        """Answer all who wait: this node leads no longer."""
        for ticket in self._parked:
            self._replica.answer(ticket, FetchResponse(self._replica.leadership(ErrorCode.NOT_LEADER_OR_FOLLOWER)))
        self._parked.clear()
        self._changes.lost()

    # -- the log

    def appended(self, count: int) -> None:
        """Note records of this epoch, and hand them on."""
        self._replica.log.append(self._replica.epoch, count)
        self._serve_parked()

    def flushed(self) -> Transition | None:
        """Count this leader's own copy."""
        self._count()
        return Resign() if self._resigns else None

    def write_voters(self, voters: VoterSet, now: Instant) -> Offset:
        """Append a record that changes the voters, and take it over at once."""
        if not self.progress.voters:  # nobody had to be heard; the first one who has to is given the time for it
            self._quorum_until = self._next_check(now)
        return self._append_control(voters, elected_by=None, writes_voters=True)

    def _append_control(
        self, voters: VoterSet, *, elected_by: tuple[NodeId, ...] | None, writes_voters: bool
    ) -> Offset:
        """Append a control batch; return the offset of its last record."""
        replica = self._replica
        base, level = replica.log.end, replica.kraft_version.latest
        begins = elected_by is not None
        writes_version = begins and writes_voters
        count = begins + writes_version + writes_voters
        replica.emit(
            AppendControl(
                base_offset=base,
                epoch=replica.epoch,
                elected_by=elected_by,
                leader_id=replica.key.id,
                voters=voters,
                kraft_version=level if writes_version else None,
                writes_voters=writes_voters,
            )
        )
        replica.log.append(replica.epoch, count)
        last = Offset(base + count - 1)
        if writes_version:
            replica.kraft_version.append(Offset(last - 1), level)
        if writes_voters:
            replica.note_voters(last, voters)
            self.progress.change(voters)
        self._serve_parked()
        return last

    def _count(self) -> None:
        """Commit what a majority has; end what was waiting for it."""
        reached = self.progress.majority_end(self._replica.log.flushed)
        if reached <= max(self.committed, self.starts_at):
            return
        self.committed = reached
        self._replica.commit(reached)
        self._changes.committed(reached)
        removed_at = self._replica.voters.latest_offset
        self._resigns = not self._replica.is_voter and removed_at is not None and removed_at < reached
        self._serve_parked()

    # -- fetches

    def fetch(self, ticket: Ticket, request: FetchRequest, now: Instant) -> Transition | None:
        """Answer a Fetch, now or when there is something to say."""
        replica = self._replica
        is_peer = request.replica.id >= 0 and request.replica.id != replica.key.id
        if is_peer and replica.log.compare(request.offset, request.last_epoch) is None:
            self.progress.fetched(request.replica, request.offset, replica.log.end, now)
            self._heard(request.replica, now)
            self._count()
        wait = min(request.wait_seconds, FETCH_WAIT_SECONDS_MAX)
        if wait <= 0 or self._has_news(request) or len(self._parked) >= FETCHES_PARKED_MAX:
            replica.answer(ticket, self._answer_to(request))
        else:
            self._parked[ticket] = ParkedFetch(request, Instant(now + wait))
        return Resign() if self._resigns else None

    def fetch_snapshot(self, ticket: Ticket, request: FetchSnapshotRequest, now: Instant) -> None:
        """Answer with a piece of a snapshot."""
        replica = self._replica
        size = replica.log.snapshots.get(request.snapshot)
        if size is None or request.snapshot.end_offset == 0:  # the one that a cluster begins with is in the log
            return replica.answer(ticket, FetchSnapshotResponse(replica.leadership(ErrorCode.SNAPSHOT_NOT_FOUND)))
        if not 0 <= request.position < size:
            return replica.answer(ticket, FetchSnapshotResponse(replica.leadership(ErrorCode.POSITION_OUT_OF_RANGE)))
        self._heard(request.replica, now)
        content = SnapshotRange(request.snapshot, request.position, request.bytes_max)
        leadership = replica.leadership()
        replica.answer(ticket, FetchSnapshotResponse(leadership, request.snapshot, size, request.position, content))
        return None

    def change_voters(
        self, ticket: Ticket, request: AddVoterRequest | RemoveVoterRequest | UpdateVoterRequest, now: Instant
    ) -> None:
        """Begin a change of voters."""
        match request:
            case AddVoterRequest():
                self._changes.add(ticket, request, self.committed, now)
            case RemoveVoterRequest():
                self._changes.remove(ticket, request, self.committed, now)
            case UpdateVoterRequest():
                self._changes.update(ticket, request, self.committed, now)

    def _has_news(self, request: FetchRequest) -> bool:
        log = self._replica.log
        return (
            request.offset < log.end
            or request.high_watermark < self.committed
            or log.compare(request.offset, request.last_epoch) is not None
        )

    def _answer_to(self, request: FetchRequest) -> FetchResponse:
        replica = self._replica
        leadership, start = replica.leadership(), replica.log.start
        match replica.log.compare(request.offset, request.last_epoch):
            case Diverging(end):
                return FetchResponse(leadership, self.committed, start, diverging=end)
            case Behind(snapshot):
                return FetchResponse(leadership, self.committed, start, snapshot=snapshot)
            case None:
                has_more = request.offset < replica.log.end
                records = LogRange(request.offset, request.bytes_max) if has_more else None
                return FetchResponse(leadership, self.committed, start, records=records)

    def _serve_parked(self) -> None:
        for ticket in [ticket for ticket, parked in self._parked.items() if self._has_news(parked.request)]:
            self._replica.answer(ticket, self._answer_to(self._parked.pop(ticket).request))

    # -- the voters

    def _heard(self, replica: ReplicaKey, now: Instant) -> None:
        if self.progress.hears_majority(replica):
            self._quorum_until = self._next_check(now)

    def _next_check(self, now: Instant) -> Instant:
        return Instant(now + self._replica.timing.fetch_timeout * _CHECK_QUORUM_FACTOR)

    def _tell_silent_voters(self, now: Instant) -> None:
        """Announce to voters that do not fetch who leads."""
        replica, interval = self._replica, self._replica.timing.fetch_timeout / 2
        self._begin_at = Instant(now + interval)
        for node in self.progress.silent_voters(now, interval):
            if node in self._beginning.values():
                continue
            voter = replica.voters.latest.by_id[node].key
            request = BeginEpochRequest(voter, replica.key.id, replica.epoch, replica.endpoints)
            number = replica.call_voter(node, request)
            if number is not None:
                self._beginning[number] = node
