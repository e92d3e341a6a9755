r"""Output formats for records: kcat's, JSON lines, and plain values.

kcat's escapes: %t topic, %p partition, %o offset, %k key, %s value, %K and %S their lengths (-1 for null), %R the
value's length as four bytes, %T timestamp, %h headers as `name=value,…`, %% a percent sign; and \n \r \t \0 \xNN.
Keys and values pass through as the bytes they are. A format is compiled once; a record costs one call per piece.
"""

import base64
import json
import re
from collections.abc import Callable, Sequence
from struct import Struct
from typing import Final, NamedTuple, Protocol

from riverlog.cli.terminal.exits import usage_error
from riverlog.cli.terminal.expressions import unescape
from riverlog.cli.terminal.render import Row, as_json, as_yaml

_LENGTH: Final = Struct(">i")


class HeaderLike(Protocol):
    """A record header."""

    @property
    def key(self) -> str: ...
    @property
    def value(self) -> bytes | None: ...


class RecordLike(Protocol):
    """What a format reads of a record; the client's `ConsumerRecord` fits."""

    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def timestamp_ms(self) -> int: ...
    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...
    @property
    def headers(self) -> Sequence[HeaderLike]: ...


Piece = Callable[[RecordLike], bytes]
NULL: Final = b"NULL"


def compile_format(text: str, *, null: bytes = b"") -> Piece:
    """Compile a format; `null` stands for keys and values that are null."""
    letters = _letters(null)
    pieces: list[Piece] = []
    for literal, letter in re.findall(r"((?:[^%])*)(%.?)?", text, re.DOTALL):
        if literal:
            pieces.append(_constant(unescape(literal)))
        if not letter:
            continue
        if letter[1:] not in letters:
            raise usage_error(
                f"'{letter}' means nothing in a format; known are {' '.join(f'%{each}' for each in letters)}"
            )
        pieces.append(letters[letter[1:]])
    return lambda record: b"".join([piece(record) for piece in pieces])


def as_line(record: RecordLike, *, null: bytes = b"") -> bytes:
    """Print the value and a newline, as it is."""
    return (null if record.value is None else record.value) + b"\n"


def as_visible_line(record: RecordLike, *, null: bytes = b"") -> bytes:
    """Print the value for a terminal: what is not printable is shown, not executed."""
    text = as_line(record, null=null)[:-1].decode("utf-8", "backslashreplace")
    return (visible(text) + "\n").encode()


def visible(text: str) -> str:
    """Show what is not printable instead of printing it."""
    return _UNPRINTABLE.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def as_json_line(record: RecordLike) -> bytes:
    """Print all of a record as one line of JSON."""
    return as_json(_fields(record)).encode() + b"\n"


def as_yaml_item(record: RecordLike) -> bytes:
    """Print all of a record as one item of a YAML list."""
    return ("\n".join(as_yaml([_fields(record)])) + "\n").encode()


def plain(content: bytes | None) -> str | dict[str, str] | None:
    """Return bytes as a JSON value: text, or `{"base64": "…"}` where they are not UTF-8."""
    if content is None:
        return None
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(content).decode("ascii")}


class ReadRecord(NamedTuple):
    """A record as a line describes it."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp_ms: int | None = None


def record_of_json(line: bytes) -> ReadRecord:
    """Read what `as_json_line` prints; ValueError says what is wrong. Topic, partition and offset are passed over."""
    try:
        found = json.loads(line)
    except json.JSONDecodeError as error:
        raise ValueError(f"{error.msg} at column {error.colno}") from None
    if not isinstance(found, dict) or "value" not in found:
        raise ValueError('it needs at least {"value": …}')
    headers = found.get("headers") or []
    if not isinstance(headers, list) or not all(isinstance(each, dict) and "key" in each for each in headers):
        raise ValueError('headers are a list of {"key": …, "value": …}')
    timestamp_ms = found.get("timestamp_ms")
    if timestamp_ms is not None and not (isinstance(timestamp_ms, int) and timestamp_ms >= 0):
        raise ValueError("timestamp_ms is a whole number of at least 0")
    return ReadRecord(
        key=content_of("key", found.get("key")),
        value=content_of("value", found["value"]),
        headers=tuple((str(each["key"]), content_of("a header", each.get("value"))) for each in headers),
        timestamp_ms=timestamp_ms,
    )


def content_of(part: str, value: object) -> bytes | None:
    """Return the bytes that `plain` made a JSON value of."""
    match value:
        case None:
            return None
        case str():
            return value.encode("utf-8", "surrogatepass")
        case {"base64": str(text), **others} if not others:
            return base64.b64decode(text, validate=True)
        case _:
            raise ValueError(f'{part} is text, null or {{"base64": "…"}}')


_UNPRINTABLE: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def _fields(record: RecordLike) -> Row:
    """Name all of a record as plain values."""
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp_ms": record.timestamp_ms,
        "key": plain(record.key),
        "value": plain(record.value),
        "headers": [{"key": header.key, "value": plain(header.value)} for header in record.headers],
    }


def _letters(null: bytes) -> dict[str, Piece]:
    return {
        "t": lambda record: record.topic.encode(),
        "p": lambda record: b"%d" % record.partition,
        "o": lambda record: b"%d" % record.offset,
        "k": lambda record: null if record.key is None else record.key,
        "s": lambda record: null if record.value is None else record.value,
        "K": lambda record: b"%d" % _length(record.key),
        "S": lambda record: b"%d" % _length(record.value),
        "R": lambda record: _LENGTH.pack(_length(record.value)),
        "T": lambda record: b"%d" % record.timestamp_ms,
        "h": _headers,
        "%": _constant(b"%"),
    }


def _constant(content: bytes) -> Piece:
    return lambda _: content


def _length(content: bytes | None) -> int:
    return -1 if content is None else len(content)


def _headers(record: RecordLike) -> bytes:
    return b",".join(
        header.key.encode() + b"=" + (NULL if header.value is None else header.value) for header in record.headers
    )
