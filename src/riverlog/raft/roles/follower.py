"""The role of a replica that knows its leader: fetch, append, flush, fetch.

A Fetch from an offset says that all below is flushed here, so a controller asks for more only once that is so. A broker
need not: nobody counts its copy. What the leader does not have is cut off before anything else is asked for, and what
the leader has let go of comes as a snapshot, in chunks.
"""

from riverlog.model.errors import ErrorCode
from riverlog.model.ids import Address, NodeId, Offset
from riverlog.model.machine import Instant
from riverlog.raft.effects import Append, InstallSnapshot, Truncate, WriteSnapshot
from riverlog.raft.limits import SNAPSHOT_CHUNK_BYTES
from riverlog.raft.log_tail import SnapshotId
from riverlog.raft.messages import (
    AddVoterRequest,
    EndEpochRequest,
    FetchedBatches,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    RemoveVoterRequest,
    Request,
    Response,
    UpdateVoterRequest,
    VersionsResponse,
    VoterChangeResponse,
)
from riverlog.raft.replica import Replica
from riverlog.raft.roles.fetching import MetadataFetcher
from riverlog.raft.roles.role import counts
from riverlog.raft.transitions import AskForVotes, Transition
from riverlog.raft.voters import KRAFT_VERSIONS, RECONFIGURABLE, ReplicaKey


class Follower:
    """Copies the leader's log."""

    name = "Follower"

    def __init__(self, replica: Replica, leader_id: NodeId, address: Address, now: Instant) -> None:
        self.leader_id = leader_id
        self._replica = replica
        self._address = address
        self._election_at = Instant(now + replica.timing.fetch_timeout)
        self._fetcher = MetadataFetcher(replica, now, knows_leader=True)
        self._has_fetched = False
        """A voter that hears its leader would not vote for another one."""
        self._download: tuple[SnapshotId, int] | None = None
        """The snapshot that is being fetched, and how many of its bytes are here."""
        self._change_at = Instant(now + replica.timing.fetch_timeout)
        """When to look whether the voters name this node as it is."""
        self._change: int | None = None
        self._has_told_versions = False

    @property
    def deadline(self) -> Instant | None:
        fetch_at = self._fetcher.deadline if self._may_fetch else None
        waits = [self._election_at] if self._replica.stands_for_election else []
        if self._wants_change:
            waits.append(self._change_at)
        return min([*waits, *([] if fetch_at is None else [fetch_at])], default=None)

    def begin(self, now: Instant) -> Transition | None:
        return AskForVotes() if self._replica.is_only_voter else self.wake(now)

    def wake(self, now: Instant) -> Transition | None:
        if self._replica.stands_for_election and now >= self._election_at:
            if not self._replica.installing:
                return AskForVotes()
            self._election_at = Instant(now + self._replica.timing.retry_backoff)
        if self._wants_change and now >= self._change_at:
            self._ask_for_change(now)
        if self._may_fetch:
            self._fetcher.fetch(self._address, self.leader_id, now, self._snapshot_request())
        return None

    def grants(self, candidate: ReplicaKey, *, has_all: bool, pre_vote: bool) -> bool:
        return pre_vote and has_all and not self._has_fetched

    def leader_resigns(self, request: EndEpochRequest, now: Instant) -> None:
        """Stand for election soon: at once as the first of the successors, later as any other."""
        backoff, count = self._replica.timing.election_backoff_max, len(request.successors)
        places = [place for place, each in enumerate(request.successors) if each.is_met_by(self._replica.key)]
        if places and places[0] == 0:
            backoff = 0.0
        elif places:
            backoff = min(backoff, backoff * 2.0 ** (places[0] - count))
        self._election_at = min(self._election_at, Instant(now + backoff))
        self._has_fetched = False

    def leader_gone(self, number: int, now: Instant) -> None:
        """Stand for election soon if nobody listens where the leader was: its process has ended.

        Who is mistaken disturbs nobody: whoever hears the leader would not vote.
        """
        if self._fetcher.asks_leader(number):
            self._election_at = min(self._election_at, Instant(now + self._replica.random.random() * self._soon))
            self._has_fetched = False

    @property
    def _soon(self) -> float:
        return self._replica.timing.election_timeout / 2

    def heard_leader(self, now: Instant) -> None:
        """Wait anew: the leader has said that it leads."""
        self._election_at = Instant(now + self._replica.timing.fetch_timeout)

    def answered(self, number: int, response: Response | VersionsResponse, now: Instant) -> Transition | None:
        if number == self._change:
            self._change_answered(response)
            return self.wake(now)
        if not self._fetcher.is_under_way(number):
            return None
        match response:
            case FetchResponse() if counts(self._replica, response.leadership) and self._took(response):
                self._fetched(now)
            case FetchSnapshotResponse() if self._took_chunk(response):
                self._fetched(now)
            case _:
                self._fetcher.ended(number, now, elsewhere=True)
        return self.wake(now)

    def failed(self, number: int, now: Instant, *, unsupported: bool) -> Transition | None:
        if number == self._change:
            self._change = None
        self._fetcher.ended(number, now, elsewhere=True)
        return self.wake(now)

    def stalled(self, now: Instant) -> None:
        self._election_at = max(self._election_at, Instant(now + self._replica.timing.fetch_timeout / 2))

    # -- the log

    @property
    def _may_fetch(self) -> bool:
        replica = self._replica
        return not replica.installing and (not replica.may_vote or replica.log.flushed == replica.log.end)

    def _fetched(self, now: Instant) -> None:
        self._fetcher.succeeded()
        self._has_fetched = True
        self._election_at = Instant(now + self._replica.timing.fetch_timeout)

    def _took(self, response: FetchResponse) -> bool:
        """Bring the log in line with the leader's; return whether the response was of any use."""
        replica = self._replica
        if response.diverging is not None:
            end = replica.log.common_end(response.diverging)
            if end == replica.log.end:  # nothing diverges: asking again at once would be no use
                return False
            replica.truncate(end)
            replica.emit(Truncate(end))
            return True
        if response.snapshot is not None:
            if response.snapshot.end_offset <= replica.high_watermark:  # it could only take away what is committed
                return False
            self._download = (response.snapshot, 0)
            return True
        records = response.records
        if isinstance(records, FetchedBatches) and records.batches and not self._append(records):
            return False
        replica.commit(min(response.high_watermark, replica.log.end))
        return True

    def _append(self, fetched: FetchedBatches) -> bool:
        """Append batches that go on where the log ends; refuse the response where one does not."""
        log, epoch = self._replica.log, self._replica.epoch
        end, last_epoch = log.end, log.last_epoch
        for batch in fetched.batches:
            if batch.base_offset != end or batch.count <= 0 or not last_epoch <= batch.epoch <= epoch:
                return False
            end, last_epoch = Offset(end + batch.count), batch.epoch
        for batch in fetched.batches:
            log.append(batch.epoch, batch.count)
            for offset, version in batch.kraft_versions:
                self._replica.kraft_version.append(offset, version)
            for offset, voters in batch.voters:
                self._replica.note_voters(offset, voters)
        self._replica.emit(Append(fetched))
        return True

    # -- snapshots

    def _snapshot_request(self) -> Request | None:
        if self._download is None:
            return None
        snapshot, position = self._download
        return FetchSnapshotRequest(self._replica.key, self._replica.epoch, snapshot, position, SNAPSHOT_CHUNK_BYTES)

    def _took_chunk(self, response: FetchSnapshotResponse) -> bool:
        """Write bytes of the snapshot; install it with the last ones."""
        if self._download is None or response.leadership.epoch != self._replica.epoch:
            return False
        snapshot, position = self._download
        if response.leadership.error is ErrorCode.SNAPSHOT_NOT_FOUND or response.snapshot is None:
            self._download = None  # the leader has a newer one; a Fetch tells which
            return response.leadership.error in (ErrorCode.SNAPSHOT_NOT_FOUND, ErrorCode.NONE)
        content = response.content
        fits = response.snapshot == snapshot and response.position == position and isinstance(content, bytes)
        if response.leadership.error is not ErrorCode.NONE or not fits or not content:
            self._download = None
            return False
        assert isinstance(content, bytes)
        self._replica.emit(WriteSnapshot(snapshot, position, content))
        self._download = (snapshot, position + len(content))
        if position + len(content) >= response.size:
            self._download = None
            self._replica.installing = True
            self._replica.emit(InstallSnapshot(snapshot, response.size))
        return True

    # -- this node among the voters

    @property
    def _wants_change(self) -> bool:
        """Return whether the leader is to be told of this node: it moved, or it may join by itself."""
        replica = self._replica
        if self._change is not None or not replica.may_vote or not replica.endpoints:
            return False
        reconfigurable = replica.kraft_version.latest >= RECONFIGURABLE
        if replica.is_voter:
            known = replica.voters.latest.by_id[replica.key.id]
            return known != replica.as_voter if reconfigurable else not self._has_told_versions
        return replica.auto_join and reconfigurable

    def _ask_for_change(self, now: Instant) -> None:
        replica = self._replica
        self._change_at = Instant(now + replica.timing.fetch_timeout)
        request: Request
        if replica.is_voter:
            request = UpdateVoterRequest(replica.key, replica.epoch, replica.endpoints, KRAFT_VERSIONS)
        elif (old := replica.voters.latest.by_id.get(replica.key.id)) is not None:
            request = RemoveVoterRequest(old.key)  # its disk was replaced: the voter with the old one is gone
        else:
            request = AddVoterRequest(replica.key, replica.endpoints, ack_when_committed=False)
        self._change = replica.call(self._address, self.leader_id, request)

    def _change_answered(self, response: Response | VersionsResponse) -> None:
        self._change = None
        if isinstance(response, VoterChangeResponse):
            self._has_told_versions = response.leadership.error in (ErrorCode.NONE, ErrorCode.UNSUPPORTED_VERSION)
