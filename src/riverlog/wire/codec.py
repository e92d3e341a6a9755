"""Messages to bytes and back.

`decode` and `encode` run one function per message and version, written as source by `decoding` and `encoding` and
compiled on first use. Each read is checked against the bytes that are left before anything is allocated for it, so
bad bytes cost no more than good ones and raise MalformedMessage, nothing else. A field that a version does
not have is its default after decoding and is left out when encoding.
"""

import struct
from typing import Any, Final, TypeVar

from riverlog.model.ports import Buffer, FileRange
from riverlog.wire.apis import API_BY_KEY
from riverlog.wire.decoding import compile_decoder
from riverlog.wire.encoding import compile_encoder
from riverlog.wire.primitives import Decoder, FramePart, ItemEncoder, MalformedMessage
from riverlog.wire.types import is_record, key_of

__all__ = ["FramePart", "MalformedMessage", "decode", "encode", "encode_parts", "joined"]

Message = TypeVar("Message")


def decode(declaration: type[Message], version: int, buffer: Buffer, position: int = 0) -> tuple[Message, int]:
    """Read one message; give it and the position behind it. Bytes left over are the caller's to judge."""
    decoder = _DECODERS.get((declaration, version))
    if decoder is None:
        decoder = _decoder(declaration, version)
    if type(buffer) is not memoryview:  # a slice of anything else would be a copy
        buffer = memoryview(buffer)
    try:
        return decoder(buffer, position)
    except (struct.error, IndexError):
        raise MalformedMessage(f"{declaration.__name__} version {version} ends early") from None
    except UnicodeDecodeError as error:
        raise MalformedMessage(f"{declaration.__name__} version {version} holds invalid UTF-8: {error}") from None
    except MalformedMessage as error:
        raise MalformedMessage(f"{declaration.__name__} version {version}: {error}") from None


def encode(message: object, version: int) -> bytes:
    """Write one message as one piece; its records must be in memory."""
    return joined(encode_parts(message, version, bytearray()))


def encode_parts(message: object, version: int, out: bytearray) -> list[FramePart]:
    """Write one message behind what `out` holds; records become parts of their own, as they are, never copied.

    The first part is `out` itself, so that a caller can still write a length into it.
    """
    encoder = _ENCODERS.get((type(message), version))
    if encoder is None:
        encoder = _encoder(type(message), version)
    return encoder(message, out)


def joined(parts: list[FramePart]) -> bytes:
    """Put the parts of a message together; its records must be in memory."""
    for part in parts:
        assert not isinstance(part, FileRange), "records in a file can be sent, not joined"
    return b"".join(parts)  # type: ignore[arg-type]  # the loop has seen that all of them are bytes


_DECODERS: Final[dict[tuple[type[Any], int], Decoder]] = {}
_ENCODERS: Final[dict[tuple[type[Any], int], ItemEncoder]] = {}


def _decoder(declaration: type[Any], version: int) -> Decoder:
    _check_version(declaration, version)
    decoder = _DECODERS[declaration, version] = compile_decoder(declaration, version)
    return decoder


def _encoder(declaration: type[Any], version: int) -> ItemEncoder:
    _check_version(declaration, version)
    encoder = _ENCODERS[declaration, version] = compile_encoder(declaration, version)
    return encoder


def _check_version(declaration: type[Any], version: int) -> None:
    """Requests in versions that are not spoken are refused before their body is read."""
    spoken = is_record(declaration) or version in API_BY_KEY[key_of(declaration)].versions
    assert spoken, f"{declaration.__name__} is not spoken in version {version}"
