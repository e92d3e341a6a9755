"""What a replica must not forget about elections, and the count of votes in one of them."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from riverlog.model.ids import LeaderEpoch, NodeId
from riverlog.raft.log_tail import EPOCH_ZERO
from riverlog.raft.voters import ReplicaKey

EPOCH_MAX: Final = LeaderEpoch(2**31 - 1)
"""The last epoch that files and messages can name; nobody is followed so far, since nobody could come after."""


class ElectionState(NamedTuple):
    """The newest epoch, who leads in it, and for whom this replica has voted in it. On the medium before it counts."""

    epoch: LeaderEpoch = EPOCH_ZERO
    leader_id: NodeId | None = None
    voted_for: ReplicaKey | None = None


EPOCH_JUMP_MAX: Final = 1_000_000
"""How far ahead an epoch may be that a peer names in a request: who asks its leader learns of any. Without a bound one
mistaken request would use all epochs up."""


@dataclass(slots=True)
class Votes:
    """The votes of one election, or of the question that precedes it."""

    voters: frozenset[NodeId]
    granted: set[NodeId] = field(default_factory=set)
    rejected: set[NodeId] = field(default_factory=set)

    @classmethod
    def among(cls, voters: Iterable[NodeId], own: NodeId) -> "Votes":
        """Begin with one's own vote; that of a node that is being removed does not count."""
        votes = cls(frozenset(voters))
        votes.granted |= votes.voters & {own}
        return votes

    @property
    def majority(self) -> int:
        return len(self.voters) // 2 + 1

    @property
    def won(self) -> bool:
        return len(self.granted) >= self.majority

    @property
    def lost(self) -> bool:
        return len(self.voters) - len(self.rejected) < self.majority

    @property
    def missing(self) -> frozenset[NodeId]:
        """Return who has not said anything."""
        return self.voters - self.granted - self.rejected

    def count(self, voter: NodeId, *, granted: bool) -> None:
        """Count a voter's answer; the first one holds."""
        if voter in self.missing:
            (self.granted if granted else self.rejected).add(voter)
