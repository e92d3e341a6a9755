"""Control batches: the markers with which transactions end in each partition that they wrote to.

A marker is the only record of its batch: key `version i16 · type i16`, value `version i16 · coordinator epoch i32`.
Compaction may leave such a batch without its record.
"""

from struct import Struct
from typing import Final, NamedTuple

from riverlog.model.ids import ProducerEpoch, ProducerId
from riverlog.model.ports import Buffer
from riverlog.records.errors import CorruptBatch
from riverlog.records.record import BatchBuilder, ControlType, Record, control_type, read_batch

_KEY: Final = Struct(">hh")
_VALUE: Final = Struct(">hi")
_VERSION: Final = 0


class Marker(NamedTuple):
    """How a transaction ended, and in which epoch its coordinator said so."""

    committed: bool
    coordinator_epoch: int


def build_marker(
    marker: Marker, producer_id: ProducerId, producer_epoch: ProducerEpoch, *, timestamp_ms: int
) -> bytearray:
    """Build the batch that ends a producer's transaction."""
    builder = BatchBuilder(producer_id=producer_id, producer_epoch=producer_epoch, transactional=True, control=True)
    kind = ControlType.COMMIT if marker.committed else ControlType.ABORT
    value = _VALUE.pack(_VERSION, marker.coordinator_epoch)
    builder.append(_KEY.pack(_VERSION, kind), value, timestamp_ms=timestamp_ms)
    return builder.build()


def read_marker(batch: Buffer) -> Marker | None:
    """Read a whole control batch; None where it says nothing about a transaction. CorruptBatch where it is damaged."""
    for record in read_batch(batch):
        return marker_of(record)
    return None


def marker_of(record: Record) -> Marker | None:
    """Read a control batch's record; None where it says nothing about a transaction."""
    kind = control_type(record)
    if kind is None:
        return None
    if record.value is None or len(record.value) < _VALUE.size:
        raise CorruptBatch("a transaction's marker does not name its coordinator's epoch")
    _, coordinator_epoch = _VALUE.unpack_from(record.value)
    return Marker(kind is ControlType.COMMIT, coordinator_epoch)
