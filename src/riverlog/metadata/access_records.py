"""The metadata log's records about access: who may do what, with which credentials, and how much of it.

They are kept as they are and written back into snapshots: nothing here reads them yet, and a log that Apache Kafka
wrote loses none. Most logs have none of them, so this is imported with the first one.
"""

from typing import Any, Final
from uuid import UUID

from riverlog.metadata.records import AccessRecord, RecordType
from riverlog.wire.types import (
    STRING,
    array,
    binary,
    boolean,
    float64,
    int8,
    int32,
    int64,
    record,
    string,
    struct,
    uuid,
)


def _several(element: Any) -> Any:
    return array(element, default_factory=tuple)


@record(flexible_since=0)
class AccessControlEntryRecord(AccessRecord):
    """An ACL: a principal may do something to resources of a name, or may not."""

    id: UUID = uuid()
    resource_type: int = int8()
    resource_name: str = string()
    pattern_type: int = int8()
    principal: str = string()
    host: str = string()
    operation: int = int8()
    permission_type: int = int8()


@record(flexible_since=0)
class RemoveAccessControlEntryRecord(AccessRecord):
    """An ACL is gone."""

    id: UUID = uuid()


@record(flexible_since=0)
class UserScramCredentialRecord(AccessRecord):
    """What a user's password is checked against, for one SCRAM mechanism."""

    name: str = string()
    mechanism: int = int8()
    salt: bytes = binary()
    stored_key: bytes = binary()
    server_key: bytes = binary()
    iterations: int = int32()


@record(flexible_since=0)
class RemoveUserScramCredentialRecord(AccessRecord):
    """A user has no password any more, for one SCRAM mechanism."""

    name: str = string()
    mechanism: int = int8()


@struct
class QuotaEntity:
    """One part of whom a quota is for; without a name it is the default."""

    entity_type: str = string()
    entity_name: str | None = string(nullable_since=0)


@record(flexible_since=0)
class ClientQuotaRecord(AccessRecord):
    """A quota has this value, or none any more."""

    entity: tuple[QuotaEntity, ...] = _several(QuotaEntity)
    key: str = string()
    value: float = float64()
    remove: bool = boolean()


@record(flexible_since=0)
class DelegationTokenRecord(AccessRecord):
    """A delegation token exists (KIP-48)."""

    owner: str = string()
    requester: str = string()
    renewers: tuple[str, ...] = _several(STRING)
    issue_timestamp: int = int64()
    max_timestamp: int = int64()
    expiration_timestamp: int = int64()
    token_id: str = string()


@record(flexible_since=0)
class RemoveDelegationTokenRecord(AccessRecord):
    """A delegation token is gone."""

    token_id: str = string()


ACCESS_RECORD_TYPES: Final = (
    RecordType(DelegationTokenRecord, 10, 0),
    RecordType(UserScramCredentialRecord, 11, 0),
    RecordType(ClientQuotaRecord, 14, 0),
    RecordType(AccessControlEntryRecord, 18, 0),
    RecordType(RemoveAccessControlEntryRecord, 19, 0),
    RecordType(RemoveUserScramCredentialRecord, 22, 0),
    RecordType(RemoveDelegationTokenRecord, 26, 0),
)


def access_key(record: AccessRecord) -> str:
    """Return what the record is about: a later record with the same key takes the place of an earlier one.

    Sorted by their keys, records stand in the order in which Apache Kafka's snapshots have them.
    """
    match record:
        case ClientQuotaRecord():
            entity = sorted(
                (each.entity_type, each.entity_name or "", each.entity_name is None) for each in record.entity
            )
            return f"1/{entity}/{record.key}"
        case AccessControlEntryRecord() | RemoveAccessControlEntryRecord():
            return f"2/{record.id}"
        case UserScramCredentialRecord() | RemoveUserScramCredentialRecord():
            return f"3/{record.mechanism}/{record.name}"
        case DelegationTokenRecord() | RemoveDelegationTokenRecord():
            return f"4/{record.token_id}"
        case _:
            raise AssertionError(f"{type(record).__name__} is no record about access")


def lasting(record: AccessRecord) -> AccessRecord | None:
    """Return the record if it says what is so, None if it takes something back."""
    match record:
        case RemoveAccessControlEntryRecord() | RemoveUserScramCredentialRecord() | RemoveDelegationTokenRecord():
            return None
        case ClientQuotaRecord():
            return None if record.remove else record
        case _:
            return record
