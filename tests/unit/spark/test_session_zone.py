"""The zone of the session, as a task finds it."""

from zoneinfo import ZoneInfo

import pytest

from riverlog.spark.session_zone import SETTING, session_zone
from tests.support.spark_jobs import task_context


def test_a_zone_that_nobody_has_set_is_not_known() -> None:
    assert session_zone() is None
    with task_context(3, 11, {}):
        assert session_zone() is None


def test_the_zone_is_the_one_that_the_program_has_set() -> None:
    with task_context(3, 11, {SETTING: "Europe/Berlin"}):
        assert session_zone() == ZoneInfo("Europe/Berlin")
    with task_context(3, 11, {SETTING: "PST"}), pytest.raises(ValueError, match="there is no zone 'PST'"):
        session_zone()
