"""What a person may write for a place; what it means in partitions is tested with whole scans."""

from datetime import UTC, datetime, timedelta

import pytest

from riverlog.arrow.positions import AtOffset, AtOffsets, AtTimestamp, Bound, PartitionEnd, Position, position_of

NOW = datetime(2026, 1, 31, 16, 30, tzinfo=UTC)
NOW_MS = 1_769_877_000_000


@pytest.mark.parametrize(
    ("bound", "expected"),
    [
        ("earliest", PartitionEnd.EARLIEST),
        (" Beginning ", PartitionEnd.EARLIEST),
        ("latest", PartitionEnd.LATEST),
        ("now", PartitionEnd.LATEST),
        ("1h", AtTimestamp(NOW_MS - 3_600_000)),
        ("-1h", AtTimestamp(NOW_MS - 3_600_000)),
        (timedelta(hours=1), AtTimestamp(NOW_MS - 3_600_000)),
        (timedelta(hours=-1), AtTimestamp(NOW_MS - 3_600_000)),
        ("16:30", AtTimestamp(NOW_MS)),
        ("1769877000000", AtTimestamp(NOW_MS)),
        (datetime(2026, 1, 31, 16, 30), AtTimestamp(NOW_MS)),
        (datetime(2026, 1, 31, 16, 30, tzinfo=UTC), AtTimestamp(NOW_MS)),
        (datetime(1960, 1, 1, tzinfo=UTC), AtTimestamp(0)),
        (7, AtOffset(7)),
        (-7, AtOffset(-7)),
        ({0: 7}, AtOffsets({0: 7})),
    ],
)
def test_places(bound: Bound, expected: Position) -> None:
    assert position_of(bound, now=NOW) == expected


@pytest.mark.parametrize("bound", ["yesterday", True, 1.5, None, [0]])
def test_what_is_no_place_is_refused(bound: Bound) -> None:
    with pytest.raises(ValueError, match=r"is not a time|is no position in a topic"):
        position_of(bound, now=NOW)
