"""Varints of records: zig-zag, seven bits in a byte, at most 64 bits.

To read one takes less time than a call does, and every record has five. So the functions that go through records are
written with the line `VARINT` wherever one is read, and compiled with the reading in its place.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from riverlog.records.errors import CorruptBatch

VARINT_BYTES_MAX: Final = 10
_BITS_MAX: Final = 64

_IN_LINE: Final = """
number = data[position]
if number < 0x80:
    position += 1
elif (second := data[position + 1]) < 0x80:
    number += (second << 7) - 0x80
    position += 2
else:
    number, position = long_varint(data, position)
"""
"""Read `number`, still zig-zag, at `position` of `data`; reading behind the end is an IndexError."""


def compile_flat(name: str, source: str, names: Mapping[str, object]) -> Callable[..., Any]:
    """Compile a function in which each line `VARINT` stands for the reading of a varint; it may use these names."""
    lines: list[str] = []
    for line in source.splitlines():
        if line.strip() == "VARINT":
            depth = line[: -len("VARINT")]
            lines += (depth + each for each in _IN_LINE.strip().splitlines())
        else:
            lines.append(line)
    namespace: dict[str, Any] = {"CorruptBatch": CorruptBatch, "long_varint": long_varint, **names}
    exec(compile("\n".join(lines), f"<records: {name}>", "exec"), namespace)
    compiled: Callable[..., Any] = namespace[name]
    return compiled


def long_varint(data: bytes, position: int) -> tuple[int, int]:
    """Read a number of any length, still zig-zag; return it and the position behind it."""
    number = 0
    shift = 0
    for place in range(position, position + VARINT_BYTES_MAX):
        byte = data[place]
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            if number >> _BITS_MAX:
                break
            return number, place + 1
        shift += 7
    raise CorruptBatch(f"a number has more than {_BITS_MAX} bits")


def read_varint(data: bytes, position: int) -> tuple[int, int]:
    """Read a signed number; return it and the position behind it."""
    number = data[position]
    if number < 0x80:
        return (number >> 1) ^ -(number & 1), position + 1
    number, position = long_varint(data, position)
    return (number >> 1) ^ -(number & 1), position


class _Varints(dict[int, bytes]):
    """Varints by their numbers, remembered while they are small: the lengths and deltas of ordinary records repeat."""

    _REMEMBERED_MAX: Final = 8_192

    def __missing__(self, number: int) -> bytes:
        rest = (number << 1) ^ (number >> 63)
        encoded = bytearray()
        while rest > 0x7F:
            encoded.append(rest & 0x7F | 0x80)
            rest >>= 7
        encoded.append(rest)
        varint = bytes(encoded)
        if 0 <= number < self._REMEMBERED_MAX:
            self[number] = varint
        return varint


VARINTS: Final = _Varints()
