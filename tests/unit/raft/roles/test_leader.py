"""The leader: what it serves, what it takes for committed, when it gives up."""

from riverlog.model.errors import ErrorCode
from riverlog.model.ids import LeaderEpoch, Offset
from riverlog.model.machine import Ticket
from riverlog.raft.effects import Answer, AppendControl, Call, Committed
from riverlog.raft.events import Appended, Asked, SnapshotTaken
from riverlog.raft.limits import FETCH_WAIT_SECONDS_MAX, FETCHES_PARKED_MAX
from riverlog.raft.log_tail import Behind, SnapshotId
from riverlog.raft.messages import (
    BeginEpochRequest,
    EpochResponse,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    LogRange,
    SnapshotRange,
)
from riverlog.raft.roles.leader import Leader
from tests.support.raft import Rig, key, tail, voters


def elected() -> Rig:
    """Return a leader of three that has told nobody anything yet."""
    rig = Rig(log=tail(1, 1))
    while rig.role != "Prospective":
        rig.wait(0.05)
    rig.grant()
    assert rig.role == "Leader"
    return rig


def test_an_epoch_begins_with_a_batch_that_says_who_was_elected() -> None:
    rig = elected()
    [begins] = rig.only(AppendControl)
    assert (begins.base_offset, begins.epoch, begins.leader_id) == (2, 2, 1)
    assert set(begins.elected_by or ()) >= {1}
    assert begins.writes_voters, "the log has none yet"
    assert {call.node for call in rig.calls(BeginEpochRequest)} == {2, 3}


def test_voters_that_a_node_was_formatted_with_are_written_to_the_log() -> None:
    for written_at, writes in ((-1, True), (0, False)):
        rig = Rig(log=tail(1, 1))
        rig.replica.voters.restart(voters(1, 2, 3), Offset(written_at))
        while rig.role != "Prospective":
            rig.wait(0.05)
        rig.grant()
        [begins] = rig.only(AppendControl)
        assert begins.writes_voters == writes


def test_nothing_is_committed_before_a_record_of_the_own_epoch_is() -> None:
    rig = elected()
    rig.flush()
    rig.fetch(2, 2, last_epoch=LeaderEpoch(1))
    assert rig.only(Committed) == []
    response = rig.fetch(3, 2, last_epoch=LeaderEpoch(1))
    assert response is not None
    assert response.high_watermark == -1
    rig.fetch(2)
    assert rig.only(Committed) == [Committed(rig.replica.log.end)]


def test_the_own_copy_counts_when_it_is_flushed() -> None:
    rig = elected()
    rig.fetch(2)
    assert rig.only(Committed) == []
    rig.flush()
    assert len(rig.only(Committed)) == 1


def test_a_fetch_gets_records_or_waits_for_them() -> None:
    rig = Rig().elect()
    end = rig.replica.log.end
    response = rig.fetch(2, 1, last_epoch=LeaderEpoch(1))
    assert response is not None
    assert response.records == LogRange(Offset(1), 1024)
    assert rig.fetch(2, high_watermark=rig.replica.high_watermark, wait_seconds=0.15) is None
    rig.on(Appended(1))
    [answer] = rig.only(Answer)
    assert isinstance(answer.response, FetchResponse)
    assert answer.response.records == LogRange(end, 1024)


def test_a_fetch_that_waits_for_nothing_is_answered_in_time() -> None:
    rig = Rig().elect()
    assert rig.fetch(2, high_watermark=rig.replica.high_watermark, wait_seconds=0.15) is None
    assert len([each for each in rig.wait(0.16) if isinstance(each, Answer)]) == 1


def test_a_new_high_watermark_is_told_at_once() -> None:
    rig = Rig(quorum=voters(1, 2, 3, 4, 5))
    while rig.role != "Prospective":
        rig.wait(0.05)
    rig.grant()
    rig.flush()
    assert rig.fetch(2, wait_seconds=5.0) is None
    rig.fetch(3)
    [first, second] = rig.only(Answer)
    assert {each.response.high_watermark for each in (first, second)} == {rig.replica.log.end}  # type: ignore[union-attr]


def test_a_log_that_parts_is_told_where() -> None:
    rig = Rig().elect()
    response = rig.fetch(2, 9, wait_seconds=5.0)
    assert response is not None
    assert response.diverging is not None
    assert response.diverging.end_offset == rig.replica.log.end


def test_who_is_far_behind_is_told_the_snapshot_and_gets_its_bytes() -> None:
    rig = Rig().elect()
    snapshot = SnapshotId(rig.replica.high_watermark, LeaderEpoch(1))
    rig.on(SnapshotTaken(snapshot, 50))
    response = rig.fetch(3, 0, last_epoch=LeaderEpoch(0))
    assert response is not None
    assert response.snapshot == snapshot
    chunk = rig.ask(FetchSnapshotRequest(key(3), rig.raft.epoch, snapshot, 10, 8))
    assert (chunk.size, chunk.position, chunk.content) == (50, 10, SnapshotRange(snapshot, 10, 8))
    for position in (-1, 50):
        refused = rig.ask(FetchSnapshotRequest(key(3), rig.raft.epoch, snapshot, position, 8))
        assert refused.leadership.error is ErrorCode.POSITION_OUT_OF_RANGE
    unknown = rig.ask(FetchSnapshotRequest(key(3), rig.raft.epoch, SnapshotId(Offset(1), LeaderEpoch(1)), 0, 8))
    assert unknown.leadership.error is ErrorCode.SNAPSHOT_NOT_FOUND
    assert Behind(snapshot) == rig.replica.log.compare(Offset(0), LeaderEpoch(0))


def test_voters_that_do_not_fetch_are_told_again() -> None:
    rig = elected()
    first = rig.calls(BeginEpochRequest)
    for call in first:
        rig.answer(call, EpochResponse(rig.leadership(leader=1)))
    rig.fetch(2)
    again = [call for call in rig.wait(0.3) if isinstance(call, Call)]
    assert {call.node for call in again} <= {2, 3}
    assert 3 in {call.node for call in again}


def test_a_leader_that_nobody_fetches_from_resigns() -> None:
    rig = Rig().elect()
    rig.wait(0.85)
    assert rig.role == "Leader"
    rig.fetch(3)
    rig.wait(0.85)
    assert rig.role == "Leader"
    rig.wait(0.1)
    assert rig.role == "Resigned"


def test_a_removed_leader_stays_until_that_is_committed() -> None:
    rig = Rig().elect()
    role = rig.raft.role
    assert isinstance(role, Leader)
    role.write_voters(voters(2, 3), rig.now)
    rig.flush()
    assert rig.role == "Leader"
    rig.fetch(2)
    assert rig.role == "Leader"
    rig.fetch(3)
    assert rig.role == "Resigned"


def test_a_fetch_is_held_back_for_a_second_at_most_and_not_without_a_bound() -> None:
    rig = elected()
    rig.flush()
    for ticket in range(FETCHES_PARKED_MAX + 5):
        asked = FetchRequest(
            key(9), rig.replica.epoch, rig.replica.log.end, rig.replica.log.last_epoch, Offset(2**62), 2e6, 1
        )
        rig.on(Asked(Ticket(10_000 + ticket), asked))
        assert len(rig.only(Answer)) == (ticket >= FETCHES_PARKED_MAX), "the last ones are answered at once"
    rig.wait(FETCH_WAIT_SECONDS_MAX)
    assert len(rig.only(Answer)) == FETCHES_PARKED_MAX
