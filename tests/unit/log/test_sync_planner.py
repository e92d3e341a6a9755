"""What a plan covers of a log, and what is left to the next one."""

import pytest

from riverlog.log.log import Log
from tests.unit.log.logs import NOW, append, filled


def test_a_sync_covers_what_was_there_when_it_was_planned(log: Log) -> None:
    filled(log)
    planned = log.log_end_offset
    plan = log.pending_sync()
    append(log)
    plan.run()
    assert log.flushed_offset == 0
    log.synced(plan)
    assert log.flushed_offset == planned
    log.flush()
    assert log.flushed_offset == planned + 1


def test_a_closed_segment_is_durable_with_the_next_plan(log: Log) -> None:
    append(log)
    assert log.roll(NOW)
    assert not log.sync_planner.closed_is_durable
    plan = log.pending_sync()
    assert not log.sync_planner.closed_is_durable, "it is only on its way"
    with pytest.raises(AssertionError, match="a sync is running"):
        log.sync_planner.check_idle()
    plan.run()
    log.synced(plan)
    assert log.sync_planner.closed_is_durable


def test_the_first_name_is_synced_early_and_nothing_else(log: Log) -> None:
    append(log, b"x" * 500)
    assert not log.sync_planner.first_name_synced
    plan = log.pending_first_name()
    assert (plan.files, plan.folders, plan.replacements) == ([], [log.folder], {})
    plan.run()
    log.synced(plan)
    assert log.sync_planner.first_name_synced
    assert log.flushed_offset == 0
    log.flush()
    assert log.flushed_offset == log.log_end_offset


def test_a_flush_syncs_the_first_name_as_well(log: Log) -> None:
    append(log, b"x" * 500)
    log.flush()
    assert log.sync_planner.first_name_synced
