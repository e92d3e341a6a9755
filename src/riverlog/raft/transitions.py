"""From one role to the next, as a role asks for it; the machine carries it out.

Unattached --time is up--> Prospective --a majority would vote--> Candidate --a majority has voted--> Leader
    ^                         |    ^                                  |                                  |
    |                         |    +---------- time is up ------------+                                  v
    +--- nobody would vote ---+                                                                      Resigned
    +--- a higher epoch, from every role; from Resigned after a while -----------------------------------+
Follower: whoever hears of a leader; after a time without a Fetch it becomes Prospective
"""

from dataclasses import dataclass

from riverlog.model.ids import Address, LeaderEpoch, NodeId


@dataclass(frozen=True, slots=True)
class Detach:
    """Wait in this epoch without a leader to fetch from."""

    epoch: LeaderEpoch
    leader_id: NodeId | None = None


@dataclass(frozen=True, slots=True)
class Follow:
    """Fetch from this epoch's leader."""

    epoch: LeaderEpoch
    leader_id: NodeId
    address: Address


@dataclass(frozen=True, slots=True)
class AskForVotes:
    """Ask who would vote for this node, before it begins an epoch."""


@dataclass(frozen=True, slots=True)
class Campaign:
    """Begin an epoch and ask for votes."""


@dataclass(frozen=True, slots=True)
class Lead:
    """Lead the epoch that was campaigned for."""

    elected_by: tuple[NodeId, ...]


@dataclass(frozen=True, slots=True)
class Resign:
    """Lead no longer; these may follow, the one with the longest log first."""


Transition = Detach | Follow | AskForVotes | Campaign | Lead | Resign
