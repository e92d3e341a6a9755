"""What callers hand over, checked at the call: one clear sentence there, and no failure in a task behind it."""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, Never

from riverlog.client.errors import KafkaError
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import Offset, TopicPartition
from riverlog.records.batch import HEADER_BYTES
from riverlog.records.record import HeadersLike, record_bytes_max

_TOPIC_BYTES_MAX: Final = 249
_STRING_BYTES_MAX: Final = 32_767
_INT32_MAX: Final = 2**31 - 1
_INT64_MAX: Final = 2**63 - 1


class BadArgument(ValueError):
    """What a caller handed over can be of no use; the message is a sentence for whoever gave it."""


class CheckedRecord(NamedTuple):
    """A record as it will be written. Nobody else can change what it holds."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    partition: int | None
    timestamp_ms: int | None
    size: int
    """The room that it needs in a batch, at most."""


def new_record(
    key: bytes | str | None,
    value: bytes | str | None,
    headers: HeadersLike,
    partition: int | None,
    timestamp_ms: int | None,
    *,
    request_bytes_max: int,
) -> CheckedRecord:
    """Check a record's parts: TypeError or ValueError says what is wrong, KafkaError that it is too large."""
    key_bytes = key if type(key) is bytes or key is None else _bytes("key", key)
    value_bytes = value if type(value) is bytes or value is None else _bytes("value", value)
    pairs = _pairs(headers) if headers else ()
    if partition is not None and not (type(partition) is int and 0 <= partition <= _INT32_MAX):
        check_whole("partition", partition, most=_INT32_MAX)
    if timestamp_ms is not None and not (type(timestamp_ms) is int and 0 <= timestamp_ms <= _INT64_MAX):
        check_whole("timestamp_ms", timestamp_ms, most=_INT64_MAX)
    size = record_bytes_max(key_bytes, value_bytes, pairs)
    if size + HEADER_BYTES > request_bytes_max:
        raise too_large(size, request_bytes_max)
    return CheckedRecord(key_bytes, value_bytes, pairs, partition, timestamp_ms, size)


def check_topic(topic: object) -> None:
    """Refuse what cannot be a topic's name."""
    if not isinstance(topic, str):
        raise TypeError(f"a topic is named by a str, not {_kind(topic)}")
    if not topic:
        raise BadArgument("a topic's name must not be empty")
    if len(topic.encode()) > _TOPIC_BYTES_MAX:
        raise BadArgument(f"a topic's name has at most {_TOPIC_BYTES_MAX} characters, not {len(topic)}")


def check_whole(name: str, number: object, *, least: int = 0, most: int = _INT64_MAX) -> None:
    """Refuse what is no whole number within these bounds."""
    if not isinstance(number, int) or isinstance(number, bool):
        raise TypeError(f"{name} is a whole number, not {_kind(number)}: {number!r}")
    if not least <= number <= most:
        raise BadArgument(f"{name} is a whole number from {least} to {most}, not {number}")


def checked_offset(number: object) -> Offset:
    """Return an offset to commit or to read from; TypeError or ValueError where it is none."""
    check_whole("an offset", number)
    assert isinstance(number, int)
    return Offset(number)


def checked_text(name: str, text: object) -> str:
    """Return what a request can hold as a name or a value; TypeError or ValueError where it cannot."""
    if not isinstance(text, str):
        raise TypeError(f"{name} is a str, not {_kind(text)}: {text!r}")
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise BadArgument(f"{name} cannot be written: {text!r} has half a surrogate pair") from None
    if size > _STRING_BYTES_MAX:
        raise BadArgument(f"{name} has at most {_STRING_BYTES_MAX} bytes, not {size}")
    return text


def checked_texts(name: str, texts: object) -> list[str]:
    """Return one name, or several, as a list; `name` says in words what each is."""
    if isinstance(texts, str):
        return [checked_text(name, texts)]
    if isinstance(texts, bytes | bytearray | memoryview) or not isinstance(texts, Iterable):
        raise TypeError(f"{name} is a str, or there are several, not {_kind(texts)}: {texts!r}")
    return [checked_text(name, text) for text in texts]


def checked_setting(name: str, setting: object) -> str:
    """Return the value of a setting as text; TypeError where it is neither text nor a number nor a truth."""
    if isinstance(setting, bool):
        return "true" if setting else "false"
    if isinstance(setting, int | float):
        return str(setting)
    return checked_text(f"the value of {name!r}", setting)


def checked_int32(name: str, number: object, *, least: int = 0) -> int:
    """Return a number that a request can hold; TypeError or ValueError where it is none."""
    check_whole(name, number, least=least, most=_INT32_MAX)
    assert isinstance(number, int)
    return number


def checked_int64(name: str, number: object, *, least: int = 0) -> int:
    """As above, for numbers that may be larger."""
    check_whole(name, number, least=least)
    assert isinstance(number, int)
    return number


def checked_partition(partition: object) -> TopicPartition:
    """Return a partition that was given as a topic's name and a number."""
    if not isinstance(partition, tuple | list) or len(partition) != 2:
        raise TypeError(f"a partition is a topic's name and a number, not {_kind(partition)}: {partition!r}")
    topic, number = partition
    return TopicPartition(checked_text("a topic's name", topic), checked_int32("a partition's number", number))


def too_large(size: int, request_bytes_max: int) -> KafkaError:
    """Make the error for a record that no request can hold."""
    return KafkaError(
        ErrorCode.MESSAGE_TOO_LARGE, f"the record needs {size} bytes; request_bytes_max allows {request_bytes_max}"
    )


def _bytes(part: str, content: object) -> bytes:
    if isinstance(content, str):
        return content.encode()
    if isinstance(content, bytes | bytearray | memoryview):
        return bytes(content)
    raise TypeError(f"a record's {part} is bytes, str or None, not {_kind(content)}; serialize it first")


def _pairs(headers: object) -> tuple[tuple[str, bytes | None], ...]:
    if isinstance(headers, str | bytes | bytearray | memoryview) or not isinstance(headers, Iterable):
        _refuse_headers(headers)
    return tuple(_pair(each) for each in (headers.items() if isinstance(headers, Mapping) else headers))


def _pair(pair: object) -> tuple[str, bytes | None]:
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        _refuse_headers(pair)
    name, content = pair
    if not isinstance(name, str):
        raise TypeError(f"a header's name is a str, not {_kind(name)}: {name!r}")
    name.encode()  # half a surrogate pair is noticed here
    if content is None or type(content) is bytes:
        return name, content
    if isinstance(content, bytearray | memoryview):
        return name, bytes(content)
    raise TypeError(f"the content of header {name!r} is bytes or None, not {_kind(content)}; encode it first")


def _refuse_headers(given: object) -> Never:
    raise TypeError(f"headers are a mapping, or pairs of a name and bytes, not {_kind(given)}")


def _kind(given: object) -> str:
    return type(given).__name__
