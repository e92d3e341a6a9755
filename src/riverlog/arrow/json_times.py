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
    unit: rf"^{_DATE}[T ][0-9:]{{8}}{rf'(?:[.][0-9]{{1,{digits}}})?' if digits else ''}{_ZONE}$"
    for unit, digits in _DIGITS.items()
}
"""Times with a zone, and no more digits than their type has: nothing is to be done to these. Arrow checks the hours."""
_OFFSET: Final = re.compile(r"(?:UTC|GMT|UT)?([+-])([0-9]{1,2})(?::?([0-9]{2}))?")
_EPOCH: Final = datetime(1970, 1, 1)
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
    if kind.tz is not None and _matches(texts, _USUAL[kind.unit]):
        return texts.cast(kind)
    _all_match(texts, _TIME, NOT_A_TIME)
    texts = _cut(texts, _DIGITS[kind.unit])
    is_zoned = pc.match_substring_regex(texts, _ZONED)
    if kind.tz is None:
        if pc.any(is_zoned).as_py():
            raise pa.ArrowInvalid(ZONED)
        return texts.cast(kind)
    if pc.all(is_zoned).as_py():  # nulls are left out
        return texts.cast(kind)
    if zone is None:
        raise pa.ArrowInvalid(NO_ZONE)
    nothing = pa.scalar(None, pa.string())
    local = _instants(pc.if_else(is_zoned, nothing, texts).cast(pa.timestamp(kind.unit)), zone)
    return pc.coalesce(pc.if_else(is_zoned, texts, nothing).cast(kind), local.cast(kind))


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
    """Tell whether all texts but nulls match."""
    return pc.all(pc.match_substring_regex(texts, pattern)).as_py() is not False


def _cut(texts: pa.StringArray, digits: int) -> pa.StringArray:
    """Cut off the digits of a second that are too many."""
    if digits == 0:
        return pc.replace_substring_regex(texts, r"\.[0-9]+", "")
    return pc.replace_substring_regex(texts, rf"(\.[0-9]{{{digits}}})[0-9]+", r"\1")


def _instants(local: pa.TimestampArray, zone: tzinfo) -> Any:
    """Return when a clock of a zone shows these times."""
    unit = local.type.unit
    per_second = 10 ** _DIGITS[unit]
    is_null = np.asarray(local.is_null())
    numbers = pc.fill_null(local.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
    seconds, which = np.unique(numbers // per_second, return_inverse=True)
    offsets = np.array([_offset_seconds(zone, second) for second in seconds.tolist()], np.int64)
    found = numbers - offsets[which] * per_second if len(numbers) else numbers
    return pa.array(found, pa.int64(), mask=is_null).cast(pa.timestamp(unit, "UTC"))


def _offset_seconds(zone: tzinfo, second: int) -> int:
    offset = zone.utcoffset(_EPOCH + timedelta(seconds=second))
    assert offset is not None, "the zone knows all times"
    return round(offset.total_seconds())
