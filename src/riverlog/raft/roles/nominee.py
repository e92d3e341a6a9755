"""The roles that ask for votes: Prospective, which asks whether it would be elected, and Candidate, which wants to be.

The question costs nobody anything, the election an epoch: a voter that was cut off alone never gets past the question,
and does not disturb a leader that the others hear (KIP-996).
"""

from riverlog.model.ids import NodeId
from riverlog.model.machine import Instant
from riverlog.raft.election import Votes
from riverlog.raft.messages import Response, VersionsResponse, VoteRequest, VoteResponse
from riverlog.raft.replica import Replica
from riverlog.raft.roles.role import counts, may_vote_for
from riverlog.raft.transitions import AskForVotes, Campaign, Detach, Follow, Lead, Transition
from riverlog.raft.voters import ReplicaKey


class VoteRound:
    """Asks each voter until it has said yes or no."""

    def __init__(self, replica: Replica, *, pre_vote: bool) -> None:
        self.votes = Votes.among(replica.voters.latest.ids, replica.key.id)
        self._replica = replica
        self._pre_vote = pre_vote
        self._calls: dict[int, NodeId] = {}
        self.ask_at: Instant | None = None

    def ask(self) -> None:
        """Ask whoever has not said anything, and is not asked yet."""
        self.ask_at = None
        if self.votes.lost:
            return
        replica = self._replica
        for voter in sorted(self.votes.missing - set(self._calls.values())):
            known = replica.voters.latest.by_id.get(voter)
            if known is None:
                continue
            request = VoteRequest(
                known.key, replica.key, replica.epoch, replica.log.last_epoch, replica.log.end, self._pre_vote
            )
            number = replica.call_voter(voter, request)
            if number is not None:
                self._calls[number] = voter

    def answered(self, number: int, response: Response | VersionsResponse, now: Instant) -> None:
        """Count a vote; who could not say is asked again."""
        voter = self._calls.pop(number, None)
        if voter is None or not isinstance(response, VoteResponse):
            return
        if counts(self._replica, response.leadership):
            self.votes.count(voter, granted=response.granted)
        else:
            self._ask_again(now)

    def failed(self, number: int, now: Instant) -> bool:
        """Ask again after a while; return whether this round had asked."""
        if self._calls.pop(number, None) is None:
            return False
        self._ask_again(now)
        return True

    def next(self, deadline: Instant) -> Instant:
        """Return when to go on."""
        return deadline if self.ask_at is None else min(deadline, self.ask_at)

    def _ask_again(self, now: Instant) -> None:
        self.ask_at = Instant(now + self._replica.timing.retry_backoff)


class Prospective:
    """Asks who would vote for it; nothing is promised, and no epoch begun."""

    name = "Prospective"

    def __init__(self, replica: Replica, deadline: Instant) -> None:
        self._replica = replica
        self.election_at = deadline
        self._round = VoteRound(replica, pre_vote=True)

    @property
    def deadline(self) -> Instant | None:
        return self._round.next(self.election_at)

    @property
    def was_rejected(self) -> bool:
        """Return whether a majority would not vote for this node."""
        return self._round.votes.lost

    def begin(self, now: Instant) -> Transition | None:
        if self._round.votes.won:
            return Campaign()
        self._round.ask()
        return None

    def wake(self, now: Instant) -> Transition | None:
        if now >= self.election_at:
            return self._give_up()
        if self._round.ask_at is not None and now >= self._round.ask_at:
            self._round.ask()
        return None

    def grants(self, candidate: ReplicaKey, *, has_all: bool, pre_vote: bool) -> bool:
        return has_all if pre_vote else may_vote_for(self._replica.election, candidate, has_all=has_all)

    def voted(self, now: Instant) -> None:
        """Wait anew: who was voted for has as good a chance as this node."""
        self.election_at = Instant(now + self._replica.election_timeout())

    def answered(self, number: int, response: Response | VersionsResponse, now: Instant) -> Transition | None:
        self._round.answered(number, response, now)
        if self._round.votes.won:
            return Campaign()
        return self._give_up() if self._round.votes.lost else None

    def failed(self, number: int, now: Instant, *, unsupported: bool) -> Transition | None:
        if self._round.failed(number, now) and unsupported:
            return Campaign()  # this voter cannot be asked, only be told
        return None

    def stalled(self, now: Instant) -> None:
        self.election_at = max(self.election_at, Instant(now + self._replica.timing.election_timeout))

    def _give_up(self) -> Transition:
        """Go back to the leader that is known, or wait for one."""
        replica = self._replica
        if replica.leader_id is not None and replica.leader_address is not None:
            return Follow(replica.epoch, replica.leader_id, replica.leader_address)
        return Detach(replica.epoch, replica.leader_id)


class Candidate:
    """Has begun an epoch with its own vote, and asks for those of the others."""

    name = "Candidate"

    def __init__(self, replica: Replica, deadline: Instant) -> None:
        self.election_at = deadline
        self._replica = replica
        self._round = VoteRound(replica, pre_vote=False)

    @property
    def deadline(self) -> Instant | None:
        return self._round.next(self.election_at)

    def begin(self, now: Instant) -> Transition | None:
        if self._round.votes.won:
            return self._won()
        self._round.ask()
        return None

    def wake(self, now: Instant) -> Transition | None:
        if now >= self.election_at:
            return AskForVotes() if self._replica.stands_for_election else Detach(self._replica.epoch)
        if self._round.ask_at is not None and now >= self._round.ask_at:
            self._round.ask()
        return None

    def grants(self, candidate: ReplicaKey, *, has_all: bool, pre_vote: bool) -> bool:
        return pre_vote and has_all

    def answered(self, number: int, response: Response | VersionsResponse, now: Instant) -> Transition | None:
        self._round.answered(number, response, now)
        return self._won() if self._round.votes.won else None  # who has lost waits until its time is up

    def failed(self, number: int, now: Instant, *, unsupported: bool) -> Transition | None:
        self._round.failed(number, now)
        return None

    def stalled(self, now: Instant) -> None:
        self.election_at = max(self.election_at, Instant(now + self._replica.timing.election_timeout))

    def _won(self) -> Transition:
        return Lead(tuple(sorted(self._round.votes.granted)))
