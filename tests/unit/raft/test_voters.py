"""Who votes, and how that changes along the log."""

from riverlog.model.ids import NodeId, Offset
from riverlog.raft.voters import LogHistory, ReplicaKey, VoterSet, address_on
from tests.support.raft import LISTENER, address, directory, endpoints, key, voter, voters


def test_a_disk_is_part_of_who_votes() -> None:
    assert key(1).is_met_by(key(1))
    assert not key(1).is_met_by(ReplicaKey(NodeId(1), directory(9)))
    assert not key(1).is_met_by(key(2))
    assert ReplicaKey(NodeId(1)).is_met_by(key(1)), "without reconfiguration the directory is not known"
    assert str(ReplicaKey(NodeId(1))) == "1"
    assert str(key(1)).startswith("1 (")


def test_more_than_half_decide() -> None:
    assert [voters(*range(1, count + 1)).majority for count in range(1, 6)] == [1, 2, 2, 3, 3]


def test_voters_come_and_go() -> None:
    two = voters(2, 1)
    assert two.ids == (1, 2)
    assert two.with_voter(voter(3)).ids == (1, 2, 3)
    assert two.without(key(1)).ids == (2,)
    assert two.includes(key(2))
    assert not two.includes(ReplicaKey(NodeId(2), directory(9)))


def test_the_address_is_that_of_the_listener() -> None:
    assert voters(1).address(NodeId(1), LISTENER) == address(1)
    assert voters(1).address(NodeId(2), LISTENER) is None
    assert address_on(endpoints(1), "PLAINTEXT") is None


def test_what_the_log_loses_is_taken_back() -> None:
    history = LogHistory(VoterSet(), [(Offset(3), voters(1)), (Offset(7), voters(1, 2))])
    assert (history.latest, history.latest_offset) == (voters(1, 2), 7)
    assert history.at(Offset(7)) == voters(1)
    assert history.at(Offset(3)) == VoterSet()
    history.truncate(Offset(7))
    assert (history.latest, history.latest_offset) == (voters(1), 3)
    history.truncate(Offset(0))
    assert (history.latest, history.latest_offset) == (VoterSet(), None)


def test_a_snapshot_stands_for_what_was_before() -> None:
    history = LogHistory(VoterSet(), [(Offset(3), voters(1))])
    history.restart(voters(1, 2), Offset(9))
    assert (history.latest, history.latest_offset) == (voters(1, 2), 9)
    history.append(Offset(12), voters(2))
    history.forget_below(Offset(20))
    assert history.latest == voters(2)
    assert history.at(Offset(12)) == voters(1, 2)
