"""The four codecs of a batch's records, in the framings that Kafka's clients write and read.

gzip: one member is written, many are read. snappy: xerial's framing is written, raw snappy is read too. lz4: frames
of independent 64 KiB blocks, because Java's client reads no others. zstd: any frame, with or without a content size.
Unfolding stops at a cap: memory grows with what comes out, never with what a length field or a ratio promises.
"""

from collections.abc import Callable
from struct import Struct, error
from typing import Final

import cramjam

from riverlog.model.errors import ErrorCode
from riverlog.model.limits import DECOMPRESSED_BYTES_MAX
from riverlog.model.ports import Buffer
from riverlog.records.batch import Compression
from riverlog.records.errors import BatchTooLarge, CorruptBatch

ZSTD_LEVEL: Final = 3
GZIP_LEVEL: Final = 6


def compress(codec: Compression, data: Buffer, level: int | None = None) -> Buffer:
    """Fold `data`; `level` is the codec's own scale (snappy has none), None its usual choice."""
    match codec:
        case Compression.NONE:
            return data
        case Compression.GZIP:
            return memoryview(cramjam.gzip.compress(data, level=GZIP_LEVEL if level is None else level))
        case Compression.SNAPPY:
            return _compress_xerial(memoryview(data))
        case Compression.LZ4:
            return _compress_lz4_frame(memoryview(data), level)
        case Compression.ZSTD:
            return memoryview(cramjam.zstd.compress(data, level=ZSTD_LEVEL if level is None else level))


def decompress(codec: int, data: Buffer, *, decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX) -> Buffer:
    """Unfold `data`; raise BatchTooLarge beyond the cap and CorruptBatch where the codec finds no sense in it."""
    match codec:
        case Compression.NONE:
            return data
        case Compression.GZIP:
            return _unfold(cramjam.gzip.decompress_into, "gzip", data, decompressed_bytes_max)
        case Compression.SNAPPY:
            return _decompress_snappy(memoryview(data), decompressed_bytes_max)
        case Compression.LZ4:
            return _unfold(cramjam.lz4.decompress_into, "lz4", data, decompressed_bytes_max)
        case Compression.ZSTD:
            return _unfold(cramjam.zstd.decompress_into, "zstd", data, decompressed_bytes_max)
        case _:
            raise CorruptBatch(f"compression codec {codec} does not exist", ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)


_OUTPUT_FULL: Final = "failed to write whole buffer"
"""How cramjam says that the output did not fit; everything else it says is about the input."""
_OUTPUT_GROWTH: Final = 4
_OUTPUT_BYTES_FIRST: Final = 64 * 1024


def _unfold(decompress_into: Callable[[Buffer, bytearray], int], name: str, data: Buffer, bytes_max: int) -> bytearray:
    """Unfold into memory of a fixed size, larger at each try: the work thrown away is a third of the last try."""
    size = min(bytes_max, max(_OUTPUT_BYTES_FIRST, _OUTPUT_GROWTH * len(data)))
    while True:
        output = bytearray(size)
        try:
            count = decompress_into(data, output)
        except cramjam.DecompressionError as problem:
            if str(problem) != _OUTPUT_FULL:
                raise CorruptBatch(f"the records are not {name}: {problem}") from None
            if size == bytes_max:
                raise BatchTooLarge(bytes_max) from None
            size = min(bytes_max, size * _OUTPUT_GROWTH)
            continue
        del output[count:]
        return output


# snappy ---------------------------------------------------------------------------------------------------

_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = _XERIAL_MAGIC + b"\x00\x00\x00\x01" * 2  # version, compatible version
_XERIAL_BLOCK_BYTES: Final = 32 * 1024
_BLOCK_LENGTH: Final = Struct(">i")
_SNAPPY_RATIO_MAX: Final = 64
"""Snappy's densest element copies 64 bytes for 3; a length beyond this is a lie (CVE-2023-34455)."""


def _compress_xerial(data: memoryview) -> bytearray:
    framed = bytearray(_XERIAL_HEADER)
    for start in range(0, len(data), _XERIAL_BLOCK_BYTES):
        block = cramjam.snappy.compress_raw(data[start : start + _XERIAL_BLOCK_BYTES])
        framed += _BLOCK_LENGTH.pack(len(block))
        framed += block
    return framed


def _decompress_snappy(data: memoryview, bytes_max: int) -> bytearray:
    if bytes(data[: len(_XERIAL_MAGIC)]) != _XERIAL_MAGIC:
        return _decompress_snappy_block(data, 0, bytes_max)
    output = bytearray()
    position = len(_XERIAL_HEADER)
    while position < len(data):
        try:
            (length,) = _BLOCK_LENGTH.unpack_from(data, position)
        except error:
            raise CorruptBatch("a snappy block's length is cut off") from None
        position += _BLOCK_LENGTH.size
        if not 0 <= length <= len(data) - position:
            raise CorruptBatch(f"a snappy block of {length} bytes is announced where {len(data) - position} are left")
        output += _decompress_snappy_block(data[position : position + length], len(output), bytes_max)
        position += length
    return output


def _decompress_snappy_block(block: memoryview, bytes_before: int, bytes_max: int) -> bytearray:
    try:
        size = cramjam.snappy.decompress_raw_len(block)
        if size > _SNAPPY_RATIO_MAX * len(block):
            raise CorruptBatch(f"{len(block)} bytes of snappy cannot hold {size}")
        if bytes_before + size > bytes_max:
            raise BatchTooLarge(bytes_max)
        output = bytearray(size)
        cramjam.snappy.decompress_raw_into(block, output)
    except cramjam.DecompressionError as problem:
        raise CorruptBatch(f"the records are not snappy: {problem}") from None
    return output


# lz4 ------------------------------------------------------------------------------------------------------

_LZ4_FRAME_HEADER: Final = bytes.fromhex("04224d18 60 40 82")
"""Magic, flags (version 1, independent blocks, no checksums: the batch has its own), 64 KiB blocks, header checksum."""
_LZ4_BLOCK_BYTES: Final = 64 * 1024
_LZ4_BLOCK_LENGTH: Final = Struct("<I")
_LZ4_STORED: Final = 0x8000_0000
_LZ4_END: Final = bytes(4)


def _compress_lz4_frame(data: memoryview, level: int | None) -> bytearray:
    framed = bytearray(_LZ4_FRAME_HEADER)
    for start in range(0, len(data), _LZ4_BLOCK_BYTES):
        plain = data[start : start + _LZ4_BLOCK_BYTES]
        block = cramjam.lz4.compress_block(plain, store_size=False) if level is None else _lz4_block(plain, level)
        if len(block) < len(plain):
            framed += _LZ4_BLOCK_LENGTH.pack(len(block))
            framed += block
        else:
            framed += _LZ4_BLOCK_LENGTH.pack(len(plain) | _LZ4_STORED)
            framed += plain
    framed += _LZ4_END
    return framed


def _lz4_block(plain: memoryview, level: int) -> memoryview:
    """Fold one block at a level: cramjam takes levels for frames only, so take the only block out of a frame."""
    frame = memoryview(cramjam.lz4.compress(plain, level=level))
    start = len(_LZ4_FRAME_HEADER) + _LZ4_BLOCK_LENGTH.size
    (length,) = _LZ4_BLOCK_LENGTH.unpack_from(frame, len(_LZ4_FRAME_HEADER))
    return frame[start:] if length & _LZ4_STORED else frame[start : start + length]
