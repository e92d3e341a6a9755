"""The count of votes."""

from riverlog.model.ids import NodeId
from riverlog.raft.election import Votes


def votes(own: int, *others: int) -> Votes:
    return Votes.among([NodeId(own), *map(NodeId, others)], NodeId(own))


def test_one_needs_nobody() -> None:
    assert votes(1).won


def test_a_majority_wins_and_a_majority_loses() -> None:
    three = votes(1, 2, 3)
    three.count(NodeId(2), granted=False)
    assert not three.won
    assert not three.lost
    three.count(NodeId(2), granted=True)
    assert not three.won, "the first answer holds"
    three.count(NodeId(3), granted=False)
    assert three.lost


def test_only_voters_count() -> None:
    five = votes(1, 2, 3, 4, 5)
    for stranger in (8, 9):
        five.count(NodeId(stranger), granted=True)
    assert not five.won
    assert five.missing == {2, 3, 4, 5}


def test_the_vote_of_a_node_that_is_being_removed_does_not_count() -> None:
    assert not Votes.among([NodeId(2)], NodeId(1)).won
