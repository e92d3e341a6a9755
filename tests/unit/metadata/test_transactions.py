"""Transactions of the metadata log: all of it or nothing."""

from riverlog.metadata.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    NoOpRecord,
)
from riverlog.metadata.transactions import batches, decided

A, B, C = (FeatureLevelRecord(name=name, feature_level=1) for name in "abc")
BEGIN, END, ABORT = BeginTransactionRecord(name="bootstrap"), EndTransactionRecord(), AbortTransactionRecord()


def test_records_take_effect_when_their_transaction_ends() -> None:
    assert list(decided([A, BEGIN, B, END, C])) == [A, B, C]


def test_what_was_aborted_or_never_ended_did_not_happen() -> None:
    assert list(decided([A, BEGIN, B, ABORT, C])) == [A, C]
    assert list(decided([A, BEGIN, B, C])) == [A]


def test_what_does_not_fit_into_one_batch_is_a_transaction() -> None:
    records = [NoOpRecord()] * 10
    assert batches([], 4) == []
    assert batches(records, 10) == [records]
    several = batches(records, 4)
    assert [len(each) for each in several] == [4, 4, 4]
    assert isinstance(several[0][0], BeginTransactionRecord)
    assert list(decided(record for batch in several for record in batch)) == records
    assert list(decided(record for batch in several[:-1] for record in batch)) == []
