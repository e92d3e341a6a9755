"""Records that say who they are: whoever reads one can tell whether it is whole, and in its place.

A value is the record's name, then a filling that follows from it up to the wanted size. What is not such a value gets a
name that no record has, so that the judge calls it invented.
"""

from typing import Final

from riverlog.verify.history import Value

_SHOWN_BYTES: Final = 32


def value_of(name: Value, size: int) -> bytes:
    """Return the bytes of the record of this name, as many as wanted if the name has room in them."""
    head = f"{name} {size}|".encode()
    filling = head * (size // len(head) + 1)
    return (head + filling)[: max(size, len(head))]


def name_of(key: bytes | None, value: bytes | None) -> Value:
    """Return the name of the record that was read; the key must be the name."""
    value = value or b""
    name, _, size = value.partition(b"|")[0].decode(errors="replace").partition(" ")
    if size.isdecimal() and int(size[:9]) <= len(value) and value_of(name, int(size[:9])) == value:
        return name if key == name.encode() else f"{name} with the key {key!r}"
    shown = repr(value[:_SHOWN_BYTES]) + ("…" if len(value) > _SHOWN_BYTES else "")
    return f"{len(value)} bytes {shown}"
