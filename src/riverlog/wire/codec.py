"""Messages to bytes and back.

`decode` and `encode` run one function per message and version, written as source by `decoding` and `encoding` and
compiled on first use. Each read is checked against the bytes that are left before anything is allocated for it, so
bad bytes cost no more than good ones and raise MalformedMessage, nothing else. A field that a version does
not have is its default after decoding and is left out when encoding.
"""

import struct
from collections.abc import Callable
from typing import Any, Final, TypeVar

from riverlog.model.ports import Buffer, FileRange
from riverlog.wire.apis import API_BY_KEY
from riverlog.wire.decoding import compile_decoder
from riverlog.wire.encoding import compile_encoder
from riverlog.wire.primitives import MalformedMessage
from riverlog.wire.types import key_of

__all__ = ["MalformedMessage", "Part", "decode", "encode", "encode_parts"]

Message = TypeVar("Message")

Part = Buffer | FileRange
"""A piece of an encoded message: bytes, or records that still lie in a file."""

Decoder = Callable[[Buffer, int], tuple[Any, int]]
Encoder = Callable[[Any, bytearray], list[Part]]


def decode(declaration: type[Message], version: int, buffer: Buffer, position: int = 0) -> tuple[Message, int]:
    """Read one message; give it and the position behind it. Bytes left over are the caller's to judge."""
    decoder = _DECODERS.get((declaration, version))
    if decoder is None:
        decoder = _decoder(declaration, version)
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
    return b"".join(_in_memory(part) for part in encode_parts(message, version, bytearray()))


def encode_parts(message: object, version: int, out: bytearray) -> list[Part]:
    """Write one message behind what `out` holds. Records become parts of their own, as they are, never copied."""
    encoder = _ENCODERS.get((type(message), version))
    if encoder is None:
        encoder = _encoder(type(message), version)
    return encoder(message, out)


_DECODERS: Final[dict[tuple[type[Any], int], Decoder]] = {}
_ENCODERS: Final[dict[tuple[type[Any], int], Encoder]] = {}


def _decoder(declaration: type[Any], version: int) -> Decoder:
    _check_version(declaration, version)
    decoder: Decoder = compile_decoder(declaration, version)
    _DECODERS[declaration, version] = decoder
    return decoder


def _encoder(declaration: type[Any], version: int) -> Encoder:
    _check_version(declaration, version)
    encoder: Encoder = compile_encoder(declaration, version)
    _ENCODERS[declaration, version] = encoder
    return encoder


def _check_version(declaration: type[Any], version: int) -> None:
    """Requests in versions that are not spoken are refused before their body is read."""
    api = API_BY_KEY[key_of(declaration)]
    assert version in api.versions, f"{declaration.__name__} has versions {api.versions}, not {version}"


def _in_memory(part: Part) -> Buffer:
    assert not isinstance(part, FileRange)
    return part
