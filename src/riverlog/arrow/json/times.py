"""Times and dates that JSON holds as text, read as Spark's `from_json` reads them, or not at all.

    2024-01-31 · 2024-01-31T10:00 · 2024-01-31 10:00:00.123456789+02:00 · 2024-01-31T10:00:00Z

A time without a zone is of a zone that the caller knows. Digits beyond what the type holds are cut off. An hour that a
clock skips is counted on from before the change, and of one that comes twice it is the first, as in Java.
"""

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_DATE: Final = r"(?:000[1-9]|00[1-9][0-9]|0[1-9][0-9]{2}|[1-9][0-9]{3})-[0-9]{2}-[0-9]{2}"
_ZONE: Final = r"(?:Z|[+-](?:0[0-9]|1[0-7])(?::?[0-5][0-9])?|[+-]18(?::?00)?)"
_TIME: Final = rf"^{_DATE}(?:[T ][0-9]{{2}}:[0-9]{{2}}(?::[0-9]{{2}}(?:\.[0-9]{{1,9}})?)?{_ZONE}?)?$"
_ZONED: Final = rf"[T ][0-9:.]+{_ZONE}$"
_DIGITS: Final = {"s": 0, "ms": 3, "us": 6, "ns": 9}
_USUAL: Final = {
    unit: re.compile(rf"^{_DATE}[T ][0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}{rf'(?:[.][0-9]{{1,{most}}})?' if most else ''}")
    for unit, most in _DIGITS.items()
}
"""Times with seconds, and no more digits of them than their type has: nothing is to be done to these. Arrow checks the
hours. What follows is the zone, or nothing."""
_ZONE_ALONE: Final = re.compile(_ZONE)
_YEAR: Final = 4
"""Digits of a year."""
_OFFSET: Final = re.compile(r"(?:UTC|GMT|UT)?([+-])([0-9]{1,2})(?::?([0-9]{2}))?")
_EPOCH: Final = datetime(1970, 1, 1)
_WHOLE_MINUTES_SINCE: Final = 3 * 366 * 86_400
"""From here on, in seconds since 1970, clocks change at whole minutes, and by whole minutes."""
_SHORT: Final = dict(
    each.split("=")
    for each in [
        "ACT=Australia/Darwin",
        "AET=Australia/Sydney",
        "AGT=America/Argentina/Buenos_Aires",
        "ART=Africa/Cairo",
        "AST=America/Anchorage",
        "BET=America/Sao_Paulo",
        "BST=Asia/Dhaka",
        "CAT=Africa/Harare",
        "CNT=America/St_Johns",
        "CST=America/Chicago",
        "CTT=Asia/Shanghai",
        "EAT=Africa/Addis_Ababa",
        "ECT=Europe/Paris",
        "EST=-05:00",
        "HST=-10:00",
        "IET=America/Indiana/Indianapolis",
        "IST=Asia/Kolkata",
        "JST=Asia/Tokyo",
        "MIT=Pacific/Apia",
        "MST=-07:00",
        "NET=Asia/Yerevan",
        "NST=Pacific/Auckland",
        "PLT=Asia/Karachi",
        "PNT=America/Phoenix",
        "PRT=America/Puerto_Rico",
        "PST=America/Los_Angeles",
        "SST=Pacific/Guadalcanal",
        "VST=Asia/Ho_Chi_Minh",
    ]
)
"""Names of three letters that Java knows, and what they stand for there (`java.time.ZoneId.SHORT_IDS`)."""

NOT_A_TIME: Final = "a time is written as 2024-01-31T10:00:00.123456+01:00"
NOT_A_DATE: Final = "a date is written as 2024-01-31"
NO_ZONE: Final = (
    "a time has no zone, and the session's, which it would have, is not known; set spark.sql.session.timeZone"
)
ZONED: Final = "a time has a zone, and its field is of a type without one"


def dates(texts: pa.StringArray, kind: pa.DataType) -> Any:
    """Return dates; ArrowInvalid for a text that is none."""
    _all_match(texts, f"^{_DATE}$", NOT_A_DATE)
    return texts.cast(pa.date32()).cast(kind)


def times(texts: pa.StringArray, kind: pa.TimestampType, zone: tzinfo | None) -> Any:
    """Return times, those without a zone as times of `zone`; ArrowInvalid for a text that is no such time."""
    if texts.null_count == len(texts):
        return pa.nulls(len(texts), kind)
    match _usual_zone(texts, kind.unit):
        case "":
            return _local(texts, kind, zone)
        case str() if kind.tz is not None:
            return texts.cast(kind)
    _all_match(texts, _TIME, NOT_A_TIME)
    texts = _cut(texts, _DIGITS[kind.unit])
    is_zoned = pc.match_substring_regex(texts, _ZONED)
    if kind.tz is None and pc.any(is_zoned).as_py():
        raise pa.ArrowInvalid(ZONED)
    if not pc.any(is_zoned).as_py():
        return _local(texts, kind, zone)
    if pc.all(is_zoned).as_py():  # nulls are left out
        return texts.cast(kind)
    nothing = pa.scalar(None, pa.string())
    local = _local(pc.if_else(is_zoned, nothing, texts), kind, zone)
    return pc.coalesce(pc.if_else(is_zoned, texts, nothing).cast(kind), local)


@lru_cache(maxsize=8)
def zone_of(name: str) -> tzinfo:
    """Find a zone by its name in Spark's settings; ValueError where there is none."""
    name = _SHORT.get(name, name)
    if name in ("Z", "UTC", "GMT", "UT"):
        return UTC
    if (found := _OFFSET.fullmatch(name)) is not None:
        offset = timedelta(hours=int(found[2]), minutes=int(found[3] or 0))
        return timezone(-offset if found[1] == "-" else offset)
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"there is no zone {name!r}; choose one such as UTC, +02:00 or Europe/Berlin") from None


def _all_match(texts: pa.StringArray, pattern: str, otherwise: str) -> None:
    if not _matches(texts, pattern):
        raise pa.ArrowInvalid(otherwise)


def _matches(texts: pa.StringArray, pattern: str) -> bool:
    """Return whether all texts but nulls match."""
    return pc.all(pc.match_substring_regex(texts, pattern)).as_py() is not False


def _cut(texts: pa.StringArray, digits: int) -> pa.StringArray:
    """Cut off the digits of a second that are too many."""
    if digits == 0:
        return pc.replace_substring_regex(texts, r"\.[0-9]+", "")
    return pc.replace_substring_regex(texts, rf"(\.[0-9]{{{digits}}})[0-9]+", r"\1")


def _usual_zone(texts: pa.StringArray, unit: str) -> str | None:
    """Return the zone of the first text, perhaps none, if all are usual times and have one, or if all have none."""
    texts = texts.drop_null() if texts.null_count else texts
    first = texts[0].as_py()
    time = _USUAL[unit].match(first)
    if time is None:
        return None
    zone: str = first[time.end() :]
    if zone and _ZONE_ALONE.fullmatch(zone) is None:
        return None
    pattern = f"{_USUAL[unit].pattern}{_ZONE if zone else ''}$"
    return zone if _are_alike(texts, first.encode(), time.end()) or _matches(texts, pattern) else None


def _are_alike(texts: pa.StringArray, first: bytes, time_end: int) -> bool:
    """Return whether all texts differ from the first, which is a usual time, at most in the digits of the time.

    Those of one writer do, as a rule; and to look at their bytes is ten times as fast as to match each.
    """
    _, ends, content = texts.buffers()
    places = np.frombuffer(ends, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    if not (np.diff(places) == len(first)).all():
        return False
    found = np.frombuffer(content, np.uint8)[places[0] : places[-1]].reshape(len(texts), len(first))
    expected = np.frombuffer(first, np.uint8)
    is_digit = (expected >= ord("0")) & (expected <= ord("9")) & (np.arange(len(first)) < time_end)
    differing = found ^ np.where(is_digit, ord("0"), expected).astype(np.uint8)  # digits become their numbers
    if (differing.max(axis=0) > np.where(is_digit, 9, 0)).any():
        return False
    return bool(differing[:, 0].min() > 0 or differing[:, :_YEAR].any(axis=1).all())


def _local(texts: pa.StringArray, kind: pa.TimestampType, zone: tzinfo | None) -> Any:
    """Return times that name no zone, as they are or as those of `zone`."""
    local = texts.cast(pa.timestamp(kind.unit))
    if kind.tz is None:
        return local
    if zone is None:
        raise pa.ArrowInvalid(NO_ZONE)
    return _instants(local, zone).cast(kind)


def _instants(local: pa.TimestampArray, zone: tzinfo) -> Any:
    """Return when a clock of a zone shows these times, of which one is not null."""
    unit, numbers = local.type.unit, local.cast(pa.int64())
    per_second = 10 ** _DIGITS[unit]
    if isinstance(zone, timezone):
        return pc.subtract(numbers, _offset_seconds(zone, 0) * per_second).cast(pa.timestamp(unit, "UTC"))
    least = pc.min(numbers).as_py()
    step = 60 if least >= _WHOLE_MINUTES_SINCE * per_second else 1
    found = pc.fill_null(numbers, least).to_numpy(zero_copy_only=False)
    steps = pa.array(found // (step * per_second)).dictionary_encode()
    offsets = np.array([_offset_seconds(zone, each * step) for each in steps.dictionary.to_pylist()], np.int64)
    instants = found - offsets[steps.indices.to_numpy()] * per_second
    return pa.array(instants, pa.int64(), mask=np.asarray(numbers.is_null())).cast(pa.timestamp(unit, "UTC"))


def _offset_seconds(zone: tzinfo, second: int) -> int:
    offset = zone.utcoffset(_EPOCH + timedelta(seconds=second))
    assert offset is not None, "the zone knows all times"
    return round(offset.total_seconds())
