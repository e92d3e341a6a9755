import pytest

from riverlog.pipelines.course import Course
from riverlog.pipelines.facts import Facts
from riverlog.pipelines.operators.late_rows import SideOutput


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


def test_a_full_join_has_two_event_times() -> None:
    Facts(is_full=True, other_time="right_at").need_other_time("a window")
    with pytest.raises(ValueError, match="a window behind a full join needs the event times of both streams"):
        Facts(is_full=True).need_other_time("a window")
    with pytest.raises(ValueError, match="a join cannot follow a full join"):
        Facts(is_full=True, other_time="right_at").refuse_full("a join")


def test_a_union_is_of_streams_that_are_late_by_one_rule() -> None:
    one = Facts(time="at", delay_ms=1, keys=("key",), lateness_ms=5)
    found = one.beside(Facts(time="at", delay_ms=2, keys=("other",)))
    assert (found.time, found.delay_ms, found.keys, found.lateness_ms) == ("at", 2, (), 5)
    assert Facts().beside(Facts()).time is None


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (Facts(), "a union needs one event time.*here it is at and none"),
        (Facts(time="seen"), "here it is at and seen"),
        (Facts(time="at", is_result=True), "results of a window or a join, and rows that are none"),
        (Facts(time="at", mode="update"), "updates of results, or results that are final"),
        (Facts(time="at", is_full=True), "a full join has a union with results of the same kind"),
    ],
)
def test_other_unions_are_refused(other: Facts, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Facts(time="at").beside(other)
