import pytest

from riverlog.pipelines.lineage import Lineage
from riverlog.pipelines.operators.late_rows import SideOutput
from riverlog.pipelines.stream_properties import StreamProperties


def test_steps_are_kept_in_order() -> None:
    known = StreamProperties(Lineage(("orders",))).after("filter").after("select")
    assert [step.words for step in known.lineage.steps] == ["filter", "select"]


def test_a_window_without_a_time_is_refused_with_the_way_to_name_one() -> None:
    assert StreamProperties(time="at").need_time("a window") == "at"
    with pytest.raises(ValueError, match="a window needs an event time: name it with the stream"):
        StreamProperties().need_time("a window")


def test_late_rows_on_their_way_take_no_more_steps() -> None:
    StreamProperties().refuse_side("map")
    with pytest.raises(ValueError, match=r"map cannot follow a window or join with a side output.*'late'"):
        StreamProperties(side=SideOutput("late")).refuse_side("map")


def test_a_full_join_has_two_event_times() -> None:
    StreamProperties(is_full=True, other_time="right_at").need_other_time("a window")
    with pytest.raises(ValueError, match="a window behind a full join needs the event times of both streams"):
        StreamProperties(is_full=True).need_other_time("a window")
    with pytest.raises(ValueError, match="a join cannot follow a full join"):
        StreamProperties(is_full=True, other_time="right_at").refuse_full("a join")


def test_a_union_is_of_streams_that_are_late_by_one_rule() -> None:
    one = StreamProperties(time="at", delay_ms=1, keys=("key",), lateness_ms=5)
    found = one.beside(StreamProperties(time="at", delay_ms=2, keys=("other",)))
    assert (found.time, found.delay_ms, found.keys, found.lateness_ms) == ("at", 2, (), 5)
    assert StreamProperties().beside(StreamProperties()).time is None


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (StreamProperties(), "a union needs one event time.*here it is at and none"),
        (StreamProperties(time="seen"), "here it is at and seen"),
        (StreamProperties(time="at", is_result=True), "results of a window or a join, and rows that are none"),
        (StreamProperties(time="at", mode="update"), "updates of results, or results that are final"),
        (StreamProperties(time="at", is_full=True), "a full join has a union with results of the same kind"),
    ],
)
def test_other_unions_are_refused(other: StreamProperties, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        StreamProperties(time="at").beside(other)
