"""Bytes made worse: the changes that find what a parser forgot to check."""

from random import Random
from typing import Final

_INTEGERS: Final = {
    1: (0, 1, 0x7F, 0x80, 0xFF),
    2: (-1, 0, 0x7FFF, -0x8000),
    4: (-1, -2, 0, 1, 0x7FFF_FFFF, -0x8000_0000, 0x00FF_FFFF),
    8: (-1, 0x7FFF_FFFF_FFFF_FFFF, -0x8000_0000_0000_0000),
}
_NUMBERS: Final = (
    *(number.to_bytes(size, signed=number < 0) for size, numbers in _INTEGERS.items() for number in numbers),
    b"\x80\x80\x80\x80\x08",  # varints: 2^31, 2^32 - 1, one that never ends, one in more bytes than it needs
    b"\xff\xff\xff\xff\x0f",
    b"\xff" * 11,
    b"\x81\x80\x80\x80\x00",
)
_CHANGES_MAX: Final = 4


def mutate(data: bytes, random: Random, other: bytes = b"") -> bytes:
    """Return the bytes with a few changes; `other` is where foreign parts come from."""
    raw = bytearray(data)
    for _ in range(random.randrange(1, _CHANGES_MAX + 1)):
        at = random.randrange(len(raw) + 1)
        match random.randrange(8):
            case 0 if at < len(raw):
                raw[at] ^= 1 << random.randrange(8)
            case 1 if at < len(raw):
                raw[at] = random.randrange(256)
            case 2:
                number = random.choice(_NUMBERS)
                raw[at : at + len(number)] = number
            case 3:
                raw[at:at] = random.choice(_NUMBERS)
            case 4:
                del raw[at : at + random.randrange(1, 9)]
            case 5:
                del raw[at:]
            case 6:
                raw[at:at] = raw[at : at + random.randrange(1, 33)] * random.randrange(1, 4)
            case 7:
                begin = random.randrange(len(other) + 1)
                raw[at:at] = other[begin : begin + random.randrange(1, 65)]
    return bytes(raw)
