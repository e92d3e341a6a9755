"""What compiled codecs call where a line of their own would be too long: varints, tagged fields, refusals."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, NoReturn
from uuid import UUID

from riverlog.model.ports import Buffer, FileRange
from riverlog.wire.limits import ERROR_MESSAGE_CHARACTERS_MAX

FramePart = Buffer | FileRange
"""A piece of an encoded message: bytes, or records that still lie in a file."""

Decoder = Callable[[memoryview, int], tuple[Any, int]]
"""Reads one version of a message from a position on; gives it and the position behind it."""

ItemEncoder = Callable[[Any, bytearray], list[FramePart]]
"""Writes one version of a message behind what the bytes hold; they are the first part of the answer."""

VARINT_BYTES_MAX: Final = 5
STRING_BYTES_MAX: Final = (1 << 15) - 1
"""What an int16 can count. Compact lengths could say more, but Kafka reads no longer strings in any version."""


class MalformedMessage(Exception):
    """The bytes are not the message that they claim to be."""


def refuse(field: str, count: int, left: int) -> NoReturn:
    """Refuse a length or count that the bytes left cannot hold, or a null where none may be."""
    if count < 0:
        raise MalformedMessage(f"{field} is null or has a negative length")
    raise MalformedMessage(f"{field} claims {count}, more than the {left} bytes left can hold")


def refuse_text(field: str, length: int) -> NoReturn:
    """Refuse a string that older versions, and records in a log, could not hold."""
    raise MalformedMessage(f"{field} claims {length} bytes; a string has at most {STRING_BYTES_MAX}")


def refuse_elements(field: str, count: int, count_max: int) -> NoReturn:
    """Refuse a message that would unfold to more objects than any honest one."""
    raise MalformedMessage(f"{field} brings the message to {count} elements; the limit is {count_max}")


def refuse_tag(field: str) -> NoReturn:
    """Refuse a tagged field whose size is not that of its value."""
    raise MalformedMessage(f"the tagged field {field} does not have the size that it claims")


def long_varint(buffer: Buffer, position: int, first: int) -> tuple[int, int]:
    """Read the rest of an unsigned varint whose first byte, already taken, says that more follow."""
    second = buffer[position]
    if second < 0x80:  # 16 KB fit into two bytes: nearly all lengths end here
        return first & 0x7F | second << 7, position + 1
    value = first & 0x7F | (second & 0x7F) << 7
    for shift in range(14, 7 * VARINT_BYTES_MAX, 7):
        position += 1
        byte = buffer[position]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position + 1
    raise MalformedMessage(f"a varint runs over {VARINT_BYTES_MAX} bytes")


def varint(buffer: Buffer, position: int) -> tuple[int, int]:
    """Read an unsigned varint."""
    first = buffer[position]
    return (first, position + 1) if first < 0x80 else long_varint(buffer, position + 1, first)


def varint_bytes(value: int) -> bytes:
    """Write an unsigned varint."""
    if value < 0x80:
        return value.to_bytes()
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


def cut(message: str) -> str:
    """Shorten a message for people to what every version has room for."""
    too_long = len(message) > ERROR_MESSAGE_CHARACTERS_MAX
    return f"{message[: ERROR_MESSAGE_CHARACTERS_MAX - 1]}…" if too_long else message


@lru_cache(maxsize=4096)
def uuid_of(raw: bytes) -> UUID:
    """Read a UUID; the same few topic ids come again and again, and building one is slow."""
    return UUID(bytes=raw)
