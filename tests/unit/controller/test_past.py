"""What is known of elections before the log is opened."""

import pytest

from riverlog.controller.folder_check import CheckedFolder
from riverlog.controller.past import QuorumPast
from riverlog.controller.snapshot_files import VotersSaid
from riverlog.log.identity import DirectoryRefused
from riverlog.model.ids import LeaderEpoch, NodeId, Offset
from riverlog.raft.election import ElectionState
from riverlog.raft.quorum_state import SavedElection
from riverlog.raft.voters import ReplicaKey, Voter, VoterSet
from tests.support.raft import endpoints, key, voters

STATIC = VoterSet.of(Voter(ReplicaKey(NodeId(node)), endpoints(node)) for node in (1, 2, 3))


def folder(*said: VotersSaid, vote: SavedElection | None = None) -> CheckedFolder:
    return CheckedFolder("/m", {}, list(said), vote)


def test_the_log_says_who_votes() -> None:
    said = [VotersSaid(Offset(1), voters=voters(1)), VotersSaid(Offset(7), voters=voters(1, 2))]
    past = QuorumPast.of(folder(*said), key(1), voters(1))
    assert past.voters.latest == voters(1, 2)
    assert past.voters.at(Offset(7)) == voters(1)
    assert (past.kraft_version.latest, past.election) == (1, ElectionState())
    with pytest.raises(DirectoryRefused, match=r"a quorum of 2 controllers \(1, 2\); set controller\.quorum\."):
        past.check_only_voter("/m", key(1))


def test_an_observer_begins_without_knowing_who_votes() -> None:
    past = QuorumPast.of(folder(), key(4), VoterSet())
    assert len(past.voters.latest) == 0


def test_voters_of_the_settings_are_not_named_by_disks() -> None:
    vote = SavedElection(ElectionState(LeaderEpoch(5), NodeId(2)), 0, (NodeId(1), NodeId(2), NodeId(3)))
    past = QuorumPast.of(folder(vote=vote), key(1), STATIC)
    assert past.voters.latest == STATIC
    assert past.kraft_version.latest == 0
    assert past.election.epoch == 5
