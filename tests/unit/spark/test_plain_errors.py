"""Problems as a user sees them."""

import traceback

import pytest

from riverlog.spark.options import BadOption
from riverlog.spark.plain_errors import plainly


def deep(problem: Exception) -> None:
    def deeper() -> None:
        raise problem from KeyError("why")

    deeper()


def shown(problem: Exception) -> list[str]:
    with pytest.raises(type(problem)) as raised:
        plainly(deep)(problem)
    return traceback.format_exception(raised.value)


def test_a_sentence_of_ours_is_shown_without_the_way_to_it() -> None:
    lines = "".join(shown(BadOption("topics", None, "there is no such option"))).splitlines()
    assert lines[-1] == "riverlog.spark.options.BadOption: option topics: there is no such option"
    assert not any("deeper" in line or "KeyError" in line for line in lines)


def test_a_mistake_keeps_its_trace() -> None:
    assert any("deeper" in line for line in shown(ZeroDivisionError()))


def test_what_is_decorated_keeps_its_name_and_its_answer() -> None:
    assert plainly(deep).__name__ == "deep"
    assert plainly(len)([1, 2]) == 2
