"""Prospective and Candidate."""

from riverlog.model.errors import ErrorCode
from riverlog.model.ids import LeaderEpoch, NodeId
from riverlog.raft.effects import SaveElection
from riverlog.raft.election import ElectionState
from riverlog.raft.messages import VoteRequest, VoteResponse
from tests.support.raft import Rig, key


def prospective() -> Rig:
    rig = Rig()
    while rig.role != "Prospective":
        rig.wait(0.05)
    return rig


def test_a_question_comes_before_an_epoch() -> None:
    rig = prospective()
    assert rig.raft.epoch == 0
    asked = rig.calls(VoteRequest)
    assert [(call.node, call.request.pre_vote, call.request.voter) for call in asked] == [
        (2, True, key(2)),
        (3, True, key(3)),
    ]  # type: ignore[union-attr]
    assert rig.only(SaveElection) == []
    rig.answer(asked[0], VoteResponse(rig.leadership(), True))
    assert (rig.role, rig.raft.epoch) == ("Candidate", 1)
    assert rig.only(SaveElection)[-1].election == ElectionState(LeaderEpoch(1), None, key(1))
    assert [call.request.pre_vote for call in rig.calls(VoteRequest)] == [False, False]  # type: ignore[union-attr]


def test_who_would_not_be_elected_begins_no_epoch() -> None:
    rig = prospective()
    for call in rig.calls(VoteRequest):
        rig.answer(call, VoteResponse(rig.leadership(), False))
    assert (rig.role, rig.raft.epoch) == ("Unattached", 0)


def test_who_knows_a_leader_goes_back_to_it() -> None:
    rig = Rig(election=ElectionState(LeaderEpoch(2), NodeId(2)))
    while rig.role != "Prospective":
        rig.wait(0.1)
    for call in rig.calls(VoteRequest):
        rig.answer(call, VoteResponse(rig.leadership(leader=2), False))
    assert (rig.role, rig.raft.epoch) == ("Follower", 2)


def test_a_voter_that_cannot_be_asked_is_told() -> None:
    rig = prospective()
    rig.fail(rig.calls(VoteRequest)[0], unsupported=True)
    assert rig.role == "Candidate"


def test_who_does_not_answer_is_asked_again() -> None:
    rig = prospective()
    first = rig.calls(VoteRequest)[0]
    rig.fail(first)
    assert rig.calls(VoteRequest) == []
    rig.wait(0.03)
    assert [call.node for call in rig.calls(VoteRequest)] == [first.node]


def test_a_candidate_that_lost_waits_and_asks_again() -> None:
    rig = prospective()
    rig.answer(rig.calls(VoteRequest)[0], VoteResponse(rig.leadership(), True))
    for call in rig.calls(VoteRequest):
        rig.answer(call, VoteResponse(rig.leadership(), False))
    assert rig.role == "Candidate"
    rig.wait(0.7)
    assert rig.raft.epoch == 1
    assert rig.role in ("Prospective", "Unattached")


def test_an_error_is_no_vote() -> None:
    rig = prospective()
    call = rig.calls(VoteRequest)[0]
    rig.answer(call, VoteResponse(rig.leadership(ErrorCode.INVALID_VOTER_KEY), True))
    assert rig.role == "Prospective"


def test_a_majority_of_votes_makes_a_leader() -> None:
    rig = prospective()
    rig.grant()
    assert rig.role == "Leader"
    assert rig.only(SaveElection)[-1].election == ElectionState(LeaderEpoch(1), NodeId(1), key(1))
