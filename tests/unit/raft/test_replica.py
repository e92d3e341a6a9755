"""What a replica has in every role."""

import pytest

from riverlog.model.errors import InvariantBroken
from riverlog.model.ids import LeaderEpoch, NodeId, Offset
from riverlog.raft.effects import Committed, LeaderChanged, SaveElection
from riverlog.raft.election import ElectionState
from tests.support.raft import address, key, replica, tail, voters


def test_what_is_remembered_is_asked_to_be_written() -> None:
    node = replica()
    node.remember(ElectionState(LeaderEpoch(3), NodeId(2)), address(2))
    node.vote(key(3))
    saved = [effect for effect in node.effects if isinstance(effect, SaveElection)]
    assert [(each.election.epoch, each.election.voted_for) for each in saved] == [(3, None), (3, key(3))]
    assert [effect for effect in node.effects if isinstance(effect, LeaderChanged)] == [
        LeaderChanged(LeaderEpoch(3), NodeId(2))
    ]
    assert node.leader_address == address(2)


def test_nothing_is_written_that_is_known() -> None:
    node = replica()
    node.remember(node.election)
    assert node.effects == []


@pytest.mark.parametrize(
    "forbidden",
    [
        ElectionState(LeaderEpoch(2)),
        ElectionState(LeaderEpoch(3), NodeId(1)),
        ElectionState(LeaderEpoch(3), NodeId(2), key(1)),
    ],
)
def test_an_epoch_has_one_leader_and_one_vote(forbidden: ElectionState) -> None:
    node = replica(election=ElectionState(LeaderEpoch(3), NodeId(2), key(3)))
    with pytest.raises(AssertionError):
        node.remember(forbidden)


def test_what_is_committed_stays() -> None:
    node = replica(log=tail(1, 1, 1))
    node.commit(Offset(2))
    node.commit(Offset(1))
    assert node.high_watermark == 2
    assert node.effects == [Committed(Offset(2))]
    with pytest.raises(AssertionError, match="not in the log"):
        node.commit(Offset(4))
    with pytest.raises(InvariantBroken, match="records up to 2 are committed"):
        node.truncate(Offset(1))


def test_a_node_that_is_being_removed_stands_for_election_until_that_is_committed() -> None:
    node = replica(log=tail(1, 1, 1))
    node.note_voters(Offset(2), voters(2, 3))
    assert not node.is_voter
    assert node.stands_for_election
    node.commit(Offset(3))
    assert not node.stands_for_election


def test_who_stops_does_not_stand_for_election() -> None:
    node = replica()
    node.stopping = True
    assert node.is_voter
    assert not node.stands_for_election


def test_other_controllers_are_those_of_the_settings_and_the_voters() -> None:
    node = replica(quorum=voters(1, 2, 5))
    assert node.controllers == (address(2), address(3), address(5))
