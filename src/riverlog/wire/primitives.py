"""What compiled codecs call where a line of their own would be too long: varints, tagged fields, refusals."""

from functools import lru_cache
from struct import pack, unpack_from
from typing import Final, NoReturn
from uuid import UUID

from riverlog.model.limits import MESSAGE_ELEMENTS_MAX
from riverlog.model.ports import Buffer

__all__ = ["pack", "unpack_from"]

VARINT_BYTES_MAX: Final = 5


class MalformedMessage(Exception):
    """The bytes are not the message that they claim to be."""


def refuse(field: str, count: int, left: int) -> NoReturn:
    """Refuse a length or count that the bytes left cannot hold, or a null where none may be."""
    if count < 0:
        raise MalformedMessage(f"{field} is null or has a negative length")
    raise MalformedMessage(f"{field} claims {count}, more than the {left} bytes left can hold")


def refuse_elements(field: str, count: int) -> NoReturn:
    """Refuse a message that would unfold to more objects than any honest one."""
    raise MalformedMessage(f"{field} brings the message to {count} elements; the limit is {MESSAGE_ELEMENTS_MAX}")


def refuse_tag(field: str) -> NoReturn:
    """Refuse a tagged field whose size is not that of its value."""
    raise MalformedMessage(f"the tagged field {field} does not have the size that it claims")


def long_varint(buffer: Buffer, position: int, first: int) -> tuple[int, int]:
    """Read the rest of an unsigned varint whose first byte, already taken, says that more follow."""
    value = first & 0x7F
    for shift in range(7, 7 * VARINT_BYTES_MAX, 7):
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise MalformedMessage(f"a varint runs over {VARINT_BYTES_MAX} bytes")


def varint(buffer: Buffer, position: int) -> tuple[int, int]:
    """Read an unsigned varint."""
    first = buffer[position]
    return (first, position + 1) if first < 0x80 else long_varint(buffer, position + 1, first)


def varint_bytes(value: int) -> bytes:
    """Write an unsigned varint."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def varint_rest(value: int) -> bytes:
    """Write an unsigned varint of more than one byte without its first."""
    return varint_bytes(value >> 7)


def skip_tagged_fields(buffer: Buffer, position: int, count: int) -> int:
    """Step over tagged fields that nobody here knows; nothing of them is kept."""
    if count > 0x7F:
        count, position = long_varint(buffer, position, count)
    end = len(buffer)
    for _ in range(count):
        _, position = varint(buffer, position)
        size, position = varint(buffer, position)
        if size > end - position:
            refuse("a tagged field", size, end - position)
        position += size
    return position


@lru_cache(maxsize=4096)
def uuid_of(raw: bytes) -> UUID:
    """Read a UUID; the same few topic ids come again and again, and building one is slow."""
    return UUID(bytes=raw)
