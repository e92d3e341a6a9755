"""Times that JSON holds as text. That Spark reads them alike is a test on Spark."""

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from riverlog.arrow.json.times import NO_ZONE, NOT_A_DATE, NOT_A_TIME, ZONED, dates, times, zone_of

AT = pa.timestamp("us", "UTC")
BERLIN = ZoneInfo("Europe/Berlin")


def micros(text: str | None, zone: ZoneInfo | None = BERLIN) -> int | None:
    (found,) = times(pa.array([text], pa.string()), AT, zone).cast(pa.int64()).to_pylist()
    assert found is None or isinstance(found, int)
    return found


def at(*fields: int) -> int:
    return (datetime(*fields, tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)  # type: ignore[misc,arg-type]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, None),
        ("2024-07-01", at(2024, 6, 30, 22)),
        ("2024-07-01 10:00", at(2024, 7, 1, 8)),
        ("2024-07-01T10:00:00.123456789Z", at(2024, 7, 1, 10, 0, 0, 123_456)),
        ("2024-07-01T10:00:00-0330", at(2024, 7, 1, 13, 30)),
        ("2024-03-31T02:30:00", at(2024, 3, 31, 1, 30)),
        ("2024-10-27T02:30:00", at(2024, 10, 27, 0, 30)),
        ("2099-07-01T10:00:00", at(2099, 7, 1, 8)),
    ],
)
def test_a_time_is_an_instant(text: str | None, expected: int | None) -> None:
    assert micros(text) == expected


def test_times_with_and_without_a_zone_may_stand_together() -> None:
    texts = pa.array(["2024-07-01T10:00:00", None, "2024-07-01T10:00:00Z"])
    assert times(texts, AT, BERLIN).to_pylist() == [
        datetime(2024, 7, 1, 8, tzinfo=UTC),
        None,
        datetime(2024, 7, 1, 10, tzinfo=UTC),
    ]
    assert times(texts[1:], AT, None).to_pylist()[0] is None
    with pytest.raises(pa.ArrowInvalid, match=NO_ZONE.replace(".", r"\.")):
        times(texts, AT, None)


def test_a_type_without_a_zone_takes_times_without_one() -> None:
    kind = pa.timestamp("ms")
    assert times(pa.array(["2024-07-01T10:00:00.1239"]), kind, None).to_pylist() == [
        datetime(2024, 7, 1, 10, 0, 0, 123_000)
    ]
    with pytest.raises(pa.ArrowInvalid, match=ZONED):
        times(pa.array(["2024-07-01T10:00:00Z"]), kind, None)


@pytest.mark.parametrize(
    "text", ["", "2024", "2024-1-1", "0000-01-01", "2024-01-01T10:00:00z", "2024-01-01T10:00+19:00", "now"]
)
def test_other_texts_are_no_times(text: str) -> None:
    with pytest.raises(pa.ArrowInvalid, match=NOT_A_TIME.replace("+", r"\+").replace(".", r"\.")):
        micros(text)
    with pytest.raises(pa.ArrowInvalid, match=NOT_A_DATE):
        dates(pa.array([text]), pa.date32())


@pytest.mark.parametrize("text", ["2024-02-30", "2024-01-01T25:00:00"])
def test_there_are_no_such_days_and_hours(text: str) -> None:
    with pytest.raises(pa.ArrowInvalid):
        micros(text)


def test_zones_have_sparks_names() -> None:
    assert zone_of("UTC") is zone_of("Z") is UTC
    assert zone_of("+05:30") == zone_of("GMT+05:30") == timezone(timedelta(hours=5, minutes=30))
    assert zone_of("UTC-3") == timezone(timedelta(hours=-3))
    assert zone_of("Europe/Berlin") is BERLIN
    assert zone_of("PST") is ZoneInfo("America/Los_Angeles")
    with pytest.raises(ValueError, match="there is no zone 'Mars/Base'; choose one such as"):
        zone_of("Mars/Base")


@pytest.mark.parametrize("zone", ["", "Z", "+02:00"])
def test_one_that_is_no_time_is_found_among_others_that_are_alike(zone: str) -> None:
    good, refused = f"2024-07-01T10:00:00.123{zone}", 0
    changed = [good[:place] + other + good[place + 1 :] for place in range(len(good)) for other in "9x:-.Z+/ "]
    for text in [*changed, f"0000-07-01T10:00:00.123{zone}"]:
        try:
            alone = times(pa.array([None, text, "2024-07-01"]), AT, UTC)[1]
        except pa.ArrowInvalid:
            refused += 1
            with pytest.raises(pa.ArrowInvalid):
                times(pa.array([good, text]), AT, UTC)
        else:
            assert times(pa.array([good, text]), AT, UTC)[1] == alone
    assert refused > len(changed) // 2


def test_times_that_are_alike_are_read_as_each_alone() -> None:
    texts = ["2024-07-01T10:00:00.123Z", "0999-07-01T10:00:00.123Z", "2024-07-01T10:00:00.123456Z", None]
    texts += ["2024-07-01T10:00:00.123+02:00", "2024-07-01T10:00:00.123-02:00", "2024-07-01 10:00:00.123Z"]
    alone = [micros(text) for text in texts]
    for order in (texts, texts[::-1]):
        found = times(pa.array(["not wanted", *order])[1:], AT, BERLIN).cast(pa.int64()).to_pylist()
        assert found == (alone if order is texts else alone[::-1])


def test_a_clock_that_changes_within_an_hour_is_asked_for_each_minute() -> None:
    zone = ZoneInfo("America/St_Johns")  # until 2011 its clocks changed a minute behind midnight
    texts = [f"2010-11-07T00:{minute:02}:{second:02}" for minute in range(3) for second in (0, 59)]
    texts += ["1935-01-01T00:00:00", "1935-03-30T00:00:52", "1884-01-01T00:00:01"]
    expected = [datetime.fromisoformat(text).replace(tzinfo=zone).astimezone(UTC) for text in texts]
    assert times(pa.array([None, *texts]), AT, zone).to_pylist() == [None, *expected]
    assert times(pa.array(texts[:6]), AT, zone).to_pylist() == expected[:6]
