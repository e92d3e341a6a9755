"""Facts about groups as record batches of `__consumer_offsets`: one batch per decision.

What a transaction commits stands in a batch of its producer's, without a sequence; the marker that ends it is a control
batch, as in any partition.
"""

from collections.abc import Iterator, Sequence

from riverlog.groups.encoding import decode_record, encode_key, encode_value
from riverlog.groups.records import GroupFact, GroupRecord, TransactionMarker
from riverlog.model.ids import NO_PRODUCER
from riverlog.records.batch import BatchHeader
from riverlog.records.control import Marker, build_marker, marker_of
from riverlog.records.record import BATCH_BYTES_MAX, BatchBuilder, Record, check_size


def encode_facts(facts: Sequence[GroupFact], now_ms: int, bytes_max: int = BATCH_BYTES_MAX) -> bytearray:
    """Build the batch of one decision; Refusal where it would be too large."""
    first = facts[0]
    if isinstance(first, TransactionMarker):
        assert len(facts) == 1, "a marker stands alone in its batch"
        marker = Marker(first.committed, first.coordinator_epoch)
        return build_marker(marker, first.producer_id, first.producer_epoch, timestamp_ms=now_ms)
    builder = BatchBuilder(
        producer_id=first.producer_id,
        producer_epoch=first.producer_epoch,
        transactional=first.producer_id != NO_PRODUCER,
    )
    for fact in facts:
        assert isinstance(fact, GroupRecord), "a marker stands alone in its batch"
        assert fact.producer_id == first.producer_id, "facts of a transaction stand in its producer's own batch"
        value = None if fact.value is None else encode_value(fact.value)
        builder.append(encode_key(fact.key), value, timestamp_ms=now_ms)
        check_size(builder, bytes_max)
    return builder.build()


def decode_facts(header: BatchHeader, records: Sequence[Record]) -> Iterator[GroupFact]:
    """Read the facts of a batch; records of kinds that riverlog does not know are passed over. BadRecord where one of
    a known kind cannot be read."""
    producer = (header.producer_id, header.producer_epoch) if header.is_transactional else ()
    for record in records:
        if header.is_control:
            if (marker := marker_of(record)) is not None:
                yield TransactionMarker(
                    header.producer_id, header.producer_epoch, marker.committed, marker.coordinator_epoch
                )
        elif (fact := decode_record(record.key or b"", record.value, *producer)) is not None:
            yield fact
