"""Facts about groups as record batches, and back."""

from riverlog.groups.batches import decode_facts, encode_facts
from riverlog.groups.records import (
    GroupMetadataKey,
    GroupMetadataValue,
    GroupRecord,
    OffsetCommitKey,
    OffsetCommitValue,
    TransactionMarker,
)
from riverlog.model.ids import ProducerEpoch, ProducerId
from riverlog.records.record import BatchBuilder, read_batches

COMMIT = GroupRecord(OffsetCommitKey("g", "t", 3), OffsetCommitValue(offset=7, metadata="m", commit_timestamp=5))


def decoded(batch: bytes | bytearray) -> list[object]:
    return [fact for header, records in read_batches(batch) for fact in decode_facts(header, records)]


def test_a_decision_is_one_batch_and_comes_back() -> None:
    facts = [
        COMMIT,
        GroupRecord(GroupMetadataKey("g"), GroupMetadataValue(protocol_type="consumer", generation=2)),
        GroupRecord(OffsetCommitKey("g", "t", 4), None),
    ]
    batch = encode_facts(facts, 1_000)
    ((header, _),) = read_batches(batch)
    assert (header.record_count, header.max_timestamp) == (3, 1_000)
    assert decoded(batch) == facts


def test_a_transaction_says_whose_it_is() -> None:
    producer_id, epoch = ProducerId(9), ProducerEpoch(2)
    plain = encode_facts([COMMIT], 0)
    ((_, (record,)),) = read_batches(plain)
    pending = BatchBuilder(producer_id=producer_id, producer_epoch=epoch, transactional=True)
    pending.append(record.key, record.value, timestamp_ms=0)
    assert decoded(pending.build()) == [GroupRecord(COMMIT.key, COMMIT.value, producer_id, epoch)]
    for number, committed in ((0, False), (1, True)):
        marker = BatchBuilder(producer_id=producer_id, producer_epoch=epoch, transactional=True, control=True)
        marker.append(b"\0\0\0" + bytes([number]), b"\0\0\0\0\0\0", timestamp_ms=0)
        assert decoded(marker.build()) == [TransactionMarker(producer_id, epoch, committed)]


def test_kinds_that_are_not_known_are_passed_over() -> None:
    builder = BatchBuilder()
    builder.append(b"\x03\xe8", b"\0\0", timestamp_ms=0)
    assert decoded(builder.build()) == []
