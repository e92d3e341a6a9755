"""The one table of APIs: key, versions, first flexible version.

A version is flexible when it uses compact lengths and tagged fields (KIP-482). What a node advertises, the names of
metrics and the table in `docs/protocol.md` derive from here. The messages themselves are imported on first
use, so that this module stays cheap to import.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum, unique
from functools import cached_property
from importlib import import_module
from typing import Any, Final


@unique
class ApiKey(IntEnum):
    """Every API that Kafka gives a number, built here or not: an unsupported request is still called by its name.

    Those from 10,000 on are riverlog's own, and shown only to clients that name themselves riverlog.
    """

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    SASL_HANDSHAKE = 17
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DELETE_RECORDS = 21
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    WRITE_TXN_MARKERS = 27
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_ACLS = 29
    CREATE_ACLS = 30
    DELETE_ACLS = 31
    DESCRIBE_CONFIGS = 32
    ALTER_CONFIGS = 33
    ALTER_REPLICA_LOG_DIRS = 34
    DESCRIBE_LOG_DIRS = 35
    SASL_AUTHENTICATE = 36
    CREATE_PARTITIONS = 37
    CREATE_DELEGATION_TOKEN = 38
    RENEW_DELEGATION_TOKEN = 39
    EXPIRE_DELEGATION_TOKEN = 40
    DESCRIBE_DELEGATION_TOKEN = 41
    DELETE_GROUPS = 42
    ELECT_LEADERS = 43
    INCREMENTAL_ALTER_CONFIGS = 44
    ALTER_PARTITION_REASSIGNMENTS = 45
    LIST_PARTITION_REASSIGNMENTS = 46
    OFFSET_DELETE = 47
    DESCRIBE_CLIENT_QUOTAS = 48
    ALTER_CLIENT_QUOTAS = 49
    DESCRIBE_USER_SCRAM_CREDENTIALS = 50
    ALTER_USER_SCRAM_CREDENTIALS = 51
    VOTE = 52
    BEGIN_QUORUM_EPOCH = 53
    END_QUORUM_EPOCH = 54
    DESCRIBE_QUORUM = 55
    ALTER_PARTITION = 56
    UPDATE_FEATURES = 57
    ENVELOPE = 58
    FETCH_SNAPSHOT = 59
    DESCRIBE_CLUSTER = 60
    DESCRIBE_PRODUCERS = 61
    BROKER_REGISTRATION = 62
    BROKER_HEARTBEAT = 63
    UNREGISTER_BROKER = 64
    DESCRIBE_TRANSACTIONS = 65
    LIST_TRANSACTIONS = 66
    ALLOCATE_PRODUCER_IDS = 67
    CONSUMER_GROUP_HEARTBEAT = 68
    CONSUMER_GROUP_DESCRIBE = 69
    CONTROLLER_REGISTRATION = 70
    GET_TELEMETRY_SUBSCRIPTIONS = 71
    PUSH_TELEMETRY = 72
    ASSIGN_REPLICAS_TO_DIRS = 73
    LIST_CONFIG_RESOURCES = 74
    DESCRIBE_TOPIC_PARTITIONS = 75
    SHARE_GROUP_HEARTBEAT = 76
    SHARE_GROUP_DESCRIBE = 77
    SHARE_FETCH = 78
    SHARE_ACKNOWLEDGE = 79
    ADD_RAFT_VOTER = 80
    REMOVE_RAFT_VOTER = 81
    UPDATE_RAFT_VOTER = 82
    INITIALIZE_SHARE_GROUP_STATE = 83
    READ_SHARE_GROUP_STATE = 84
    WRITE_SHARE_GROUP_STATE = 85
    DELETE_SHARE_GROUP_STATE = 86
    READ_SHARE_GROUP_STATE_SUMMARY = 87
    STREAMS_GROUP_HEARTBEAT = 88
    STREAMS_GROUP_DESCRIBE = 89
    DESCRIBE_SHARE_GROUP_OFFSETS = 90
    ALTER_SHARE_GROUP_OFFSETS = 91
    DELETE_SHARE_GROUP_OFFSETS = 92
    JOIN_TRANSACTION = 10_000
    END_TRANSACTION = 10_001
    DESCRIBE_BATCHES = 10_002

    @property
    def title(self) -> str:
        """Name the API as Kafka's documentation does: `CREATE_TOPICS` is `CreateTopics`."""
        return self.name.title().replace("_", "")


@dataclass(frozen=True, slots=True)
class Versions:
    """A range of versions, both ends included."""

    min: int
    max: int

    def __contains__(self, version: int) -> bool:
        return self.min <= version <= self.max

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.min, self.max + 1))

    def __str__(self) -> str:
        return str(self.min) if self.min == self.max else f"{self.min}–{self.max}"


FIRST_OWN_KEY: Final = 10_000
NEVER_FLEXIBLE: Final = 1 << 15
"""No version reaches this: an int16 carries it."""


@dataclass(frozen=True, eq=False)
class Api:
    """One line of the table: an API and the versions of it that riverlog speaks."""

    key: ApiKey
    versions: Versions
    flexible_since: int
    advertised_min: int | None = None
    """Set where clients must be shown older versions than are spoken."""
    controllers_only: bool = False
    """Asked of controllers, on a listener of their own; no client hears of it."""

    @cached_property
    def name(self) -> str:
        return self.key.title

    @property
    def is_own(self) -> bool:
        """Return whether it is riverlog's: no client of Kafka's hears of it."""
        return self.key >= FIRST_OWN_KEY

    @property
    def advertised(self) -> Versions:
        """Return the versions to show in ApiVersions; a request below `versions` is refused all the same."""
        return self.versions if self.advertised_min is None else Versions(self.advertised_min, self.versions.max)

    def is_flexible(self, version: int) -> bool:
        return version >= self.flexible_since

    @cached_property
    def request(self) -> type[Any]:
        """Return the dataclass of the request."""
        return self._message("Request")

    @cached_property
    def response(self) -> type[Any]:
        """Return the dataclass of the response."""
        return self._message("Response")

    def _message(self, direction: str) -> type[Any]:
        module = import_module(f"riverlog.wire.messages.{self.key.name.lower()}")
        message: type[Any] = getattr(module, self.name + direction)
        return message


APIS: Final = (
    # Produce 0-2 are refused, but librdkafka compresses only if it is shown them (KAFKA-18659).
    Api(ApiKey.PRODUCE, Versions(3, 13), flexible_since=9, advertised_min=0),
    Api(ApiKey.FETCH, Versions(4, 18), flexible_since=12),
    Api(ApiKey.LIST_OFFSETS, Versions(1, 11), flexible_since=6),
    Api(ApiKey.METADATA, Versions(0, 13), flexible_since=9),
    Api(ApiKey.OFFSET_COMMIT, Versions(2, 10), flexible_since=8),
    Api(ApiKey.OFFSET_FETCH, Versions(1, 10), flexible_since=6),
    Api(ApiKey.FIND_COORDINATOR, Versions(0, 6), flexible_since=3),
    Api(ApiKey.JOIN_GROUP, Versions(0, 9), flexible_since=6),
    Api(ApiKey.HEARTBEAT, Versions(0, 4), flexible_since=4),
    Api(ApiKey.LEAVE_GROUP, Versions(0, 5), flexible_since=4),
    Api(ApiKey.SYNC_GROUP, Versions(0, 5), flexible_since=4),
    Api(ApiKey.DESCRIBE_GROUPS, Versions(0, 6), flexible_since=5),
    Api(ApiKey.LIST_GROUPS, Versions(0, 5), flexible_since=3),
    Api(ApiKey.SASL_HANDSHAKE, Versions(0, 1), flexible_since=NEVER_FLEXIBLE),
    Api(ApiKey.API_VERSIONS, Versions(0, 4), flexible_since=3),
    Api(ApiKey.CREATE_TOPICS, Versions(2, 7), flexible_since=5),
    Api(ApiKey.DELETE_TOPICS, Versions(1, 6), flexible_since=4),
    Api(ApiKey.DELETE_RECORDS, Versions(0, 2), flexible_since=2),
    Api(ApiKey.INIT_PRODUCER_ID, Versions(0, 5), flexible_since=2),
    Api(ApiKey.OFFSET_FOR_LEADER_EPOCH, Versions(2, 4), flexible_since=4),
    Api(ApiKey.ADD_PARTITIONS_TO_TXN, Versions(0, 5), flexible_since=3),
    Api(ApiKey.ADD_OFFSETS_TO_TXN, Versions(0, 4), flexible_since=3),
    Api(ApiKey.END_TXN, Versions(0, 5), flexible_since=3),
    Api(ApiKey.WRITE_TXN_MARKERS, Versions(1, 2), flexible_since=1),
    Api(ApiKey.TXN_OFFSET_COMMIT, Versions(0, 5), flexible_since=3),
    Api(ApiKey.DESCRIBE_ACLS, Versions(1, 3), flexible_since=2),
    Api(ApiKey.CREATE_ACLS, Versions(1, 3), flexible_since=2),
    Api(ApiKey.DELETE_ACLS, Versions(1, 3), flexible_since=2),
    Api(ApiKey.DESCRIBE_CONFIGS, Versions(1, 4), flexible_since=4),
    Api(ApiKey.ALTER_CONFIGS, Versions(0, 2), flexible_since=2),
    Api(ApiKey.ALTER_REPLICA_LOG_DIRS, Versions(1, 2), flexible_since=2),
    Api(ApiKey.DESCRIBE_LOG_DIRS, Versions(1, 5), flexible_since=2),
    Api(ApiKey.SASL_AUTHENTICATE, Versions(0, 2), flexible_since=2),
    Api(ApiKey.CREATE_PARTITIONS, Versions(0, 3), flexible_since=2),
    Api(ApiKey.DELETE_GROUPS, Versions(0, 2), flexible_since=2),
    Api(ApiKey.ELECT_LEADERS, Versions(0, 2), flexible_since=2),
    Api(ApiKey.INCREMENTAL_ALTER_CONFIGS, Versions(0, 1), flexible_since=1),
    Api(ApiKey.ALTER_PARTITION_REASSIGNMENTS, Versions(0, 1), flexible_since=0),
    Api(ApiKey.LIST_PARTITION_REASSIGNMENTS, Versions(0, 0), flexible_since=0),
    Api(ApiKey.OFFSET_DELETE, Versions(0, 0), flexible_since=NEVER_FLEXIBLE),
    Api(ApiKey.DESCRIBE_CLIENT_QUOTAS, Versions(0, 1), flexible_since=1),
    Api(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, Versions(0, 0), flexible_since=0),
    Api(ApiKey.VOTE, Versions(0, 2), flexible_since=0, controllers_only=True),
    Api(ApiKey.BEGIN_QUORUM_EPOCH, Versions(0, 1), flexible_since=1, controllers_only=True),
    Api(ApiKey.END_QUORUM_EPOCH, Versions(0, 1), flexible_since=1, controllers_only=True),
    Api(ApiKey.DESCRIBE_QUORUM, Versions(0, 2), flexible_since=0),
    Api(ApiKey.ALTER_PARTITION, Versions(2, 3), flexible_since=0, controllers_only=True),
    Api(ApiKey.UPDATE_FEATURES, Versions(0, 2), flexible_since=0),
    Api(ApiKey.ENVELOPE, Versions(0, 0), flexible_since=0, controllers_only=True),
    Api(ApiKey.FETCH_SNAPSHOT, Versions(0, 1), flexible_since=0, controllers_only=True),
    Api(ApiKey.DESCRIBE_CLUSTER, Versions(0, 2), flexible_since=0),
    Api(ApiKey.DESCRIBE_PRODUCERS, Versions(0, 0), flexible_since=0),
    Api(ApiKey.BROKER_REGISTRATION, Versions(0, 4), flexible_since=0, controllers_only=True),
    Api(ApiKey.BROKER_HEARTBEAT, Versions(0, 2), flexible_since=0, controllers_only=True),
    Api(ApiKey.UNREGISTER_BROKER, Versions(0, 0), flexible_since=0),
    Api(ApiKey.DESCRIBE_TRANSACTIONS, Versions(0, 0), flexible_since=0),
    Api(ApiKey.LIST_TRANSACTIONS, Versions(0, 2), flexible_since=0),
    Api(ApiKey.ALLOCATE_PRODUCER_IDS, Versions(0, 0), flexible_since=0, controllers_only=True),
    Api(ApiKey.CONSUMER_GROUP_HEARTBEAT, Versions(0, 1), flexible_since=0),
    Api(ApiKey.CONSUMER_GROUP_DESCRIBE, Versions(0, 1), flexible_since=0),
    Api(ApiKey.CONTROLLER_REGISTRATION, Versions(0, 0), flexible_since=0, controllers_only=True),
    Api(ApiKey.ASSIGN_REPLICAS_TO_DIRS, Versions(0, 0), flexible_since=0, controllers_only=True),
    Api(ApiKey.LIST_CONFIG_RESOURCES, Versions(0, 1), flexible_since=0),
    Api(ApiKey.DESCRIBE_TOPIC_PARTITIONS, Versions(0, 0), flexible_since=0),
    Api(ApiKey.ADD_RAFT_VOTER, Versions(0, 1), flexible_since=0),
    Api(ApiKey.REMOVE_RAFT_VOTER, Versions(0, 0), flexible_since=0),
    Api(ApiKey.UPDATE_RAFT_VOTER, Versions(0, 0), flexible_since=0, controllers_only=True),
    Api(ApiKey.JOIN_TRANSACTION, Versions(0, 0), flexible_since=0),
    Api(ApiKey.END_TRANSACTION, Versions(0, 0), flexible_since=0),
    Api(ApiKey.DESCRIBE_BATCHES, Versions(0, 0), flexible_since=0),
)

API_BY_KEY: Final[dict[int, Api]] = {api.key: api for api in APIS}
