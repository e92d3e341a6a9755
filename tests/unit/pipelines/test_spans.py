from datetime import timedelta

import pytest

from riverlog.pipelines.spans import interval, span_ms, span_text


@pytest.mark.parametrize(
    ("span", "expected"),
    [
        ("10 seconds", 10_000),
        ("1 minute 30 seconds", 90_000),
        ("90s", 90_000),
        ("1.5h", 5_400_000),
        ("250 ms", 250),
        ("2 Days", 172_800_000),
        ("1 week", 604_800_000),
        (timedelta(minutes=5), 300_000),
    ],
)
def test_reads_what_spark_and_people_write(span: str | timedelta, expected: int) -> None:
    assert span_ms(span, "the gap") == expected


@pytest.mark.parametrize(
    "span", ["", "soon", "10", "seconds", "1 month", "10 seconds or so", "-5 seconds", "1 fortnight"]
)
def test_refuses_what_is_no_length_of_time(span: str) -> None:
    with pytest.raises(ValueError, match=r"the gap .* is no length of time; write one as 10 seconds"):
        span_ms(span, "the gap")


def test_a_window_of_no_length_is_refused_where_one_is_needed() -> None:
    assert span_ms("0 seconds", "the watermark", least=0) == 0
    with pytest.raises(ValueError, match="the gap '0 seconds' is out of range; give 1 ms or more"):
        span_ms("0 seconds", "the gap")
    with pytest.raises(ValueError, match="out of range"):
        span_ms(timedelta(seconds=-1), "the watermark", least=0)


def test_spark_reads_what_is_written() -> None:
    assert interval(1500) == "1500 milliseconds"


@pytest.mark.parametrize(
    ("count_ms", "text"),
    [
        (0, "0 milliseconds"),
        (1, "1 millisecond"),
        (1_500, "1500 milliseconds"),
        (90_000, "90 seconds"),
        (172_800_000, "2 days"),
    ],
)
def test_a_span_is_written_in_the_largest_unit(count_ms: int, text: str) -> None:
    assert span_text(count_ms) == text
    assert span_ms(text, "it", least=0) == count_ms
