"""A log whose end is cut off."""

import pytest

from riverlog.log.log import Log
from riverlog.log.truncation import truncate
from riverlog.model.ids import LeaderEpoch, Offset
from tests.support.disk import MemoryDisk
from tests.unit.log.logs import NOW, append, filled, open_log, read_all


@pytest.mark.parametrize("offset", range(0, 121, 3))
def test_truncation_cuts_at_the_batch_that_holds_the_offset(log: Log, offset: int) -> None:
    written = filled(log)
    log.flush()
    truncate(log, Offset(offset), now_ms=NOW)
    end = offset - offset % 2
    assert log.log_end_offset == log.flushed_offset == end
    assert read_all(log) == written[:end]
    assert append(log, b"new", epoch=1).base_offset == end
    assert read_all(log) == [*written[:end], (end, b"new")]
    assert log.epochs.end_of(LeaderEpoch(0), log.log_end_offset).end_offset == end


def test_epochs_below_the_start_are_known_after_a_cut_at_the_start(disk: MemoryDisk, log: Log) -> None:
    for epoch in (0, 2, 2):
        append(log, epoch=epoch)
    log.advance_log_start(Offset(2))
    log.flush()
    truncate(log, Offset(2), now_ms=NOW)
    append(log, epoch=2)
    log.roll(NOW)
    append(log, epoch=2)
    log.close()
    again = open_log(disk, recovery_point=4, clean=True)
    assert [again.epochs.of(Offset(offset)) for offset in (2, 3)] == [2, 2]
