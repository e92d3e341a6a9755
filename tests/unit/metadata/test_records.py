"""The facts of the metadata log."""

from dataclasses import FrozenInstanceError
from typing import get_args

import pytest

from riverlog.metadata.access_records import ACCESS_RECORD_TYPES
from riverlog.metadata.records import RECORD_TYPES, AccessRecord, MetadataRecord, TopicRecord, TransactionRecord


def test_every_record_has_its_number():
    types = (*RECORD_TYPES, *ACCESS_RECORD_TYPES)
    about_access = {each.__name__ for each in AccessRecord.__subclasses__()}
    assert {kind.declaration.__name__ for kind in ACCESS_RECORD_TYPES} == about_access
    others = set(get_args(MetadataRecord | TransactionRecord)) - {AccessRecord}
    assert {kind.declaration for kind in RECORD_TYPES} == others
    assert len({kind.key for kind in types}) == len(types)


def test_records_are_immutable():
    record = TopicRecord(name="orders")
    with pytest.raises(FrozenInstanceError):
        record.name = "bills"  # type: ignore[misc]  # this is what must fail
