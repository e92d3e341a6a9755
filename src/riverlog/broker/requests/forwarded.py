"""The requests of clients that the active controller answers; a broker hands them on as they are (KIP-590)."""

from struct import Struct
from typing import Final

from riverlog.model.ports import Buffer
from riverlog.wire.apis import ApiKey

FORWARDED: Final = frozenset(
    {
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_TOPICS,
        ApiKey.CREATE_ACLS,
        ApiKey.DELETE_ACLS,
        ApiKey.ALTER_CONFIGS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.CREATE_PARTITIONS,
        ApiKey.ELECT_LEADERS,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        ApiKey.UPDATE_FEATURES,
        ApiKey.DESCRIBE_QUORUM,
        ApiKey.UNREGISTER_BROKER,
        ApiKey.ADD_RAFT_VOTER,
        ApiKey.REMOVE_RAFT_VOTER,
    }
)

_READING: Final = frozenset({ApiKey.DESCRIBE_QUORUM, ApiKey.LIST_PARTITION_REASSIGNMENTS})
_KEY: Final = Struct(">h")


def is_reading(frame: Buffer) -> bool:
    """Return whether a forwarded request changes nothing."""
    (key,) = _KEY.unpack_from(frame)
    return key in _READING
