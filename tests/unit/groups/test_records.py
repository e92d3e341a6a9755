"""The kinds of facts, against the table of Kafka 4.3."""

from riverlog.groups.records import RECORD_TYPES
from riverlog.wire.types import fields_of


def test_every_kind_has_one_number() -> None:
    numbers = [kind.number for kind in RECORD_TYPES]
    assert len(set(numbers)) == len(numbers)


def test_every_kind_is_written_in_a_version_that_is_understood() -> None:
    for kind in RECORD_TYPES:
        assert kind.version <= kind.latest


def test_keys_have_no_versions() -> None:
    for kind in RECORD_TYPES:
        assert all(field.wire.since == 0 for field in fields_of(kind.key))
