"""The Raft machine from outside: what it starts as, what it answers, how it passes from role to role."""

import pytest

from riverlog.model.errors import ErrorCode, InvariantBroken
from riverlog.model.ids import NO_OFFSET, LeaderEpoch, NodeId, Offset
from riverlog.raft.effects import Answer, AppendControl, Call, Committed, LeaderChanged, SaveElection
from riverlog.raft.election import EPOCH_JUMP_MAX, ElectionState
from riverlog.raft.events import LogShortened, SnapshotTaken, Stalled, Stopping
from riverlog.raft.log_tail import SnapshotId
from riverlog.raft.messages import (
    AddVoterRequest,
    BeginEpochRequest,
    EndEpochRequest,
    FetchSnapshotRequest,
    RemoveVoterRequest,
    UpdateVoterRequest,
    VoteRequest,
    VoteResponse,
)
from riverlog.raft.roles.role import learnt
from riverlog.raft.voters import ReplicaKey
from tests.support.raft import Rig, address, directory, endpoints, key, tail, voters


def vote(
    candidate: int, epoch: int, *, last_epoch: int = 0, last_offset: int = 0, pre_vote: bool = False, of: int = 1
) -> VoteRequest:
    return VoteRequest(
        key(of), key(candidate), LeaderEpoch(epoch), LeaderEpoch(last_epoch), Offset(last_offset), pre_vote
    )


def test_a_quorum_of_one_leads_at_once() -> None:
    rig = Rig(quorum=voters(1))
    assert rig.role == "Leader"
    assert rig.raft.epoch == 1
    assert rig.raft.leads_from == 0
    [begins] = rig.only(AppendControl)
    assert (begins.base_offset, begins.elected_by, begins.writes_voters) == (0, (1,), True)
    kinds = [type(effect) for effect in rig.effects]
    assert kinds.index(AppendControl) > max(place for place, kind in enumerate(kinds) if kind is SaveElection)
    rig.flush()
    assert rig.only(Committed) == [Committed(Offset(3))]
    assert rig.raft.deadline is None, "nobody is to be told, and nobody can be missed"


def test_a_node_begins_in_the_epoch_of_its_log() -> None:
    assert Rig(log=tail(1, 4)).raft.epoch == 4


@pytest.mark.parametrize(
    ("election", "role"),
    [
        (ElectionState(LeaderEpoch(2), NodeId(1), key(1)), "Resigned"),
        (ElectionState(LeaderEpoch(2), None, key(1)), "Candidate"),
        (ElectionState(LeaderEpoch(2), NodeId(2)), "Follower"),
        (ElectionState(LeaderEpoch(2), NodeId(2), key(1)), "Follower"),
        (ElectionState(LeaderEpoch(2), NodeId(9)), "Unattached"),
        (ElectionState(LeaderEpoch(2), None, key(2)), "Unattached"),
    ],
)
def test_a_node_goes_on_where_it_stopped(election: ElectionState, role: str) -> None:
    rig = Rig(election=election)
    assert rig.role == role
    assert rig.raft.epoch == 2
    assert rig.only(SaveElection)[0].election == election


def test_a_former_leader_begins_another_epoch() -> None:
    rig = Rig(election=ElectionState(LeaderEpoch(2), NodeId(1), key(1)))
    rig.wait(1.3)
    assert rig.raft.epoch > 2


def test_a_vote_is_written_before_it_is_given() -> None:
    rig = Rig()
    response = rig.ask(vote(2, 5))
    assert response.granted
    kinds = [type(effect) for effect in rig.effects]
    assert kinds.index(Answer) > max(place for place, kind in enumerate(kinds) if kind is SaveElection)
    assert rig.ask(vote(2, 5)).granted, "asked again, the same answer"
    assert not rig.ask(vote(3, 5)).granted
    assert rig.only(SaveElection) == []


def test_only_a_log_that_has_all_gets_a_vote() -> None:
    rig = Rig(log=tail(1, 3))
    assert not rig.ask(vote(2, 5, last_epoch=2, last_offset=9)).granted
    assert rig.raft.epoch == 5, "the epoch counts all the same"
    assert rig.ask(vote(3, 5, last_epoch=3, last_offset=2)).granted


def test_a_question_promises_nothing() -> None:
    rig = Rig()
    assert rig.ask(vote(2, 0, pre_vote=True)).granted
    assert rig.ask(vote(3, 0, pre_vote=True)).granted
    assert rig.only(SaveElection) == []


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (vote(2, 3), ErrorCode.FENCED_LEADER_EPOCH),
        (vote(2, 5, last_epoch=5), ErrorCode.INVALID_REQUEST),
        (vote(2, 5, last_epoch=6, pre_vote=True), ErrorCode.INVALID_REQUEST),
        (vote(2, 5, last_offset=-1), ErrorCode.INVALID_REQUEST),
        (vote(2, 5, last_epoch=-1), ErrorCode.INVALID_REQUEST),
        (vote(2, 5, of=3), ErrorCode.INVALID_VOTER_KEY),
    ],
)
def test_senseless_votes_are_refused(request_: VoteRequest, error: ErrorCode) -> None:
    rig = Rig(election=ElectionState(LeaderEpoch(4)))
    response = rig.ask(request_)
    assert response.leadership.error is error
    assert not response.granted


def test_a_vote_for_a_disk_that_is_gone_is_not_given() -> None:
    rig = Rig()
    request = VoteRequest(ReplicaKey(NodeId(1), directory(9)), key(2), LeaderEpoch(5), LeaderEpoch(0), Offset(0), False)
    assert rig.ask(request).leadership.error is ErrorCode.INVALID_VOTER_KEY


def test_a_leader_is_heard_of_by_its_request() -> None:
    rig = Rig()
    response = rig.ask(BeginEpochRequest(key(1), NodeId(2), LeaderEpoch(3), endpoints(2)))
    assert response.leadership.error is ErrorCode.NONE
    assert (rig.role, rig.raft.epoch) == ("Follower", 3)
    assert rig.only(LeaderChanged)[-1] == LeaderChanged(LeaderEpoch(3), NodeId(2))
    assert [call.address for call in rig.only(Call)] == [address(2)]
    late = rig.ask(BeginEpochRequest(key(1), NodeId(3), LeaderEpoch(2), endpoints(3)))
    assert late.leadership.error is ErrorCode.FENCED_LEADER_EPOCH
    assert late.leadership.leader_id == 2


def test_the_first_successor_of_a_leader_that_stops_stands_for_election_at_once() -> None:
    first, second = Rig(1), Rig(2)
    for rig in (first, second):
        rig.ask(BeginEpochRequest(None, NodeId(3), LeaderEpoch(3), endpoints(3)))
        rig.ask(EndEpochRequest(NodeId(3), LeaderEpoch(3), (key(1), key(2)), endpoints(3)))
    assert first.role == "Prospective"
    assert second.role == "Follower"
    assert second.ask(vote(1, 3, pre_vote=True, of=2)).granted, "its leader is gone"


def test_a_leader_that_stops_hands_over_and_begins_nothing_more() -> None:
    rig = Rig().elect()
    rig.on(Stopping())
    assert rig.role == "Resigned"
    assert {call.node for call in rig.calls(EndEpochRequest)} == {2, 3}
    assert rig.calls(EndEpochRequest)[0].request.successors == (key(2), key(3))  # type: ignore[union-attr]
    assert rig.ask(vote(2, 1, last_epoch=1, last_offset=9, pre_vote=True)).granted
    for call in rig.calls(EndEpochRequest):
        rig.fail(call)
    rig.wait(5.0)
    assert rig.role == "Resigned"


@pytest.mark.parametrize("epoch", [0, 7])
def test_what_only_a_leader_can_do_is_refused_elsewhere(epoch: int) -> None:
    rig = Rig(election=ElectionState(LeaderEpoch(4), None, key(2)))
    expected = ErrorCode.FENCED_LEADER_EPOCH if epoch == 0 else ErrorCode.UNKNOWN_LEADER_EPOCH
    response = rig.fetch(2, epoch=LeaderEpoch(epoch), last_epoch=LeaderEpoch(0))
    assert response is not None
    assert response.leadership.error is expected
    snapshot = SnapshotId(Offset(3), LeaderEpoch(1))
    assert rig.ask(FetchSnapshotRequest(key(2), LeaderEpoch(epoch), snapshot, 0, 10)).leadership.error is expected
    update = UpdateVoterRequest(key(2), LeaderEpoch(epoch), endpoints(2), (0, 1))
    assert rig.ask(update).leadership.error is expected
    for request in (AddVoterRequest(key(4), endpoints(4)), RemoveVoterRequest(key(2))):
        assert rig.ask(request).leadership.error is ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize(("offset", "last_epoch"), [(-1, 0), (0, -1), (0, 2)])
def test_senseless_fetches_are_refused(offset: int, last_epoch: int) -> None:
    rig = Rig(quorum=voters(1))
    response = rig.fetch(2, offset, last_epoch=LeaderEpoch(last_epoch))
    assert response is not None
    assert response.leadership.error is ErrorCode.INVALID_REQUEST


def test_a_higher_epoch_ends_a_reign() -> None:
    rig = Rig().elect()
    assert rig.fetch(3, wait_seconds=5.0, high_watermark=rig.replica.high_watermark) is None
    rig.ask(vote(2, 9, last_epoch=1, last_offset=9))
    assert rig.role == "Unattached"
    assert rig.raft.leads_from == NO_OFFSET
    parked = [effect.response for effect in rig.only(Answer)][:2]
    assert ErrorCode.NOT_LEADER_OR_FOLLOWER in [response.leadership.error for response in parked]


def test_snapshots_are_taken_note_of() -> None:
    rig = Rig(quorum=voters(1))
    rig.flush()
    snapshot = SnapshotId(Offset(3), LeaderEpoch(1))
    rig.on(SnapshotTaken(snapshot, 77))
    rig.on(LogShortened(Offset(3)))
    assert rig.replica.log.start == 3
    assert rig.replica.voters.latest == voters(1)


def test_who_was_away_does_not_count_the_silence() -> None:
    rig = Rig().elect()
    rig.now = type(rig.now)(rig.now + 60.0)
    rig.on(Stalled())
    rig.wait(0.2)
    assert rig.role == "Leader"
    rig.wait(1.0)
    assert rig.role != "Leader", "but nobody came in the time that was given"


@pytest.mark.parametrize("pre_vote", [True, False])
def test_the_last_epoch_is_nobodys(pre_vote: bool) -> None:
    rig = Rig()
    last = 2**31 - 1
    assert rig.ask(vote(9, last, pre_vote=pre_vote)).leadership.error is ErrorCode.INVALID_REQUEST
    assert rig.ask(BeginEpochRequest(None, NodeId(2), LeaderEpoch(last), endpoints(2))).leadership.error is (
        ErrorCode.INVALID_REQUEST
    )
    assert learnt(rig.replica, rig.leadership(epoch=last, leader=2)) is None
    assert rig.raft.epoch == 0


def test_behind_the_last_epoch_but_one_no_election_begins() -> None:
    rig = Rig(quorum=voters(1, 2), election=ElectionState(LeaderEpoch(2**31 - 2)))
    rig.wait(2.0)
    assert rig.role == "Prospective"
    with pytest.raises(InvariantBroken, match="no other one can begin"):
        rig.answer(rig.calls(VoteRequest)[-1], VoteResponse(rig.leadership(), True))


def test_no_request_uses_up_the_epochs() -> None:
    far = LeaderEpoch(EPOCH_JUMP_MAX + 1)
    rig = Rig()
    for request in (
        VoteRequest(key(1), key(7), far, LeaderEpoch(0), Offset(0), False),
        BeginEpochRequest(key(1), NodeId(2), far, endpoints(2)),
        EndEpochRequest(NodeId(2), far, (), endpoints(2)),
    ):
        response = rig.ask(request)
        assert response.leadership.error is ErrorCode.INVALID_REQUEST
    assert rig.replica.epoch == 0
    assert rig.ask(BeginEpochRequest(key(1), NodeId(2), LeaderEpoch(EPOCH_JUMP_MAX), endpoints(2))) is not None
    assert rig.replica.epoch == EPOCH_JUMP_MAX
