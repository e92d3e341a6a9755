"""Progress, moves and lengths of time: the arithmetic behind the commands about groups."""

import pytest

from riverlog.cli.group_offsets import Move, PartitionLag, duration_ms, plan_moves
from riverlog.cli.terminal.exits import CommandError
from riverlog.model.ids import TopicPartition

ZERO, ONE = TopicPartition("orders", 0), TopicPartition("orders", 1)


def test_lag_is_what_waits_and_unknown_where_something_is_unknown() -> None:
    assert PartitionLag(ZERO, 3, 10, None).lag == 7
    assert PartitionLag(ZERO, 12, 10, None).lag == 0  # the log was cut or made anew
    assert PartitionLag(ZERO, None, 10, None, start=4).lag == 6  # all that is there waits
    assert PartitionLag(ZERO, 3, None, None).lag is None


def test_a_move_replays_or_skips() -> None:
    assert (Move(ZERO, 10, 4).replayed, Move(ZERO, 10, 4).skipped) == (6, 0)
    assert (Move(ZERO, 4, 10).replayed, Move(ZERO, 4, 10).skipped) == (0, 6)
    assert (Move(ZERO, None, 10).replayed, Move(ZERO, None, 10).skipped) == (0, 0)


def test_an_offset_that_the_log_does_not_have_becomes_the_nearest() -> None:
    moves = plan_moves({ONE: 99, ZERO: -3}, {ZERO: 5}, starts={ZERO: 2, ONE: 0}, ends={ZERO: 9, ONE: 7})
    assert moves == [Move(ZERO, 5, 2), Move(ONE, None, 7)]


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [("90s", 90_000), ("1.5h", 5_400_000), ("250ms", 250), ("PT1H30M", 5_400_000), ("P1DT2S", 86_402_000)],
)
def test_a_length_of_time(text: str, milliseconds: int) -> None:
    assert duration_ms(text) == milliseconds


@pytest.mark.parametrize("text", ["", "P", "PT", "-5m", "5 minutes", "1y"])
def test_other_words_are_no_length_of_time(text: str) -> None:
    with pytest.raises(CommandError, match="is not a length of time"):
        duration_ms(text)
