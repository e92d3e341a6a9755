"""A compiled decoder reads neighbours together and checks before it slices or loops."""

import pytest

from riverlog.wire import decoding
from riverlog.wire.apis import ApiKey
from riverlog.wire.decoding import compile_decoder
from riverlog.wire.limits import ARRAY_NESTING_MAX
from riverlog.wire.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from riverlog.wire.primitives import STRING_BYTES_MAX, MalformedMessage, varint_bytes
from riverlog.wire.types import UUID_, array, binary, float64, int8, int32, message, string, struct, uint16


def source_of(declaration: type[object], version: int) -> str:
    return decoding._Decoding(declaration, version).source.text


def test_neighbours_of_fixed_size_are_read_by_one_struct() -> None:
    assert "unpack_from_iii(buffer, p)" in source_of(OffsetForLeaderEpochRequest, 3)
    assert "unpack_from_iiiB(buffer, p)" in source_of(OffsetForLeaderEpochRequest, 4), "with the tags behind them"


@struct
class Point:
    """Types that few messages use."""

    weight: float = float64()
    port: int = uint16()
    blob: bytes = binary()


@message(ApiKey.METADATA)
class Rare:
    """Types that few messages use, in arrays."""

    points: list[Point] = array(Point)
    ids: list[object] = array(UUID_)
    note: str | None = string(nullable_since=0)


def test_floats_unsigned_numbers_bytes_and_arrays_of_ids() -> None:
    raw = bytes.fromhex("00000001 3ff8000000000000 ffff 00000002 abcd 00000000 ffff".replace(" ", ""))
    assert compile_decoder(Rare, 0)(memoryview(raw), 0) == (Rare([Point(1.5, 65535, b"\xab\xcd")]), len(raw))
    with pytest.raises(MalformedMessage, match="blob claims 3, more than the 2 bytes left"):
        compile_decoder(Rare, 0)(memoryview(raw[:17] + b"\3" + raw[18:20]), 0)


def test_a_null_string_is_minus_one_and_no_other_negative_length() -> None:
    decoder = compile_decoder(Rare, 0)
    assert decoder(memoryview(bytes(8) + b"\xff\xff"), 0)[0] == Rare()
    with pytest.raises(MalformedMessage, match="note is null or has a negative length"):
        decoder(memoryview(bytes(8) + b"\xff\xfe"), 0)


def test_a_string_is_no_longer_in_compact_versions_than_in_others() -> None:
    decoder = compile_decoder(Rare, 9)

    def written(length: int) -> memoryview:
        return memoryview(b"\x01\x01" + varint_bytes(length + 1) + b"x" * length + b"\x00")

    assert decoder(written(STRING_BYTES_MAX), 0)[0].note == "x" * STRING_BYTES_MAX
    with pytest.raises(MalformedMessage, match="note claims 32768 bytes; a string has at most 32767"):
        decoder(written(STRING_BYTES_MAX + 1), 0)


def test_nesting_is_bounded() -> None:
    @struct
    class Innermost:
        """The end of a long chain."""

        number: int = int8()

    chain: type[object] = Innermost
    for _ in range(ARRAY_NESTING_MAX):

        @struct
        class Link:
            """One more level."""

            inner: list[object] = array(chain)

        chain = Link

    @message(ApiKey.METADATA)
    class TooDeep:
        """Deeper than any message of Kafka's."""

        inner: list[object] = array(chain)
        number: int = int32()

    with pytest.raises(AssertionError):
        compile_decoder(TooDeep, 0)
