"""Record batches for tests, as producers send them."""

from collections.abc import Sequence

from riverlog.model.ids import NO_PRODUCER, NO_PRODUCER_EPOCH, NO_SEQUENCE, ProducerEpoch, ProducerId
from riverlog.model.ports import FileRange
from riverlog.records.batch import Compression
from riverlog.records.record import BatchBuilder, Record, read_batches


def batch_of(
    values: Sequence[bytes] = (b"value",),
    *,
    timestamp_ms: int = 1_000,
    producer_id: int = NO_PRODUCER,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    compression: Compression = Compression.NONE,
) -> memoryview:
    """Build one batch; its records are a millisecond apart."""
    builder = BatchBuilder(
        compression,
        producer_id=ProducerId(producer_id),
        producer_epoch=ProducerEpoch(producer_epoch),
        base_sequence=base_sequence,
    )
    for delta, value in enumerate(values):
        builder.append(None, value, timestamp_ms=timestamp_ms + delta)
    return memoryview(builder.build())


def records_of(found: FileRange | None) -> list[Record]:
    """Read the records of a range; an incomplete last batch is left out."""
    if found is None:
        return []
    data = found.file.read(found.position, found.size)
    return [record for _, records in read_batches(data) for record in records]
