"""The follower: fetch, append, flush, fetch."""

import pytest

from riverlog.model.epochs import EpochEnd
from riverlog.model.errors import ErrorCode, InvariantBroken
from riverlog.model.ids import NO_OFFSET, LeaderEpoch, NodeId, Offset
from riverlog.raft.effects import Append, Call, Committed, InstallSnapshot, Truncate, WriteSnapshot
from riverlog.raft.events import SnapshotInstalled
from riverlog.raft.log_tail import SnapshotId
from riverlog.raft.messages import (
    AddVoterRequest,
    EndEpochRequest,
    EpochResponse,
    FetchedBatch,
    FetchedBatches,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    RemoveVoterRequest,
    UpdateVoterRequest,
    VoterChangeResponse,
    VoteRequest,
)
from riverlog.raft.voters import ReplicaKey, Voter, VoterSet
from tests.support.raft import Rig, batches, directory, endpoints, key, tail, voter, voters

SNAPSHOT = SnapshotId(Offset(40), LeaderEpoch(3))


def test_the_next_fetch_waits_for_the_flush() -> None:
    rig = Rig()
    fetch = rig.follow(2, 3)
    rig.answer(fetch, FetchResponse(rig.leadership(leader=2), Offset(1), records=batches(0, 1, 3)))
    assert len(rig.only(Append)) == 1
    assert rig.only(Committed) == [Committed(Offset(1))]
    assert rig.calls(FetchRequest) == []
    rig.flush()
    [fetch] = rig.calls(FetchRequest)
    assert (fetch.request.offset, fetch.request.last_epoch) == (2, 3)  # type: ignore[union-attr]


@pytest.mark.parametrize("refused", [True, False])
def test_a_leader_whose_process_is_gone_is_not_waited_for(refused: bool) -> None:
    rig = Rig()
    rig.fail(rig.follow(2, 3), refused=refused)
    rig.wait(rig.replica.timing.election_timeout / 2)
    assert rig.role == ("Prospective" if refused else "Follower"), "a connection that breaks says nothing"


def test_a_broker_need_not_flush() -> None:
    rig = Rig(7, quorum=VoterSet(), may_vote=False)
    rig.answer(rig.follow(2, 3), FetchResponse(rig.leadership(leader=2), Offset(1), records=batches(0, 1)))
    assert len(rig.calls(FetchRequest)) == 1


@pytest.mark.parametrize("wrong", [batches(1, 1), batches(0, 4), batches(0, 3, 1)])
def test_batches_that_do_not_fit_are_not_taken(wrong: FetchedBatches) -> None:
    rig = Rig()
    rig.answer(rig.follow(2, 3), FetchResponse(rig.leadership(leader=2), Offset(1), records=wrong))
    assert rig.only(Append) == []
    assert rig.replica.log.end == 0
    assert rig.calls(FetchRequest) == [], "not again at once"


def test_what_the_leader_does_not_have_is_cut_off_first() -> None:
    rig = Rig(log=tail(1, 1, 2))
    fetch = rig.follow(2, 3)
    rig.answer(fetch, FetchResponse(rig.leadership(leader=2), diverging=EpochEnd(LeaderEpoch(1), Offset(1))))
    assert rig.only(Truncate) == [Truncate(Offset(1))]
    assert rig.replica.log.end == 1
    kinds = [type(effect) for effect in rig.effects]
    assert kinds.index(Truncate) < kinds.index(Call)


def test_what_is_committed_is_never_cut_off() -> None:
    rig = Rig()
    fetch = rig.follow(2, 3)
    rig.answer(fetch, FetchResponse(rig.leadership(leader=2), Offset(2), records=batches(0, 1, 1)))
    rig.flush()
    [fetch] = rig.calls(FetchRequest)
    with pytest.raises(InvariantBroken, match="records up to 2 are committed"):
        rig.answer(fetch, FetchResponse(rig.leadership(leader=2), diverging=EpochEnd(LeaderEpoch(1), Offset(1))))


def test_voters_hold_as_soon_as_they_are_in_the_log() -> None:
    rig = Rig()
    changed = FetchedBatch(Offset(0), 2, LeaderEpoch(3), ((Offset(1), voters(1, 2)),), ((Offset(0), 1),))
    fetch = rig.follow(2, 3)
    rig.answer(fetch, FetchResponse(rig.leadership(leader=2), records=FetchedBatches((changed,), b"")))
    assert rig.replica.voters.latest == voters(1, 2)
    assert rig.replica.kraft_version.latest_offset == 0


def test_a_snapshot_comes_in_chunks() -> None:
    rig = Rig()
    fetch = rig.follow(2, 3)
    rig.answer(fetch, FetchResponse(rig.leadership(leader=2), snapshot=SNAPSHOT))
    [chunk] = rig.calls(FetchSnapshotRequest)
    rig.answer(chunk, FetchSnapshotResponse(rig.leadership(leader=2), SNAPSHOT, 10, 0, b"123456"))
    assert rig.only(WriteSnapshot) == [WriteSnapshot(SNAPSHOT, 0, b"123456")]
    [chunk] = rig.calls(FetchSnapshotRequest)
    assert chunk.request.position == 6  # type: ignore[union-attr]
    rig.answer(chunk, FetchSnapshotResponse(rig.leadership(leader=2), SNAPSHOT, 10, 6, b"7890"))
    assert rig.only(InstallSnapshot) == [InstallSnapshot(SNAPSHOT, 10)]
    assert rig.only(Call) == []
    rig.wait(3.0)
    assert rig.role == "Follower", "who votes is not known until the snapshot is there"
    rig.on(SnapshotInstalled(SNAPSHOT, 10, voters(1, 2), 1))
    assert (rig.replica.log.start, rig.replica.log.end, rig.replica.high_watermark) == (40, 40, 40)
    assert rig.replica.voters.latest == voters(1, 2)


@pytest.mark.parametrize(
    "response",
    [
        FetchSnapshotResponse(Rig().leadership(ErrorCode.SNAPSHOT_NOT_FOUND, 3, 2)),
        FetchSnapshotResponse(Rig().leadership(epoch=3, leader=2), SNAPSHOT, 10, 3, b"456"),
        FetchSnapshotResponse(Rig().leadership(epoch=3, leader=2), SNAPSHOT, 10, 0, b""),
        FetchSnapshotResponse(Rig().leadership(ErrorCode.POSITION_OUT_OF_RANGE, 3, 2), SNAPSHOT, 10, 0, b"1"),
    ],
)
def test_a_download_that_goes_wrong_is_begun_anew(response: FetchSnapshotResponse) -> None:
    rig = Rig()
    rig.answer(rig.follow(2, 3), FetchResponse(rig.leadership(leader=2), snapshot=SNAPSHOT))
    rig.answer(rig.calls(FetchSnapshotRequest)[0], response)
    assert rig.only(WriteSnapshot) == []
    calls = rig.calls(FetchRequest) or [each for each in rig.wait(0.05) if isinstance(each, Call)]
    assert isinstance(calls[0].request, FetchRequest)


def test_who_hears_the_leader_would_not_vote_for_another_one() -> None:
    rig = Rig()
    question = VoteRequest(key(1), key(3), LeaderEpoch(3), LeaderEpoch(3), Offset(99), True)
    fetch = rig.follow(2, 3)
    assert rig.ask(question).granted
    rig.answer(fetch, FetchResponse(rig.leadership(leader=2)))
    assert not rig.ask(question).granted


def test_a_follower_that_hears_nothing_stands_for_election() -> None:
    rig = Rig()
    rig.follow(2, 3)
    rig.wait(0.61)
    assert rig.role == "Prospective"


def test_a_leader_that_fails_is_looked_for_elsewhere() -> None:
    rig = Rig()
    fetch = rig.follow(2, 3)
    rig.fail(fetch)
    [elsewhere] = [each for each in rig.wait(0.03) if isinstance(each, Call)]
    assert elsewhere.node is None
    rig.answer(elsewhere, FetchResponse(rig.leadership(ErrorCode.NOT_LEADER_OR_FOLLOWER, 4, 3)))
    assert rig.calls(FetchRequest)[0].node == 3


def test_a_voter_that_has_moved_tells_the_leader() -> None:
    moved = VoterSet.of([Voter(key(1), endpoints(9)), voter(2), voter(3)])
    rig = Rig(quorum=moved)
    fetch = rig.follow(2, 3)
    rig.wait(0.5)
    rig.answer(fetch, FetchResponse(rig.leadership(leader=2)))
    [told] = [each for each in rig.wait(0.2) if isinstance(each, Call) and isinstance(each.request, UpdateVoterRequest)]
    assert (told.node, told.request.endpoints) == (2, endpoints(1))


@pytest.mark.parametrize(
    ("quorum", "expected"),
    [
        (voters(2, 3), AddVoterRequest(key(1), endpoints(1), ack_when_committed=False)),
        (
            VoterSet.of([Voter(ReplicaKey(NodeId(1), directory(9)), endpoints(1)), voter(2), voter(3)]),
            RemoveVoterRequest(ReplicaKey(NodeId(1), directory(9))),
        ),
    ],
)
def test_a_controller_may_join_by_itself(quorum: VoterSet, expected: object) -> None:
    rig = Rig(quorum=quorum, auto_join=True)
    rig.follow(2, 3)
    wanted = [each for each in rig.wait(0.7) if isinstance(each, Call) and each.request == expected]
    assert len(wanted) == 1
    rig.answer(wanted[0], VoterChangeResponse(rig.leadership(ErrorCode.REQUEST_TIMED_OUT)))
    again = [each for each in rig.wait(0.7) if isinstance(each, Call) and each.request == expected]
    assert len(again) == 1


def test_responses_of_another_kind_help_nobody() -> None:
    rig = Rig()
    fetch = rig.follow(2, 3)
    rig.answer(fetch, EpochResponse(rig.leadership(leader=2)))
    assert rig.replica.high_watermark == NO_OFFSET
    assert rig.calls(FetchRequest) == []


def test_a_resigning_leader_may_name_any_number_of_successors() -> None:
    for place in (1, 500, 1_099):
        rig = Rig()
        rig.follow(2, 3)
        successors = [key(100 + each) for each in range(1_100)]
        successors[place] = key(1)
        rig.ask(EndEpochRequest(NodeId(2), LeaderEpoch(3), tuple(successors), endpoints(2)))
        rig.wait(rig.replica.timing.election_backoff_max)
        assert rig.role == "Prospective"
