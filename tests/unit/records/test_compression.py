"""The codecs: framings that other clients write, and the cap on what unfolds."""

import gzip
import tracemalloc

import cramjam
import pytest

from riverlog.model.errors import ErrorCode
from riverlog.records.batch import Compression
from riverlog.records.compression import compress, decompress
from riverlog.records.errors import BatchTooLarge, CorruptBatch

TEXT = b'{"order": 17, "item": "anvil"}' * 10_000
FOLDING = [codec for codec in Compression if codec is not Compression.NONE]


@pytest.mark.parametrize("codec", Compression)
@pytest.mark.parametrize("data", [b"", b"a", TEXT, bytes(range(256)) * 700])
def test_what_is_folded_unfolds(codec: Compression, data: bytes) -> None:
    assert bytes(decompress(codec, compress(codec, data))) == data


@pytest.mark.parametrize("codec", [Compression.GZIP, Compression.LZ4, Compression.ZSTD])
def test_a_level_changes_the_size_but_not_the_content(codec: Compression) -> None:
    words = b" ".join(b"%d %s" % (number * number, TEXT[: number % 29]) for number in range(20_000))
    small, large = compress(codec, words, 9), compress(codec, words, 1)
    assert bytes(decompress(codec, small)) == bytes(decompress(codec, large)) == words
    assert len(small) < len(large)


@pytest.mark.parametrize("codec", FOLDING)
def test_a_ratio_beyond_the_first_guess_unfolds(codec: Compression) -> None:
    zeros = bytes(5_000_000)
    assert bytes(decompress(codec, compress(codec, zeros))) == zeros


@pytest.mark.parametrize("codec", FOLDING)
def test_the_cap_is_exact(codec: Compression) -> None:
    folded = compress(codec, TEXT)
    assert len(decompress(codec, folded, decompressed_bytes_max=len(TEXT))) == len(TEXT)
    with pytest.raises(BatchTooLarge, match=str(len(TEXT) - 1)) as refused:
        decompress(codec, folded, decompressed_bytes_max=len(TEXT) - 1)
    assert refused.value.code is ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("codec", FOLDING)
def test_a_bomb_is_not_unfolded(codec: Compression) -> None:
    bomb = bytes(compress(codec, bytes(64 * 1024 * 1024)))
    tracemalloc.start()
    try:
        with pytest.raises(BatchTooLarge):
            decompress(codec, bomb, decompressed_bytes_max=1024 * 1024)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * 1024 * 1024


def test_gzip_of_several_members_is_read() -> None:
    assert bytes(decompress(Compression.GZIP, gzip.compress(b"one ") + gzip.compress(b"two"))) == b"one two"


def test_raw_snappy_is_read() -> None:
    assert bytes(decompress(Compression.SNAPPY, bytes(cramjam.snappy.compress_raw(TEXT)))) == TEXT


def test_lz4_frames_of_other_writers_are_read() -> None:
    linked_blocks_and_checksums = bytes(cramjam.lz4.compress(TEXT))
    assert not linked_blocks_and_checksums[4] & 0x20
    assert bytes(decompress(Compression.LZ4, linked_blocks_and_checksums)) == TEXT


def test_lz4_blocks_are_written_independent_because_java_reads_no_others() -> None:
    assert bytes(compress(Compression.LZ4, TEXT))[4] & 0x20


def test_zstd_without_content_size_is_read() -> None:
    stream = cramjam.zstd.Compressor()
    stream.compress(TEXT)
    frame = bytes(stream.finish())
    assert frame[4] >> 6 == 0 and not frame[4] & 0x20, "the frame says how long its content is"
    assert bytes(decompress(Compression.ZSTD, frame)) == TEXT


@pytest.mark.parametrize("codec", FOLDING)
@pytest.mark.parametrize("garbage", [b"\x13", b"not compressed at all, whatever the header says" * 3])
def test_garbage_is_corrupt(codec: Compression, garbage: bytes) -> None:
    with pytest.raises(CorruptBatch) as refused:
        decompress(codec, garbage)
    assert refused.value.code is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("codec", FOLDING)
def test_half_a_stream_is_corrupt(codec: Compression) -> None:
    folded = bytes(compress(codec, TEXT))
    with pytest.raises(CorruptBatch):
        decompress(codec, folded[: len(folded) // 2])


@pytest.mark.parametrize("length", [-1, 0x7FFF_FFFF])
def test_a_snappy_block_that_lies_about_its_length_is_corrupt(length: int) -> None:
    framed = b"\x82SNAPPY\x00" + b"\x00\x00\x00\x01" * 2 + length.to_bytes(4, "big", signed=True) + b"abc"
    with pytest.raises(CorruptBatch, match="announced"):
        decompress(Compression.SNAPPY, framed)


def test_a_snappy_block_that_promises_the_impossible_reserves_nothing() -> None:
    with pytest.raises(CorruptBatch, match="cannot hold"):
        decompress(Compression.SNAPPY, b"\xff\xff\xff\x3f" + b"abc")


def test_an_unknown_codec_is_named() -> None:
    with pytest.raises(CorruptBatch, match="codec 6") as refused:
        decompress(6, b"abc")
    assert refused.value.code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
