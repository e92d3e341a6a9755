"""Request and response headers, and whole frames with them.

A request starts with API key, version, correlation id and client id; flexible versions add tagged fields, though the
client id stays a plain string. A response starts with the correlation id; flexible versions add tagged fields, except
that ApiVersions never does: its reader does not know yet which version was answered. One tagged field is our own: the
connection's window, told to clients that named themselves riverlog.
"""

import struct
from struct import Struct
from typing import Any, Final, NamedTuple

from riverlog.model.ports import Buffer, FileRange
from riverlog.wire.apis import APIS, Api, ApiKey
from riverlog.wire.codec import FramePart, MalformedMessage, decode, encode_parts, joined
from riverlog.wire.framing import LENGTH, LENGTH_BYTES
from riverlog.wire.primitives import refuse, skip_tagged_fields

_REQUEST: Final = Struct(">hhih")
_REQUEST_FRAME: Final = Struct(">ihhih")
_RESPONSE: Final = Struct(">i")
_RESPONSE_FRAME: Final = Struct(">ii")
_TAGGED_RESPONSE_FRAME: Final = Struct(">iix")
_WINDOW_FIELD: Final = Struct(">iiBHBi")  # length, correlation id, one tagged field: its tag, size and value
_WINDOW_TAG_ON_WIRE: Final = 0x904E  # OWN_TAG as a varint
_WINDOW_HEAD: Final = Struct(">iBHBi")
_TAGGED_HEAD: Final = Struct(">iiB")
_WINDOW_BYTES: Final = 7  # what the field adds to a header without one
_NULL: Final = -1
_NEVER_TAGGED: Final = ApiKey.API_VERSIONS
_IS_FLEXIBLE: Final = {(int(api.key), version): api.is_flexible(version) for api in APIS for version in api.versions}


class RequestHeader(NamedTuple):
    """Who asks what, in which version; the answer carries the same correlation id."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None


def decode_request_header(frame: memoryview) -> tuple[RequestHeader, int]:
    """Read a request's header; give it and the position of the body.

    Of an API or version that is not spoken, only key, version and correlation id are read: enough to refuse it by name.
    """
    try:
        api_key, api_version, correlation_id, client_id_length = _REQUEST.unpack_from(frame)
        flexible = _IS_FLEXIBLE.get((api_key, api_version))
        if flexible is None:
            return RequestHeader(api_key, api_version, correlation_id, None), len(frame)
        position = _REQUEST.size
        client_id = None
        if client_id_length != _NULL:
            stop = position + client_id_length
            if not position <= stop <= len(frame):
                refuse("the client id", client_id_length, len(frame) - position)
            client_id = str(frame[position:stop], "utf-8")
            position = stop
        if flexible:
            tagged_fields = frame[position]
            position += 1
            if tagged_fields:
                position = skip_tagged_fields(frame, position, tagged_fields)
    except (struct.error, IndexError):
        raise MalformedMessage(f"{len(frame)} bytes are too few for a request header") from None
    except UnicodeDecodeError:
        raise MalformedMessage("the client id is not UTF-8") from None
    return RequestHeader(api_key, api_version, correlation_id, client_id), position


def encode_request(api: Api, version: int, correlation_id: int, client_id: str | None, message: Any) -> bytes:
    """Write a whole request, with its length in front."""
    name = None if client_id is None else client_id.encode()
    out = bytearray(_REQUEST_FRAME.pack(0, api.key, version, correlation_id, _NULL if name is None else len(name)))
    out += name or b""
    if api.is_flexible(version):
        out.append(0)
    parts = encode_parts(message, version, out)
    _write_length(out, parts)
    return joined(parts)


def encode_response(api: Api, version: int, correlation_id: int, message: Any) -> list[FramePart]:
    """Write a whole response, with its length in front; records stay parts of their own."""
    head = _TAGGED_RESPONSE_FRAME if _has_tagged_header(api, version) else _RESPONSE_FRAME
    out = bytearray(head.pack(0, correlation_id))
    parts = encode_parts(message, version, out)
    _write_length(out, parts)
    return parts


def with_window(api: Api, version: int, response: list[FramePart], window_bytes: int) -> list[FramePart]:
    """Add the connection's window to the header of a whole response, where that version's header has tagged fields."""
    if not _has_tagged_header(api, version):
        return response
    first, *others = response
    assert not isinstance(first, FileRange)
    length, correlation_id, tagged_fields = _TAGGED_HEAD.unpack_from(first)
    assert tagged_fields == 0
    head = _WINDOW_FIELD.pack(length + _WINDOW_BYTES, correlation_id, 1, _WINDOW_TAG_ON_WIRE, 4, window_bytes)
    return [head + memoryview(first)[_TAGGED_HEAD.size :], *others]


def read_window(api: Api, version: int, frame: Buffer) -> int | None:
    """Return the window that a response's header tells, without the length in front; None where it tells none."""
    if not _has_tagged_header(api, version) or len(frame) < _WINDOW_HEAD.size:
        return None
    _, tagged_fields, tag, size, window_bytes = _WINDOW_HEAD.unpack_from(frame)
    return window_bytes if (tagged_fields, tag, size) == (1, _WINDOW_TAG_ON_WIRE, 4) else None


def decode_response(api: Api, version: int, frame: Buffer) -> tuple[int, Any]:
    """Read a whole response, without the length in front; give its correlation id and the message."""
    try:
        (correlation_id,) = _RESPONSE.unpack_from(frame)
        position = _RESPONSE.size
        if _has_tagged_header(api, version):
            position = skip_tagged_fields(frame, position + 1, frame[position])
    except (struct.error, IndexError):
        raise MalformedMessage("the response header ends early") from None
    message, _ = decode(api.response, version, frame, position)
    return correlation_id, message


def _has_tagged_header(api: Api, version: int) -> bool:
    return version >= api.flexible_since and api.key is not _NEVER_TAGGED


def _write_length(out: bytearray, parts: list[FramePart]) -> None:
    """Write the length of what follows into the first four bytes of `out`, which is the first part."""
    size = -LENGTH_BYTES
    for part in parts:
        size += part.size if isinstance(part, FileRange) else len(part)
    LENGTH.pack_into(out, 0, size)
