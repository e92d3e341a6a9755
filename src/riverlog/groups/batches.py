"""Facts about groups as record batches of `__consumer_offsets`: one batch per decision."""

from collections.abc import Iterator, Sequence

from riverlog.groups.encoding import decode_record, encode_key, encode_value
from riverlog.groups.records import GroupFact, GroupRecord, TransactionMarker
from riverlog.model.ids import NO_PRODUCER
from riverlog.records.batch import BatchHeader
from riverlog.records.record import BatchBuilder, ControlType, Record, control_type


def encode_facts(facts: Sequence[GroupFact], now_ms: int) -> bytearray:
    """Build the batch of one decision."""
    builder = BatchBuilder()
    for fact in facts:
        assert isinstance(fact, GroupRecord), "a marker is written by whoever ends a transaction"
        assert fact.producer_id == NO_PRODUCER, "facts of a transaction stand in its producer's own batch"
        value = None if fact.value is None else encode_value(fact.value)
        builder.append(encode_key(fact.key), value, timestamp_ms=now_ms)
    return builder.build()


def decode_facts(header: BatchHeader, records: Sequence[Record]) -> Iterator[GroupFact]:
    """Read the facts of a batch; records of kinds that riverlog does not know are passed over. BadRecord where one of
    a known kind cannot be read."""
    producer = (header.producer_id, header.producer_epoch) if header.is_transactional else ()
    for record in records:
        if header.is_control:
            if (ended := control_type(record)) is not None:
                yield TransactionMarker(header.producer_id, header.producer_epoch, ended is ControlType.COMMIT)
        elif (fact := decode_record(record.key or b"", record.value, *producer)) is not None:
            yield fact
