"""Transactions of the metadata log: all of it or nothing."""

from riverlog.metadata.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
)
from riverlog.metadata.transactions import decided

A, B, C = (FeatureLevelRecord(name=name, feature_level=1) for name in "abc")
BEGIN, END, ABORT = BeginTransactionRecord(name="bootstrap"), EndTransactionRecord(), AbortTransactionRecord()


def test_records_take_effect_when_their_transaction_ends() -> None:
    assert list(decided([A, BEGIN, B, END, C])) == [A, B, C]


def test_what_was_aborted_or_never_ended_did_not_happen() -> None:
    assert list(decided([A, BEGIN, B, ABORT, C])) == [A, C]
    assert list(decided([A, BEGIN, B, C])) == [A]
