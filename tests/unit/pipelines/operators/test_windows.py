import pytest

from riverlog.pipelines.operators.windows import (
    Session,
    Sliding,
    Tumbling,
    session,
    sliding,
    tumbling,
    words_of,
)


def test_kinds_are_named_with_spans() -> None:
    assert tumbling("1 minute") == Tumbling(60_000)
    assert tumbling("1 day", offset="6 hours") == Tumbling(86_400_000, 21_600_000)
    assert sliding("1 minute", every="20 seconds") == Sliding(60_000, 20_000)
    assert session("30s") == Session(30_000)


def test_windows_that_would_leave_rows_out_are_refused() -> None:
    with pytest.raises(ValueError, match="a window of 1 minute every 2 minutes leaves rows out"):
        sliding("1 minute", every="2 minutes")


def test_windows_are_described() -> None:
    assert words_of(tumbling("1 minute")) == "windows of 1 minute"
    assert words_of(sliding("90 seconds", every="1500 ms")) == "windows of 90 seconds every 1500 milliseconds"
    assert words_of(session("2 hours")) == "sessions with a gap of 2 hours"
