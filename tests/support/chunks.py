"""Batches as a fetch brings them: with offsets, of transactions, with their markers."""

from typing import Final

from riverlog.model.ids import Offset, ProducerId
from riverlog.records.record import BatchBuilder

ABORT: Final = b"\x00\x00\x00\x00"
COMMIT: Final = b"\x00\x00\x00\x01"


def batch(base_offset: int, *values: bytes, producer_id: int = -1, transactional: bool = False) -> bytearray:
    builder = BatchBuilder(producer_id=ProducerId(producer_id), transactional=transactional)
    for value in values:
        builder.append(None, value, timestamp_ms=5)
    return builder.build(Offset(base_offset))


def marker(base_offset: int, kind: bytes, producer_id: int) -> bytearray:
    builder = BatchBuilder(producer_id=ProducerId(producer_id), transactional=True, control=True)
    builder.append(kind, b"\x00" * 6, timestamp_ms=5)
    return builder.build(Offset(base_offset))
