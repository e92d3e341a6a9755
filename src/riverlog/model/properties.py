"""Read Java's properties files: `server.properties` as Kafka's documentation shows it."""

from collections.abc import Iterator
from typing import Final

from riverlog.model.setting import BadSetting

_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_HEX_DIGITS: Final = frozenset("0123456789abcdefABCDEF")


def read_properties(text: str) -> dict[str, str]:
    """Read name and value of each line; the last of two equal names holds, as in Java."""
    return dict(_pair(number, line) for number, line in _logical_lines(text))


def line_numbers(text: str) -> dict[str, int]:
    """Return the line of each name, of the last where a name stands twice: that one holds."""
    return {_pair(number, line)[0]: number for number, line in _logical_lines(text)}


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Find each line that holds a setting, with its number; a backslash at the end joins it with the next."""
    joined, began = "", 0
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.lstrip()
        if not joined and (not line or line[0] in "#!"):
            continue
        began = began if joined else number
        trailing = len(line) - len(line.rstrip("\\"))
        if trailing % 2:
            joined += line[:-1]
            continue
        yield began, joined + line
        joined = ""
    if joined:
        yield began, joined


def _pair(number: int, line: str) -> tuple[str, str]:
    position = 0
    while position < len(line) and line[position] not in "=: \t\f":
        position += 2 if line[position] == "\\" else 1
    name = _unescape(number, line[:position])
    rest = line[position:].lstrip(" \t\f")
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(" \t\f")
    if not name:
        raise BadSetting(f"Line {number} of the configuration has no name in front of its value: {line!r}.")
    return name, _unescape(number, rest).rstrip()


def _unescape(number: int, text: str) -> str:
    if "\\" not in text:
        return text
    pieces = []
    characters = iter(text)
    for character in characters:
        if character != "\\":
            pieces.append(character)
            continue
        escaped = next(characters, "")
        if escaped != "u":
            pieces.append(_ESCAPES.get(escaped, escaped))
            continue
        digits = "".join(next(characters, "") for _ in range(4))
        if len(digits) < 4 or not set(digits) <= _HEX_DIGITS:
            raise BadSetting(f"Line {number} of the configuration has \\u without four hex digits.")
        pieces.append(chr(int(digits, 16)))
    return "".join(pieces)
