"""The history of leader epochs."""

import pytest

from riverlog.model.epochs import UNKNOWN_END, Epochs
from riverlog.model.ids import NO_EPOCH, LeaderEpoch, Offset


def epochs(*entries: tuple[int, int]) -> Epochs:
    return Epochs((LeaderEpoch(epoch), Offset(start)) for epoch, start in entries)


def test_an_epoch_begins_once() -> None:
    history = epochs((1, 0))
    assert history.begin(LeaderEpoch(3), Offset(10))
    assert not history.begin(LeaderEpoch(3), Offset(12))
    assert not history.begin(LeaderEpoch(2), Offset(12))
    assert history.entries() == [(1, 0), (3, 10)]


def test_an_epoch_without_records_leaves_no_trace() -> None:
    assert epochs((1, 0), (3, 10), (4, 10)).entries() == [(1, 0), (4, 10)]


@pytest.mark.parametrize(
    ("epoch", "expected"),
    [(-1, (-1, -1)), (0, (0, 5)), (1, (1, 10)), (2, (1, 10)), (3, (3, 20)), (4, (4, 30)), (5, (-1, -1))],
)
def test_the_end_of_an_epoch_is_the_start_of_the_next(epoch: int, expected: tuple[int, int]) -> None:
    assert epochs((1, 5), (3, 10), (4, 20)).end_of(LeaderEpoch(epoch), Offset(30)) == expected


def test_each_offset_has_the_epoch_it_was_written_in() -> None:
    history = epochs((1, 5), (3, 10))
    assert [history.of(Offset(offset)) for offset in (4, 5, 9, 10, 99)] == [NO_EPOCH, 1, 1, 3, 3]


def test_the_end_can_be_cut_off() -> None:
    history = epochs((1, 0), (3, 10), (4, 20))
    assert not history.truncate_end(Offset(21))
    assert history.truncate_end(Offset(10))
    assert history.entries() == [(1, 0)]


def test_the_start_can_be_cut_off() -> None:
    history = epochs((1, 0), (3, 10), (4, 20))
    assert not history.truncate_start(Offset(0))
    assert history.truncate_start(Offset(15))
    assert history.entries() == [(3, 15), (4, 20)]
    assert history.truncate_start(Offset(20))
    assert history.entries() == [(4, 20)]


def test_an_empty_log_knows_the_end_of_no_epoch() -> None:
    assert [Epochs().end_of(LeaderEpoch(epoch), Offset(0)) for epoch in (-(1 << 31), -2, -1, 0)] == [UNKNOWN_END] * 4
