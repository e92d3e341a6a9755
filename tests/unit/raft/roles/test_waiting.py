"""Unattached and Resigned."""

from riverlog.model.errors import ErrorCode
from riverlog.model.ids import LeaderEpoch, NodeId
from riverlog.raft.effects import Call
from riverlog.raft.election import ElectionState
from riverlog.raft.messages import EndEpochRequest, EpochResponse, FetchResponse, VoteRequest
from riverlog.raft.voters import VoterSet
from tests.support.raft import Rig, address, key, voters


def test_a_voter_without_a_leader_stands_for_election_after_a_while() -> None:
    rig = Rig()
    assert rig.role == "Unattached"
    rig.wait(0.29)
    assert rig.role == "Unattached"
    rig.wait(0.35)
    assert rig.role == "Prospective"


def test_an_observer_asks_the_controllers_and_waits() -> None:
    rig = Rig(7, quorum=VoterSet(), may_vote=False)
    [call] = rig.only(Call)
    assert call.node is None
    assert call.address in {address(1), address(2), address(3)}
    rig.answer(call, FetchResponse(rig.leadership(ErrorCode.NOT_LEADER_OR_FOLLOWER, 0)))
    assert rig.only(Call) == [], "not again at once"
    assert len(rig.wait(0.03)) == 1
    rig.fail(rig.only(Call)[0])
    rig.wait(60.0)
    assert rig.role == "Unattached"


def test_a_response_tells_who_leads() -> None:
    rig = Rig(7, quorum=VoterSet(), may_vote=False)
    fetch = rig.follow(2, 5)
    assert (fetch.address, fetch.node, rig.raft.epoch) == (address(2), 2, 5)


def test_a_vote_makes_a_voter_wait_anew() -> None:
    rig = Rig()
    rig.wait(0.25)
    before = rig.raft.deadline
    rig.ask(VoteRequest(key(1), key(2), LeaderEpoch(1), LeaderEpoch(0), rig.replica.log.end, False))
    rig.wait(0.29)
    assert before is not None
    assert rig.role == "Unattached"


def test_nobody_stands_for_election_while_a_snapshot_is_installed() -> None:
    rig = Rig()
    rig.replica.installing = True
    rig.wait(2.0)
    assert rig.role == "Unattached"


def test_a_leader_that_resigned_tells_each_voter_until_it_has_heard() -> None:
    rig = Rig(election=ElectionState(LeaderEpoch(2), NodeId(1), key(1)), quorum=voters(1, 2))
    assert rig.role == "Resigned"
    [call] = rig.calls(EndEpochRequest)
    rig.fail(call)
    rig.wait(0.03)
    [call] = rig.calls(EndEpochRequest)
    rig.answer(call, EpochResponse(rig.leadership(leader=1)))
    assert [effect for effect in rig.wait(0.1) if isinstance(effect, Call)] == []
