"""Facts about groups as record batches, and back."""

import pytest

from riverlog.groups.batches import decode_facts, encode_facts
from riverlog.groups.records import (
    GroupMetadataKey,
    GroupMetadataValue,
    GroupRecord,
    OffsetCommitKey,
    OffsetCommitValue,
    TransactionMarker,
)
from riverlog.model.errors import Refusal
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
    pending = GroupRecord(COMMIT.key, COMMIT.value, ProducerId(9), ProducerEpoch(2))
    batch = encode_facts([pending, pending], 1_000)
    ((header, _),) = read_batches(batch)
    assert (header.is_transactional, header.is_control, header.base_sequence) == (True, False, -1)
    assert decoded(batch) == [pending, pending]


@pytest.mark.parametrize("committed", [True, False])
def test_the_end_of_a_transaction_is_a_control_batch(committed: bool) -> None:
    marker = TransactionMarker(ProducerId(9), ProducerEpoch(2), committed, coordinator_epoch=5)
    batch = encode_facts([marker], 1_000)
    ((header, (record,)),) = read_batches(batch)
    assert (header.is_transactional, header.is_control) == (True, True)
    assert record.value == b"\0\0\0\0\0\5"
    assert decoded(batch) == [marker]


def test_what_does_not_fit_is_refused_before_all_of_it_is_written() -> None:
    size = len(encode_facts([COMMIT] * 10, 1_000))
    assert len(encode_facts([COMMIT] * 10, 1_000, size)) == size
    with pytest.raises(Refusal):
        encode_facts([COMMIT] * 10, 1_000, size - 1)


def test_facts_of_several_writers_are_not_one_batch() -> None:
    pending = GroupRecord(COMMIT.key, COMMIT.value, ProducerId(9), ProducerEpoch(2))
    with pytest.raises(AssertionError):
        encode_facts([COMMIT, pending], 1_000)


def test_kinds_that_are_not_known_are_passed_over() -> None:
    builder = BatchBuilder()
    builder.append(b"\x03\xe8", b"\0\0", timestamp_ms=0)
    assert decoded(builder.build()) == []
