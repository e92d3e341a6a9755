"""What roles share."""

from riverlog.model.errors import ErrorCode
from riverlog.model.ids import LeaderEpoch, NodeId
from riverlog.raft.election import ElectionState
from riverlog.raft.messages import Leadership
from riverlog.raft.roles.role import counts, learnt, may_vote_for
from riverlog.raft.transitions import Detach, Follow
from tests.support.raft import address, key, replica


def heard(epoch: int, leader: int | None = None, error: ErrorCode = ErrorCode.NONE) -> Leadership:
    return Leadership(error, LeaderEpoch(epoch), None if leader is None else NodeId(leader))


def test_the_vote_of_an_epoch_is_given_once() -> None:
    assert may_vote_for(ElectionState(), key(2), has_all=True)
    assert not may_vote_for(ElectionState(), key(2), has_all=False)
    voted = ElectionState(LeaderEpoch(1), None, key(2))
    assert may_vote_for(voted, key(2), has_all=False)
    assert not may_vote_for(voted, key(3), has_all=True)
    assert not may_vote_for(ElectionState(LeaderEpoch(1), NodeId(3)), key(2), has_all=True)


def test_later_epochs_and_unknown_leaders_are_learnt() -> None:
    node = replica(election=ElectionState(LeaderEpoch(3)))
    assert learnt(node, heard(2, 2)) is None
    assert learnt(node, heard(4)) == Detach(LeaderEpoch(4))
    assert learnt(node, heard(3, 2)) == Follow(LeaderEpoch(3), NodeId(2), address(2))
    assert learnt(node, heard(4, 9)) == Detach(LeaderEpoch(4), NodeId(9)), "nobody knows where it is"
    assert learnt(node, heard(3, 9)) is None
    assert learnt(node, heard(3, 1)) is None, "that this node led before is no news"
    assert learnt(node, heard(5, 1)) == Detach(LeaderEpoch(5))


def test_a_leader_that_is_known_stays() -> None:
    node = replica(election=ElectionState(LeaderEpoch(3), NodeId(2)))
    node.leader_address = address(2)
    assert learnt(node, heard(3, 3)) is None
    assert learnt(node, heard(3, 2)) is None


def test_only_this_epochs_responses_count() -> None:
    node = replica(election=ElectionState(LeaderEpoch(3)))
    assert counts(node, heard(3))
    assert not counts(node, heard(2))
    assert not counts(node, heard(3, error=ErrorCode.NOT_LEADER_OR_FOLLOWER))
