"""Records of the metadata log in words: the name of each, and its fields."""

from dataclasses import fields, is_dataclass
from typing import Any, Final, NamedTuple
from uuid import UUID

from riverlog.metadata.encoding import BadMetadataRecord
from riverlog.metadata.encoding import decode_record as decode_fact
from riverlog.raft.control_records import BadControlRecord, decode_record
from riverlog.records.record import Record

METADATA_FOLDER: Final = "__cluster_metadata-0"
_SUFFIX: Final = "Record"


class RecordDescription(NamedTuple):
    """What a record says, or why it cannot be read."""

    type: str
    fields: dict[str, Any]
    problem: str = ""


def facts_of(record: Record, *, control: bool) -> RecordDescription:
    """Read one record of the metadata log or of its snapshots."""
    try:
        said = decode_record(record) if control else decode_fact(record.value or b"")
    except (BadControlRecord, BadMetadataRecord) as error:
        return RecordDescription("unknown", {}, str(error))
    return described(said)


def described(said: object) -> RecordDescription:
    """Return the name and the fields of a record."""
    return RecordDescription(type(said).__name__.removesuffix(_SUFFIX), _plain(said))


def _plain(value: Any) -> Any:
    """Return a value as JSON has it."""
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value
