"""Formats for records: kcat's escapes, JSON lines, plain values."""

import base64
import json
import re
from typing import NamedTuple

import pytest

from riverlog.cli.terminal.exits import CommandError
from riverlog.cli.terminal.record_formats import (
    ReadRecord,
    as_json_line,
    as_line,
    as_visible_line,
    compile_format,
    record_of_json,
)


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


@pytest.mark.parametrize(
    "record", [Record(), Record(key=None, value=None, headers=()), Record(value=b'{"base64": "AA=="}', key=b"\xc3\xa4")]
)
def test_what_is_printed_as_json_is_read_back(record: Record) -> None:
    headers = tuple((header.key, header.value) for header in record.headers)
    assert record_of_json(as_json_line(record)) == ReadRecord(record.key, record.value, headers, record.timestamp_ms)


def test_a_value_alone_is_a_record() -> None:
    assert record_of_json(b'{"value": "x"}') == ReadRecord(None, b"x")


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (b"x", "Expecting value at column 1"),
        (b"7", 'it needs at least {"value": '),
        (b'{"key": "k"}', 'it needs at least {"value": '),
        (b'{"value": 7}', 'value is text, null or {"base64"'),
        (b'{"value": {"a": 1}}', 'value is text, null or {"base64"'),
        (b'{"value": {"base64": "?"}}', "base64"),
        (b'{"value": "v", "key": []}', 'key is text, null or {"base64"'),
        (b'{"value": "v", "headers": {"a": "b"}}', "headers are a list"),
        (b'{"value": "v", "timestamp_ms": "now"}', "timestamp_ms is a whole number"),
    ],
)
def test_what_is_no_record_is_named(line: bytes, sentence: str) -> None:
    with pytest.raises(ValueError, match=re.escape(sentence) if sentence != "base64" else ".") as wrong:
        record_of_json(line)
    assert str(wrong.value)
