"""Formats for records: kcat's escapes, JSON lines, plain values."""

import base64
import json
from typing import NamedTuple

import pytest

from riverlog.cli.terminal.exits import CommandError
from riverlog.cli.terminal.record_formats import as_json_line, as_line, as_visible_line, compile_format


class Header(NamedTuple):
    key: str
    value: bytes | None


class Record(NamedTuple):
    topic: str = "orders"
    partition: int = 3
    offset: int = 42
    timestamp_ms: int = 1_700_000_000_123
    key: bytes | None = b"k\xff"
    value: bytes | None = b"a\nb\0"
    headers: tuple[Header, ...] = (Header("h", b"1"), Header("h", None))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("%t", b"orders"),
        ("%p", b"3"),
        ("%o", b"42"),
        ("%k", b"k\xff"),
        ("%s", b"a\nb\0"),
        ("%K", b"2"),
        ("%S", b"4"),
        ("%R", b"\x00\x00\x00\x04"),
        ("%T", b"1700000000123"),
        ("%h", b"h=1,h=NULL"),
        ("%%s", b"%s"),
        (r"%t-%p@%o\t%k\x3d\n", b"orders-3@42\tk\xff=\n"),
        ("", b""),
        ("no escapes", b"no escapes"),
    ],
)
def test_each_escape_of_a_format(text: str, expected: bytes) -> None:
    assert compile_format(text)(Record()) == expected


def test_null_is_empty_or_what_stands_for_it_and_its_length_is_minus_one() -> None:
    record = Record(key=None, value=None)
    assert compile_format("[%k|%s|%K|%S|%R]")(record) == b"[||-1|-1|\xff\xff\xff\xff]"
    assert compile_format("[%k|%s]", null=b"NULL")(record) == b"[NULL|NULL]"
    assert compile_format("[%k|%s]", null=b"NULL")(Record(key=b"", value=b"")) == b"[|]"


def test_a_record_cannot_smuggle_an_escape_into_its_own_output() -> None:
    assert compile_format("%k%s")(Record(key=b"%s", value=rb"\n")) == rb"%s\n"


@pytest.mark.parametrize("text", ["%x", "%", "100%", "% s"])
def test_an_unknown_escape_is_refused_with_the_known_ones(text: str) -> None:
    with pytest.raises(CommandError, match="means nothing in a format; known are %t %p"):
        compile_format(text)


def test_a_plain_line_is_the_value_as_it_is() -> None:
    assert as_line(Record()) == b"a\nb\0\n"
    assert as_line(Record(value=None)) == b"\n"


def test_a_line_for_a_terminal_shows_what_it_must_not_execute() -> None:
    assert as_visible_line(Record(value="grün \x1b[31m\t\x9b\r".encode() + b"\xff")) == (
        "grün \\x1b[31m\t\\x9b\\x0d\\xff\n".encode()
    )


def test_a_json_line_holds_all_of_a_record_and_any_bytes() -> None:
    line = as_json_line(Record(value="größer\n".encode()))
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert json.loads(line) == {
        "topic": "orders",
        "partition": 3,
        "offset": 42,
        "timestamp_ms": 1_700_000_000_123,
        "key": {"base64": base64.b64encode(b"k\xff").decode()},
        "value": "größer\n",
        "headers": [{"key": "h", "value": "1"}, {"key": "h", "value": None}],
    }
    assert json.loads(as_json_line(Record(key=None, value=None)))["value"] is None
