"""How far the replicas of the metadata log are, as their leader sees it, and what a majority of the voters has."""

from dataclasses import dataclass

from riverlog.model.ids import NO_OFFSET, NodeId, Offset
from riverlog.model.machine import Instant
from riverlog.raft.limits import OBSERVER_FORGOTTEN_SECONDS, OBSERVERS_MAX, VOTER_CAUGHT_UP_SECONDS
from riverlog.raft.voters import ReplicaKey, VoterSet


@dataclass(slots=True)
class ReplicaProgress:
    """What a replica's fetches have told."""

    key: ReplicaKey
    end: Offset = NO_OFFSET
    """A voter has flushed everything below."""
    fetched_at: Instant | None = None
    caught_up_at: Instant | None = None
    leader_end: Offset = NO_OFFSET
    """Where the leader's log ended when it fetched last."""

    def fetched(self, offset: Offset, leader_end: Offset, now: Instant) -> None:
        """Note a Fetch. Who is where the leader was at the Fetch before was caught up then."""
        if offset >= leader_end:
            self.caught_up_at = now
        elif self.fetched_at is not None and 0 < self.leader_end <= offset:
            self.caught_up_at = max(self.caught_up_at or self.fetched_at, self.fetched_at)
        self.leader_end = leader_end
        self.fetched_at = now
        self.end = offset


class QuorumProgress:
    """The progress of all replicas but the leader itself."""

    def __init__(self, leader: ReplicaKey, voters: VoterSet) -> None:
        self._leader = leader
        self.voters: dict[NodeId, ReplicaProgress] = {}
        self.observers: dict[ReplicaKey, ReplicaProgress] = {}
        self._leader_votes = False
        self._heard: set[NodeId] = set()
        """Voters that have fetched since a majority was last complete."""
        self.change(voters)

    @property
    def majority(self) -> int:
        return (len(self.voters) + self._leader_votes) // 2 + 1

    def change(self, voters: VoterSet) -> None:
        """Take over who votes: a new voter is known as an observer, a former one becomes one."""
        before = {progress.key: progress for progress in (*self.voters.values(), *self.observers.values())}
        self._leader_votes = voters.includes(self._leader)
        self.voters = {}
        for voter in voters:
            if voter.key.is_met_by(self._leader):
                continue
            known = next((progress for key, progress in before.items() if voter.key.is_met_by(key)), None)
            self.voters[voter.key.id] = known or ReplicaProgress(voter.key)
        taken = {progress.key for progress in self.voters.values()}
        self.observers = {key: progress for key, progress in before.items() if key not in taken}
        self._heard &= self.voters.keys()

    def fetched(self, replica: ReplicaKey, offset: Offset, leader_end: Offset, now: Instant) -> None:
        """Note a replica's Fetch."""
        progress = self._of(replica)
        if progress is None:
            self._forget_observers(now)
            progress = self.observers[replica] = ReplicaProgress(replica)
        progress.fetched(offset, leader_end, now)

    def hears_majority(self, replica: ReplicaKey) -> bool:
        """Note that a replica was heard; return whether a majority was, since this was last so."""
        voter = self.voters.get(replica.id)
        if voter is None or not voter.key.is_met_by(replica):
            return False
        self._heard.add(replica.id)
        if len(self._heard) + self._leader_votes < self.majority:
            return False
        self._heard.clear()
        return True

    def majority_end(self, own_flushed: Offset) -> Offset:
        """Return the offset below which a majority of the voters has everything on its medium."""
        ends = [progress.end for progress in self.voters.values()]
        if self._leader_votes:
            ends.append(own_flushed)
        return sorted(ends, reverse=True)[self.majority - 1]

    def silent_voters(self, now: Instant, seconds: float) -> list[NodeId]:
        """Name the voters that have not fetched for so long."""
        return [
            node
            for node, progress in self.voters.items()
            if progress.fetched_at is None or now - progress.fetched_at >= seconds
        ]

    def successors(self) -> tuple[ReplicaKey, ...]:
        """Name the voters, the one with the longest log first."""
        ranked = sorted(self.voters.values(), key=lambda progress: (-progress.end, progress.key.id))
        return tuple(progress.key for progress in ranked)

    def is_caught_up(self, replica: ReplicaKey, now: Instant) -> bool:
        """Return whether an observer may become a voter without holding the others up."""
        progress = self.observers.get(replica)
        return (
            progress is not None
            and progress.caught_up_at is not None
            and progress.fetched_at is not None
            and now - progress.fetched_at < VOTER_CAUGHT_UP_SECONDS
        )

    def _of(self, replica: ReplicaKey) -> ReplicaProgress | None:
        voter = self.voters.get(replica.id)
        if voter is not None and voter.key.is_met_by(replica):
            return voter
        return self.observers.get(replica)

    def _forget_observers(self, now: Instant) -> None:
        """Forget who is gone; and who was silent for longest, where there are too many."""
        gone = [
            key
            for key, progress in self.observers.items()
            if progress.fetched_at is None or now - progress.fetched_at >= OBSERVER_FORGOTTEN_SECONDS
        ]
        if not gone and len(self.observers) >= OBSERVERS_MAX:
            gone = [min(self.observers, key=lambda key: self.observers[key].fetched_at or now)]
        for key in gone:
            del self.observers[key]
