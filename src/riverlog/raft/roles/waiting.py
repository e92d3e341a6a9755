"""The roles without a leader to fetch from: Unattached, which waits for one, and Resigned, which was one."""

from riverlog.model.errors import ErrorCode
from riverlog.model.ids import LeaderEpoch, NodeId
from riverlog.model.machine import Instant
from riverlog.raft.messages import EndEpochRequest, EpochResponse, Response, VersionsResponse
from riverlog.raft.replica import Replica
from riverlog.raft.roles.fetching import MetadataFetcher
from riverlog.raft.roles.role import counts, may_vote_for
from riverlog.raft.transitions import AskForVotes, Detach, Transition
from riverlog.raft.voters import ReplicaKey


class Unattached:
    """Waits for a leader, and asks the controllers of the settings for it; a voter stands for election in the end."""

    name = "Unattached"

    def __init__(self, replica: Replica, deadline: Instant, now: Instant) -> None:
        self._replica = replica
        self.election_at = deadline
        """When a voter stops waiting."""
        self._fetcher = MetadataFetcher(replica, now, knows_leader=False)

    @property
    def deadline(self) -> Instant | None:
        fetch_at = self._fetcher.deadline
        if not self._replica.stands_for_election:
            return fetch_at
        return self.election_at if fetch_at is None else min(self.election_at, fetch_at)

    def begin(self, now: Instant) -> Transition | None:
        return AskForVotes() if self._replica.is_only_voter else self.wake(now)

    def wake(self, now: Instant) -> Transition | None:
        if self._replica.stands_for_election and now >= self.election_at:
            if not self._replica.installing:
                return AskForVotes()
            self.election_at = Instant(now + self._replica.timing.retry_backoff)
        self._fetcher.ask_anybody(now)
        return None

    def grants(self, candidate: ReplicaKey, *, has_all: bool, pre_vote: bool) -> bool:
        return has_all if pre_vote else may_vote_for(self._replica.election, candidate, has_all=has_all)

    def voted(self, now: Instant) -> None:
        """Wait anew: who was voted for has as good a chance as this node."""
        self.election_at = Instant(now + self._replica.election_timeout())

    def answered(self, number: int, response: Response | VersionsResponse, now: Instant) -> Transition | None:
        self._fetcher.ended(number, now)
        return None

    def failed(self, number: int, now: Instant, *, unsupported: bool) -> Transition | None:
        self._fetcher.ended(number, now)
        return None

    def stalled(self, now: Instant) -> None:
        self.election_at = max(self.election_at, Instant(now + self._replica.timing.election_timeout))


class Resigned:
    """Was the leader of this epoch, and tells the voters so; after a while it waits for another epoch's."""

    name = "Resigned"

    def __init__(self, replica: Replica, successors: tuple[ReplicaKey, ...], deadline: Instant) -> None:
        self._replica = replica
        self._successors = successors
        self.election_at = deadline
        self._untold = {voter.key.id for voter in replica.voters.latest} - {replica.key.id}
        self._calls: dict[int, NodeId] = {}
        self._tell_at: Instant | None = None

    @property
    def deadline(self) -> Instant | None:
        waits = [] if self._replica.stopping else [self.election_at]
        return min([*waits, *([] if self._tell_at is None else [self._tell_at])], default=None)

    def begin(self, now: Instant) -> Transition | None:
        if self._replica.is_only_voter:
            return AskForVotes()
        self._tell(now)
        return None

    def wake(self, now: Instant) -> Transition | None:
        if now >= self.election_at and not self._replica.stopping:
            return Detach(LeaderEpoch(self._replica.epoch + 1))
        if self._tell_at is not None and now >= self._tell_at:
            self._tell(now)
        return None

    def grants(self, candidate: ReplicaKey, *, has_all: bool, pre_vote: bool) -> bool:
        return pre_vote and has_all

    def answered(self, number: int, response: Response | VersionsResponse, now: Instant) -> Transition | None:
        voter = self._calls.pop(number, None)
        if voter is None or not isinstance(response, EpochResponse):
            return None
        if counts(self._replica, response.leadership) or response.leadership.error is ErrorCode.INVALID_VOTER_KEY:
            self._untold.discard(voter)
        else:
            self._tell_at = Instant(now + self._replica.timing.retry_backoff)
        return None

    def failed(self, number: int, now: Instant, *, unsupported: bool) -> Transition | None:
        if self._calls.pop(number, None) is not None:
            self._tell_at = Instant(now + self._replica.timing.retry_backoff)
        return None

    def stalled(self, now: Instant) -> None:
        pass

    def _tell(self, now: Instant) -> None:
        self._tell_at = None
        replica = self._replica
        request = EndEpochRequest(replica.key.id, replica.epoch, self._successors, replica.endpoints)
        for voter in sorted(self._untold - set(self._calls.values())):
            number = replica.call_voter(voter, request)
            if number is not None:
                self._calls[number] = voter
