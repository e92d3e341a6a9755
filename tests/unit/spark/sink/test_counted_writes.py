"""Writes of a batch are counted, and known again when the batch is run again."""

import pytest

from riverlog.broker.limits import BATCH_MARKER_BYTES_MAX
from riverlog.client.producer.shared_transactions import CommittedBatch
from riverlog.spark.limits import SINK_WRITES_PER_BATCH_MAX
from riverlog.spark.refusal import SinkRefused
from riverlog.spark.sink.counted_writes import Counted, check_same, counted_of, what_is_written
from riverlog.spark.sink.options import read_options
from riverlog.spark.worker.attempt import StreamAttempt


def attempt(run: str, batch: int) -> StreamAttempt:
    return StreamAttempt(0, 0, 0, "q", run, batch)


def test_the_writes_of_a_batch_have_one_incarnation_each() -> None:
    counted, names = Counted(), []
    for run, batch in (("r1", 0), ("r1", 0), ("r2", 0), ("r2", 0), ("r2", 0), ("r2", 1)):
        names.append(counted.incarnation(attempt(run, batch)))
        counted = counted.after(attempt(run, batch))
        assert counted_of(CommittedBatch(counted.number, counted.marker())) == counted
        assert len(counted.marker()) < BATCH_MARKER_BYTES_MAX
    assert names == ["q", "q#2", "q", "q#2", "q#3", "q"]
    assert counted.number == 5


def test_nothing_was_counted_before_the_first() -> None:
    assert counted_of(None) == Counted()


def test_more_writes_than_can_be_kept_apart_are_refused() -> None:
    counted = Counted(0, "q", "r", 7, SINK_WRITES_PER_BATCH_MAX)
    with pytest.raises(SinkRefused, match="batch 7 is written more than 15 times"):
        counted.incarnation(attempt("r", 7))


def test_another_write_in_the_place_of_one_that_is_committed_is_refused() -> None:
    left, right = (what_is_written(read_options({"topic": name}, is_stream=True)) for name in ("left", "right"))
    rows = what_is_written(read_options({}, is_stream=True))
    for committed in (None, CommittedBatch(6, left), CommittedBatch(7, b""), CommittedBatch(7, right)):
        check_same(committed, 7, right)
    for other in (left, rows):
        with pytest.raises(SinkRefused, match=r"writes topic right where it wrote topic.*in the same order"):
            check_same(CommittedBatch(7, other), 7, right)
