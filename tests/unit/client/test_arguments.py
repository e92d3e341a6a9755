"""What is wrong with a record is said where it is handed over."""

from typing import Any

import pytest

from riverlog.client.arguments import (
    check_topic,
    checked_offset,
    checked_partition,
    checked_setting,
    checked_texts,
    new_record,
)
from riverlog.client.errors import KafkaError
from riverlog.records.record import record_bytes_max


def record(**parts: Any) -> Any:
    given = {"key": None, "value": None, "headers": (), "partition": None, "timestamp_ms": None} | parts
    return new_record(**given, request_bytes_max=1_000)


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        ({"key": 7}, "a record's key is bytes, str or None, not int"),
        ({"value": {"a": 1}}, "a record's value is bytes, str or None, not dict; serialize it first"),
        ({"timestamp_ms": 1.5}, "timestamp_ms is a whole number, not float: 1.5"),
        ({"timestamp_ms": -1}, "timestamp_ms is a whole number from 0 to 9223372036854775807, not -1"),
        ({"timestamp_ms": 2**63}, "timestamp_ms is a whole number from 0 to 9223372036854775807"),
        ({"partition": -1}, "partition is a whole number from 0 to 2147483647, not -1"),
        ({"partition": 2**31}, "partition is a whole number from 0 to 2147483647"),
        ({"partition": "0"}, "partition is a whole number, not str: '0'"),
        ({"partition": True}, "partition is a whole number, not bool"),
        ({"headers": 7}, "headers are a mapping, or pairs of a name and bytes, not int"),
        ({"headers": "ab"}, "headers are a mapping, or pairs of a name and bytes, not str"),
        ({"headers": [("a", b"1", b"2")]}, "headers are a mapping, or pairs of a name and bytes, not tuple"),
        ({"headers": [b"ab"]}, "headers are a mapping, or pairs of a name and bytes, not bytes"),
        ({"headers": {b"a": b"1"}}, "a header's name is a str, not bytes"),
        ({"headers": {"a": "1"}}, "the content of header 'a' is bytes or None, not str; encode it first"),
        ({"headers": {"\ud800": b""}}, "surrogates not allowed"),
        ({"key": "\ud800"}, "surrogates not allowed"),
    ],
)
def test_a_wrong_part_is_named(parts: dict[str, Any], sentence: str) -> None:
    with pytest.raises((TypeError, ValueError), match=r".") as raised:
        record(**parts)
    assert sentence in str(raised.value)


def test_a_record_is_bytes_that_nobody_else_can_change() -> None:
    content, pairs = bytearray(b"value"), [("a", memoryview(b"1")), ("a", None)]
    made = record(key="n\u00e4me", value=content, headers=iter(pairs), timestamp_ms=2**63 - 1, partition=0)
    content[:] = b"other"
    assert made[:5] == ("n\u00e4me".encode(), b"value", (("a", b"1"), ("a", None)), 0, 2**63 - 1)
    assert made.size == record_bytes_max(made.key, made.value, made.headers)


def test_headers_count() -> None:
    with pytest.raises(KafkaError, match="request_bytes_max allows 1000"):
        record(headers={"a": bytes(1_000)})


@pytest.mark.parametrize("topic", [None, b"orders", "", "x" * 250, "\ud800"])
def test_what_is_no_topic(topic: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        check_topic(topic)


@pytest.mark.parametrize("offset", [-1, 1.0, "7", 2**63])
def test_what_is_no_offset(offset: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        checked_offset(offset)
    assert checked_offset(7) == 7


@pytest.mark.parametrize("partition", ["ab", ("t",), ("t", 0, 1), (7, 0), ("t", 0.0), ("t", -1), ("t", 2**31), None])
def test_what_is_no_partition(partition: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        checked_partition(partition)


def test_names_and_settings_as_a_request_holds_them() -> None:
    assert checked_partition(["t", 1]) == ("t", 1)
    assert (checked_texts("x", "one"), checked_texts("x", ("a", "b"))) == (["one"], ["a", "b"])
    assert [checked_setting("x", value) for value in ("a", 7, 0.5, True)] == ["a", "7", "0.5", "true"]
