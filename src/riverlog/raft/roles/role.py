"""What every role can be asked, and what most of them answer."""

from typing import Protocol

from riverlog.model.errors import ErrorCode
from riverlog.model.machine import Instant
from riverlog.raft.election import EPOCH_MAX, ElectionState
from riverlog.raft.messages import Leadership, Response, VersionsResponse
from riverlog.raft.replica import Replica
from riverlog.raft.transitions import Detach, Follow, Transition
from riverlog.raft.voters import ReplicaKey


class Role(Protocol):
    """One role in one epoch; another epoch has another one."""

    @property
    def name(self) -> str:
        """Return the name by which metrics and status show it, Kafka's."""
        ...

    @property
    def deadline(self) -> Instant | None:
        """Return when to wake it."""
        ...

    def begin(self, now: Instant) -> Transition | None:
        """Do what the role begins with."""
        ...

    def wake(self, now: Instant) -> Transition | None:
        """Do what is due."""
        ...

    def grants(self, candidate: ReplicaKey, *, has_all: bool, pre_vote: bool) -> bool:
        """Decide about a vote; `has_all` says that the candidate's log has all that this one has."""
        ...

    def answered(self, number: int, response: Response | VersionsResponse, now: Instant) -> Transition | None:
        """Take the response to a call; what it says of leaders is learnt already."""
        ...

    def failed(self, number: int, now: Instant, *, unsupported: bool) -> Transition | None:
        """Go on after a call without a response."""
        ...

    def stalled(self, now: Instant) -> None:
        """Wait anew for those whose silence this node could not have heard."""
        ...


def may_vote_for(election: ElectionState, candidate: ReplicaKey, *, has_all: bool) -> bool:
    """Return whether the vote of this epoch may go to a candidate: to the first whose log has all, and to no other."""
    if election.voted_for is not None:
        return election.voted_for.is_met_by(candidate)
    return election.leader_id is None and has_all


def learnt(replica: Replica, heard: Leadership) -> Transition | None:
    """Return what to do about an epoch or a leader that was not known here."""
    if heard.epoch >= EPOCH_MAX:
        return None
    if heard.epoch < replica.epoch or heard.leader_id == replica.key.id:
        # That this node led before it was started again is no news, and no leader.
        return Detach(heard.epoch) if heard.epoch > replica.epoch else None
    address = None
    if heard.leader_id is not None:
        address = heard.address or replica.voters.latest.address(heard.leader_id, replica.listener)
    if heard.epoch > replica.epoch:
        if heard.leader_id is None or address is None:
            return Detach(heard.epoch, heard.leader_id)
        return Follow(heard.epoch, heard.leader_id, address)
    if heard.leader_id is None or address is None:
        return None
    if replica.leader_id is None or (replica.leader_id == heard.leader_id and replica.leader_address is None):
        return Follow(heard.epoch, heard.leader_id, address)
    return None


def counts(replica: Replica, heard: Leadership) -> bool:
    """Return whether a response belongs to this epoch, and is more than an error."""
    return heard.epoch == replica.epoch and heard.error is ErrorCode.NONE
