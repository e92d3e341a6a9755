"""Moments as people write them."""

from datetime import datetime, timedelta, timezone

import pytest

from riverlog.model.moments import moment_ms, span_ms

ZONE = timezone(timedelta(hours=2))
NOW = datetime(2026, 1, 31, 16, 30, 5, 250_000, tzinfo=ZONE)
NOW_MS = 1_769_869_805_250


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("now", NOW_MS),
        ("-15m", NOW_MS - 900_000),
        ("-1.5h", NOW_MS - 5_400_000),
        ("-250ms", NOW_MS - 250),
        ("-1d", NOW_MS - 86_400_000),
        ("-2w", NOW_MS - 1_209_600_000),
        ("-9000w", 0),
        ("1969-12-31T23:59Z", 0),
        ("0", 0),
        ("1769869805250", NOW_MS),
        ("2026-01-31T16:30:05.250+02:00", NOW_MS),
        ("2026-01-31T14:30:05.250Z", NOW_MS),
        ("2026-01-31T16:30:05.250", NOW_MS),
        ("2026-01-31 16:30", 1_769_869_800_000),
        ("2026-01-31", 1_769_810_400_000),
        ("20260131", 1_769_810_400_000),
        ("16:30", 1_769_869_800_000),
        ("9:05:07", 1_769_843_107_000),
    ],
)
def test_moments(text: str, expected: int) -> None:
    assert moment_ms(text, now=NOW) == expected


@pytest.mark.parametrize("text", ["", "15m", "-15", "-m", "yesterday", "25:00", "2026-13-01", "-15 m", "١٢", "9" * 19])
def test_what_is_no_moment_is_refused_with_examples(text: str) -> None:
    with pytest.raises(ValueError, match="is not a time; give one as -15m"):
        moment_ms(text, now=NOW)


@pytest.mark.parametrize(
    ("text", "expected"), [("90s", 90_000), (" 1.5h ", 5_400_000), ("0ms", 0), ("-1s", None), ("1", None), ("h", None)]
)
def test_lengths_of_time(text: str, expected: int | None) -> None:
    assert span_ms(text) == expected
