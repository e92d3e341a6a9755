import pytest

from riverlog.pipelines.course import Course
from riverlog.pipelines.facts import Facts
from riverlog.pipelines.late import SideOutput


def test_steps_are_kept_in_order() -> None:
    known = Facts(Course(("orders",))).after("filter").after("select")
    assert [step.words for step in known.course.steps] == ["filter", "select"]


def test_a_window_without_a_time_is_refused_with_the_way_to_name_one() -> None:
    assert Facts(time="at").need_time("a window") == "at"
    with pytest.raises(ValueError, match="a window needs an event time: name it with the stream"):
        Facts().need_time("a window")


def test_late_rows_on_their_way_take_no_more_steps() -> None:
    Facts().refuse_side("map")
    with pytest.raises(ValueError, match=r"map cannot follow a window or join with a side output.*'late'"):
        Facts(side=SideOutput("late")).refuse_side("map")
