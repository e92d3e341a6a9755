"""The facts of the metadata log."""

from dataclasses import FrozenInstanceError
from typing import get_args

import pytest

from riverlog.metadata.records import RECORD_TYPES, MetadataRecord, TopicRecord, TransactionRecord


def test_every_record_has_its_number():
    assert {kind.declaration for kind in RECORD_TYPES} == set(get_args(MetadataRecord | TransactionRecord))
    assert len({kind.key for kind in RECORD_TYPES}) == len(RECORD_TYPES)


def test_records_are_immutable():
    record = TopicRecord(name="orders")
    with pytest.raises(FrozenInstanceError):
        record.name = "bills"  # type: ignore[misc]  # this is what must fail
