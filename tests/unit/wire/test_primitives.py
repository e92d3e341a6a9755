"""Varints and tagged fields, at their edges."""

import pytest

from riverlog.wire.primitives import MalformedMessage, skip_tagged_fields, uuid_of, varint, varint_bytes, varint_rest

EDGES = [0, 1, 127, 128, 16_383, 16_384, 2_097_151, 2_097_152, 2**28 - 1, 2**28, 2**31 - 1, 2**32 - 1]


@pytest.mark.parametrize("value", EDGES)
def test_a_varint_comes_back(value: int) -> None:
    encoded = varint_bytes(value)
    assert varint(memoryview(b"\xff" + encoded), 1) == (value, 1 + len(encoded))
    if value > 127:
        assert bytes([value & 127 | 128]) + varint_rest(value) == encoded


def test_varints_as_others_write_them() -> None:
    assert varint_bytes(300).hex() == "ac02"
    assert varint_bytes(2**31 - 1).hex() == "ffffffff07"


@pytest.mark.parametrize("encoded", ["8080808080", "ffffffffffffffff7f", "808080808001"])
def test_a_varint_over_five_bytes_is_malformed(encoded: str) -> None:
    with pytest.raises(MalformedMessage, match="5 bytes"):
        varint(memoryview(bytes.fromhex(encoded)), 0)


@pytest.mark.parametrize("encoded", ["", "80", "8080", "80808080"])
def test_a_varint_that_ends_early_is_noticed(encoded: str) -> None:
    with pytest.raises(IndexError):  # the codec turns it into MalformedMessage
        varint(memoryview(bytes.fromhex(encoded)), 0)


def test_unknown_tagged_fields_are_stepped_over() -> None:
    fields = bytes.fromhex("00 03 aabbcc  64 00  ac02 01 ff".replace(" ", ""))
    assert skip_tagged_fields(memoryview(fields + b"rest"), 0, 3) == len(fields)


@pytest.mark.parametrize("fields", ["0004aabbcc", "00ffffffff0f", "00ffffffff7f"])
def test_a_tagged_field_larger_than_the_message_is_malformed(fields: str) -> None:
    with pytest.raises(MalformedMessage):
        skip_tagged_fields(memoryview(bytes.fromhex(fields)), 0, 1)


def test_a_uuid_is_built_once() -> None:
    raw = bytes(range(16))
    assert uuid_of(raw).bytes == raw
    assert uuid_of(bytes(range(16))) is uuid_of(raw)
