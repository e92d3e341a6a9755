"""What a person may write for a place; what it means in partitions is tested with whole scans."""

from datetime import UTC, datetime, timedelta

import pytest

from riverlog.arrow.places import At, Bound, Each, Edge, Index, Place, place

NOW = datetime(2026, 1, 31, 16, 30, tzinfo=UTC)
NOW_MS = 1_769_877_000_000


@pytest.mark.parametrize(
    ("bound", "expected"),
    [
        ("earliest", Edge.EARLIEST),
        (" Beginning ", Edge.EARLIEST),
        ("latest", Edge.LATEST),
        ("now", Edge.LATEST),
        ("1h", At(NOW_MS - 3_600_000)),
        ("-1h", At(NOW_MS - 3_600_000)),
        (timedelta(hours=1), At(NOW_MS - 3_600_000)),
        (timedelta(hours=-1), At(NOW_MS - 3_600_000)),
        ("16:30", At(NOW_MS)),
        ("1769877000000", At(NOW_MS)),
        (datetime(2026, 1, 31, 16, 30), At(NOW_MS)),
        (datetime(2026, 1, 31, 16, 30, tzinfo=UTC), At(NOW_MS)),
        (datetime(1960, 1, 1, tzinfo=UTC), At(0)),
        (7, Index(7)),
        (-7, Index(-7)),
        ({0: 7}, Each({0: 7})),
    ],
)
def test_places(bound: Bound, expected: Place) -> None:
    assert place(bound, now=NOW) == expected


@pytest.mark.parametrize("bound", ["yesterday", True, 1.5, None, [0]])
def test_what_is_no_place_is_refused(bound: Bound) -> None:
    with pytest.raises(ValueError, match=r"is not a time|is no place in a topic"):
        place(bound, now=NOW)
