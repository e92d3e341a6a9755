"""A compiled encoder writes neighbours together and refuses what does not fit."""

import struct
from uuid import UUID

import pytest

from riverlog.wire import encoding
from riverlog.wire.codec import encode
from riverlog.wire.encoding import compile_encoder
from riverlog.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from riverlog.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from riverlog.wire.types import UUID_, ApiKey, array, binary, message


def source_of(declaration: type[object], version: int) -> str:
    return encoding._Encoding(declaration, version).source.text


def test_neighbours_of_fixed_size_are_written_by_one_struct() -> None:
    assert "pack_ihqh(" in source_of(InitProducerIdResponse, 1)
    assert "pack_ihqhx(" in source_of(InitProducerIdResponse, 2), "with the empty list of tags behind them"


def test_an_encoder_writes_behind_what_is_there() -> None:
    out = bytearray(b"head")
    assert compile_encoder(InitProducerIdResponse, 0)(InitProducerIdResponse(1, 2, 3, 4), out) == [out]
    assert out.hex() == b"head".hex() + "00000001" + "0002" + "0000000000000003" + "0004"


@message(ApiKey.METADATA)
class Rare:
    """Types that few messages use."""

    ids: list[UUID] = array(UUID_)
    blob: bytes | None = binary(nullable_since=0)


def test_arrays_of_ids_and_bytes() -> None:
    raw = b"".join(compile_encoder(Rare, 0)(Rare([UUID(int=1), UUID(int=2)], b"xy"), bytearray()))
    assert raw == bytes.fromhex("00000002" + "00" * 15 + "01" + "00" * 15 + "02" + "00000002") + b"xy"
    assert b"".join(compile_encoder(Rare, 9)(Rare(), bytearray())).hex() == "010000"


@pytest.mark.parametrize(
    "wrong",
    [
        InitProducerIdRequest(transaction_timeout_ms=2**31),
        InitProducerIdRequest(transaction_timeout_ms=None),  # type: ignore[arg-type]
        InitProducerIdRequest(transactional_id="x" * 32_768),
        InitProducerIdRequest(transactional_id=5),  # type: ignore[arg-type]
    ],
)
def test_a_value_that_does_not_fit_raises(wrong: InitProducerIdRequest) -> None:
    with pytest.raises((struct.error, AttributeError)):
        encode(wrong, 1)


def test_null_where_none_may_be_raises() -> None:
    with pytest.raises(AttributeError):
        encode(MetadataRequest([MetadataRequestTopic(name=None)]), 9)
    with pytest.raises(TypeError):
        encode(MetadataRequest(None), 0)
