"""The zone of the session, as a task finds it."""

from datetime import tzinfo
from zoneinfo import ZoneInfo

import pytest
from pyspark.worker import RunnerConf

from riverlog.spark.worker.time_zone import SETTING, session_zone
from tests.support.spark_jobs import task_context


def test_a_zone_that_is_not_told_is_not_known() -> None:
    assert session_zone() is None
    with task_context(3, 11, {}):
        assert session_zone() is None
        assert worker(RunnerConf({})) is None


def test_the_zone_is_the_one_that_the_worker_was_told() -> None:
    with task_context(3, 11, {}):
        assert worker(RunnerConf({SETTING: "Europe/Berlin"})) == ZoneInfo("Europe/Berlin")


def test_the_zone_is_the_one_that_the_program_has_set() -> None:
    with task_context(3, 11, {SETTING: "Europe/Berlin"}):
        assert session_zone() == ZoneInfo("Europe/Berlin")
        assert worker(None) == ZoneInfo("Europe/Berlin")
    with task_context(3, 11, {SETTING: "PXT"}), pytest.raises(ValueError, match="there is no zone 'PXT'"):
        session_zone()


def worker(runner_conf: RunnerConf | None) -> tzinfo | None:
    """Ask as a reader does that a worker has called."""
    found = session_zone()
    del runner_conf
    return found
