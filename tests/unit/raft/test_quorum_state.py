"""The file with the own vote, as Kafka's controllers write and read it."""

import pytest

from riverlog.model.ids import LeaderEpoch, NodeId
from riverlog.raft.election import ElectionState
from riverlog.raft.quorum_state import BadQuorumState, decode_election, encode_election
from riverlog.raft.voters import ReplicaKey
from tests.support.raft import directory, key

VOTED = ElectionState(LeaderEpoch(7), None, key(2))
LED = ElectionState(LeaderEpoch(7), NodeId(3), None)


def test_the_file_has_kafkas_form() -> None:
    assert encode_election(LED, kraft_version=1, voters=[]) == (
        b'{"leaderId":3,"leaderEpoch":7,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}'
    )


def test_without_reconfiguration_it_names_the_voters() -> None:
    assert encode_election(VOTED, kraft_version=0, voters=[NodeId(1), NodeId(2)]) == (
        b'{"clusterId":"","leaderId":-1,"leaderEpoch":7,"votedId":2,"appliedOffset":0,'
        b'"currentVoters":[{"voterId":1},{"voterId":2}],"data_version":0}'
    )


@pytest.mark.parametrize("state", [ElectionState(), VOTED, LED, ElectionState(LeaderEpoch(1), NodeId(1), key(1))])
def test_what_is_written_is_read_again(state: ElectionState) -> None:
    assert decode_election(encode_election(state, kraft_version=1, voters=[])) == (state, 1, ())


def test_without_reconfiguration_the_disk_is_not_known() -> None:
    state, kraft_version, voters = decode_election(encode_election(VOTED, kraft_version=0, voters=[NodeId(2)]))
    assert (kraft_version, voters) == (0, (2,))
    assert state.voted_for == ReplicaKey(NodeId(2))
    assert state.voted_for.is_met_by(ReplicaKey(NodeId(2), directory(5)))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff",
        b"[" * 100_000,
        b'{"leaderId":1,"leaderEpoch":7,"votedId":-1}',
        b'{"leaderId":1,"leaderEpoch":7,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":2}',
        b'{"leaderId":1,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}',
        b'{"leaderId":1,"leaderEpoch":-1,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}',
        b'{"leaderId":1,"leaderEpoch":2147483647,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}',
        b'{"leaderId":1,"leaderEpoch":7,"votedId":-1,"currentVoters":[1],"data_version":0}',
        b'{"leaderId":1,"leaderEpoch":2147483648,"votedId":-1,"votedDirectoryId":"A","data_version":1}',
        b'{"leaderId":true,"leaderEpoch":7,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}',
        b'{"leaderId":1,"leaderEpoch":7,"votedId":-1,"votedDirectoryId":"zz","data_version":1}',
    ],
)
def test_a_damaged_file_is_refused(content: bytes) -> None:
    with pytest.raises(BadQuorumState):
        decode_election(content)
