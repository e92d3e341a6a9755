"""What Raft knows of its log."""

import pytest

from riverlog.model.epochs import EpochEnd
from riverlog.model.ids import LeaderEpoch, Offset
from riverlog.raft.log_tail import Behind, Diverging, LogTail, SnapshotId
from tests.support.raft import tail


def at(offset: int, epoch: int) -> tuple[Offset, LeaderEpoch]:
    return Offset(offset), LeaderEpoch(epoch)


def test_an_empty_log_is_in_epoch_zero() -> None:
    assert (LogTail().last_epoch, LogTail().end) == (0, 0)
    assert LogTail().compare(*at(0, 0)) is None


@pytest.mark.parametrize(
    ("offset", "epoch", "parts_at"),
    [
        (4, 5, None),
        (2, 1, None),
        (0, 0, None),
        (1, 1, None),
        (3, 1, (1, 2)),
        (5, 5, (5, 4)),
        (3, 3, (1, 2)),
        (9, 9, (5, 4)),
    ],
)
def test_logs_are_compared_by_their_epochs(offset: int, epoch: int, parts_at: tuple[int, int] | None) -> None:
    log = tail(1, 1, 5, 5)
    expected = None if parts_at is None else Diverging(EpochEnd(LeaderEpoch(parts_at[0]), Offset(parts_at[1])))
    assert log.compare(*at(offset, epoch)) == expected


def test_the_longer_log_of_the_later_epoch_has_all() -> None:
    log = tail(1, 1, 5)
    assert log.is_at_least(LeaderEpoch(5), Offset(3))
    assert log.is_at_least(LeaderEpoch(6), Offset(1))
    assert not log.is_at_least(LeaderEpoch(5), Offset(2))
    assert not log.is_at_least(LeaderEpoch(4), Offset(9))


def test_logs_part_where_the_last_common_epoch_ends_first() -> None:
    log = tail(1, 1, 3, 3)
    assert log.common_end(EpochEnd(LeaderEpoch(1), Offset(5))) == 2
    assert log.common_end(EpochEnd(LeaderEpoch(1), Offset(1))) == 1
    assert log.common_end(EpochEnd(LeaderEpoch(2), Offset(4))) == 2
    assert log.common_end(EpochEnd(LeaderEpoch(3), Offset(3))) == 3


def test_a_flush_says_nothing_about_what_was_written_later() -> None:
    log = tail(1, 1)
    log.append(LeaderEpoch(1), 2)
    began = log.generation
    log.truncate(Offset(3))
    log.append(LeaderEpoch(2), 3)
    log.synced(Offset(4), began)
    assert log.flushed == 2
    log.synced(Offset(6), log.generation)
    assert log.flushed == 6


def test_who_is_behind_the_log_gets_its_snapshot() -> None:
    log = tail(1, 1, 2, 2)
    snapshot = SnapshotId(Offset(3), LeaderEpoch(2))
    log.rest_on(snapshot, 100)
    assert log.compare(*at(1, 1)) is None, "the records are still there"
    assert log.compare(*at(0, 0)) == Behind(snapshot), "cheaper than all records"
    log.let_go(Offset(3))
    assert log.compare(*at(1, 1)) == Behind(snapshot)
    assert log.compare(*at(3, 1)) == Behind(snapshot)
    assert log.compare(*at(3, 2)) is None
    assert log.compare(*at(4, 2)) is None


def test_a_log_goes_on_behind_a_snapshot() -> None:
    log = tail(1, 1)
    log.restart(SnapshotId(Offset(9), LeaderEpoch(4)), 50)
    assert (log.start, log.end, log.flushed, log.last_epoch) == (9, 9, 9, 4)
    assert log.end_of(LeaderEpoch(4)) == (4, 9)
    assert log.compare(*at(9, 4)) is None
    log.append(LeaderEpoch(5), 1)
    assert log.compare(*at(10, 5)) is None
    log.let_go(Offset(9))
    assert log.epochs.entries() == [(5, 9)]


def test_an_emptied_log_keeps_no_epochs() -> None:
    log = tail(1, 2)
    log.rest_on(SnapshotId(Offset(2), LeaderEpoch(2)), 10)
    log.let_go(Offset(2))
    assert log.epochs.entries() == []
    assert log.last_epoch == 2


def test_a_log_that_begins_late_rests_on_a_snapshot() -> None:
    with pytest.raises(AssertionError, match="rests on a snapshot"):
        LogTail(start=Offset(5), end=Offset(5))
