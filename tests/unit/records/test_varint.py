"""Varints: what is written is read again, by a call and in line, and never more than 64 bits."""

import pytest

from riverlog.records.errors import CorruptBatch
from riverlog.records.varint import VARINT_BYTES_MAX, VARINTS, compile_flat, long_varint, read_varint

NUMBERS = [0, -1, 1, 63, -64, 64, -65, 8_191, 8_192, -8_193, 1 << 31, -(1 << 31), (1 << 63) - 1, -(1 << 63)]

read_in_line = compile_flat(
    "read_in_line",
    """
def read_in_line(data, position):
    if position >= 0:
        VARINT
    return number, position
""",
    {},
)


@pytest.mark.parametrize("number", NUMBERS)
def test_what_is_written_is_read_again_by_a_call_and_in_line(number: int) -> None:
    data = b"\x7f" + VARINTS[number] + b"\x7f"
    end = len(data) - 1
    assert end - 1 <= VARINT_BYTES_MAX
    assert read_varint(data, 1) == (number, end)
    assert read_in_line(data, 1) == long_varint(data, 1) == ((number << 1) ^ (number >> 63), end)


def test_bytes_that_break_off_are_an_index_error() -> None:
    for data in (b"", b"\x80", b"\xff\xff"):
        for read in (long_varint, read_in_line, read_varint):
            with pytest.raises(IndexError):
                read(data, 0)


def test_more_than_64_bits_are_corrupt() -> None:
    for data in (b"\xff" * 9 + b"\x7f", b"\xff" * 11):
        for read in (long_varint, read_in_line, read_varint):
            with pytest.raises(CorruptBatch, match="more than 64 bits"):
                read(data, 0)
