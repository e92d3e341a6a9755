"""The facts of the metadata log: Kafka's own records, so that Kafka's tools can read them.

Each class is one record type for all versions that Kafka has of it, with Kafka's fields; `RECORD_TYPES` says by
which number it stands in the log and in which version it is written, that of metadata.version 4.3-IV0.
"""

from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from riverlog.wire.types import (
    INT32,
    UUID_,
    array,
    boolean,
    int8,
    int16,
    int32,
    int64,
    record,
    string,
    struct,
    uint16,
    uuid,
)

LEADER_UNCHANGED: Final = -2
RECOVERY_UNCHANGED: Final = -1


def _several(element: Any, **where: int) -> Any:
    """Declare an array that is a tuple, as everything in a record is immutable."""
    return array(element, default_factory=tuple, **where)


@struct
class BrokerEndpoint:
    """An address of a broker, by the name of its listener."""

    name: str = string()
    host: str = string()
    port: int = uint16()
    security_protocol: int = int16()


@struct
class BrokerFeature:
    """A feature that a broker supports, and its range of levels."""

    name: str = string()
    min_supported_version: int = int16()
    max_supported_version: int = int16()


@record(flexible_since=0)
class RegisterBrokerRecord:
    """A broker is part of the cluster; a later registration takes the place of an earlier one."""

    broker_id: int = int32()
    is_migrating_zk_broker: bool = boolean(since=2)
    incarnation_id: UUID = uuid()
    broker_epoch: int = int64()
    end_points: tuple[BrokerEndpoint, ...] = _several(BrokerEndpoint)
    features: tuple[BrokerFeature, ...] = _several(BrokerFeature)
    rack: str | None = string(nullable_since=0)
    fenced: bool = boolean(default=True)
    in_controlled_shutdown: bool = boolean(since=1)
    log_dirs: tuple[UUID, ...] = _several(UUID_, since=3, tag=0)
    cordoned_log_dirs: tuple[UUID, ...] | None = array(UUID_, since=4, nullable_since=4, tag=1)


@record(flexible_since=0)
class TopicRecord:
    """A topic exists; its partitions follow."""

    name: str = string()
    topic_id: UUID = uuid()


@record(flexible_since=0)
class PartitionRecord:
    """A partition exists, as described."""

    partition_id: int = int32(default=-1)
    topic_id: UUID = uuid()
    replicas: tuple[int, ...] = _several(INT32)
    isr: tuple[int, ...] = _several(INT32)
    removing_replicas: tuple[int, ...] = _several(INT32)
    adding_replicas: tuple[int, ...] = _several(INT32)
    leader: int = int32(default=-1)
    leader_recovery_state: int = int8(tag=0)
    leader_epoch: int = int32(default=-1)
    partition_epoch: int = int32(default=-1)
    directories: tuple[UUID, ...] = _several(UUID_, since=1)
    eligible_leader_replicas: tuple[int, ...] | None = array(INT32, since=2, nullable_since=2, tag=1)
    last_known_elr: tuple[int, ...] | None = array(INT32, since=2, nullable_since=2, tag=2)


@record(flexible_since=0)
class PartitionChangeRecord:
    """A partition has changed in the fields that are given; a leader that is given begins a new epoch."""

    partition_id: int = int32(default=-1)
    topic_id: UUID = uuid()
    isr: tuple[int, ...] | None = array(INT32, nullable_since=0, tag=0)
    leader: int = int32(default=LEADER_UNCHANGED, tag=1)
    replicas: tuple[int, ...] | None = array(INT32, nullable_since=0, tag=2)
    removing_replicas: tuple[int, ...] | None = array(INT32, nullable_since=0, tag=3)
    adding_replicas: tuple[int, ...] | None = array(INT32, nullable_since=0, tag=4)
    leader_recovery_state: int = int8(default=RECOVERY_UNCHANGED, tag=5)
    directories: tuple[UUID, ...] | None = array(UUID_, since=1, nullable_since=1, tag=8)
    eligible_leader_replicas: tuple[int, ...] | None = array(INT32, since=2, nullable_since=2, tag=6)
    last_known_elr: tuple[int, ...] | None = array(INT32, since=2, nullable_since=2, tag=7)

    def elsewhere(self, topic_id: UUID, partition_id: int) -> "PartitionChangeRecord":
        """Return the same change of another partition."""
        return PartitionChangeRecord(
            partition_id,
            topic_id,
            self.isr,
            self.leader,
            self.replicas,
            self.removing_replicas,
            self.adding_replicas,
            self.leader_recovery_state,
            self.directories,
            self.eligible_leader_replicas,
            self.last_known_elr,
        )


@record(flexible_since=0)
class ConfigRecord:
    """A setting of a topic, broker or group has this value, or none any more."""

    resource_type: int = int8()
    resource_name: str = string()
    name: str = string()
    value: str | None = string(nullable_since=0)


@record(flexible_since=0)
class RemoveTopicRecord:
    """A topic is gone, with its partitions and settings."""

    topic_id: UUID = uuid()


@record(flexible_since=0)
class FeatureLevelRecord:
    """A feature is at this level in the whole cluster; every metadata log begins with metadata.version."""

    name: str = string()
    feature_level: int = int16()


@record(flexible_since=0)
class ProducerIdsRecord:
    """All producer ids below the next one are given out, the last block to this broker."""

    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)
    next_producer_id: int = int64()


@record(flexible_since=0)
class NoOpRecord:
    """Nothing: a sign of life from the leader of the log."""


@record(flexible_since=0)
class UnregisterBrokerRecord:
    """A broker is no longer part of the cluster."""

    broker_id: int = int32()
    broker_epoch: int = int64()


@record(flexible_since=0)
class BrokerRegistrationChangeRecord:
    """Something about a registered broker is different; 0 stands for no change."""

    broker_id: int = int32()
    broker_epoch: int = int64()
    fenced: int = int8(tag=0)
    """1 where the broker is fenced from now on, -1 where it no longer is."""
    in_controlled_shutdown: int = int8(since=1, tag=1)
    """1 where the broker stops, and leaves what it leads to others first."""
    log_dirs: tuple[UUID, ...] = _several(UUID_, since=2, tag=2)
    """The log directories that it has left; empty where they are as before."""
    cordoned_log_dirs: tuple[UUID, ...] | None = array(UUID_, since=3, nullable_since=3, tag=3)
    """The log directories that are to get no new replicas; None where they are as before."""


@record(flexible_since=0)
class RegisterControllerRecord:
    """A controller is there: where it is reached, and which features it supports."""

    controller_id: int = int32()
    incarnation_id: UUID = uuid()
    zk_migration_ready: bool = boolean()
    end_points: tuple[BrokerEndpoint, ...] = _several(BrokerEndpoint)
    features: tuple[BrokerFeature, ...] = _several(BrokerFeature)


@record(flexible_since=0)
class ClearElrRecord:
    """The eligible leaders of a topic are forgotten, or those of all topics where none is named (KIP-966)."""

    topic_name: str = string()


@record(flexible_since=0)
class FenceBrokerRecord:
    """A broker is fenced, as logs of before metadata.version 3.1 have it."""

    id: int = int32()
    epoch: int = int64()


@record(flexible_since=0)
class UnfenceBrokerRecord:
    """A broker is no longer fenced, as logs of before metadata.version 3.1 have it."""

    id: int = int32()
    epoch: int = int64()


@record(flexible_since=0)
class ZkMigrationStateRecord:
    """How far a cluster of before KRaft has come with its migration; it means nothing here."""

    zk_migration_state: int = int8()


@record(flexible_since=0)
class BeginTransactionRecord:
    """The records from here to the end of the transaction take effect together, or not at all (KIP-868)."""

    name: str | None = string(nullable_since=0, tag=0)


@record(flexible_since=0)
class EndTransactionRecord:
    """What was begun takes effect."""


@record(flexible_since=0)
class AbortTransactionRecord:
    """What was begun does not take effect."""

    reason: str | None = string(nullable_since=0, tag=0)


class AccessRecord:
    """A record about who may do what, with which credentials, and how much of it: one of `access_records.py`."""

    __slots__ = ()


TransactionRecord = BeginTransactionRecord | EndTransactionRecord | AbortTransactionRecord

MetadataRecord = (
    RegisterBrokerRecord
    | UnregisterBrokerRecord
    | BrokerRegistrationChangeRecord
    | RegisterControllerRecord
    | TopicRecord
    | PartitionRecord
    | PartitionChangeRecord
    | ConfigRecord
    | RemoveTopicRecord
    | FeatureLevelRecord
    | ProducerIdsRecord
    | NoOpRecord
    | ClearElrRecord
    | FenceBrokerRecord
    | UnfenceBrokerRecord
    | ZkMigrationStateRecord
    | AccessRecord
)


@dataclass(frozen=True, slots=True)
class RecordType:
    """How a record stands in the log: its number, and the version in which it is written."""

    declaration: type[Any]
    key: int
    version: int


RECORD_TYPES: Final[tuple[RecordType, ...]] = (
    RecordType(RegisterBrokerRecord, 0, 4),
    RecordType(UnregisterBrokerRecord, 1, 0),
    RecordType(TopicRecord, 2, 0),
    RecordType(PartitionRecord, 3, 2),
    RecordType(ConfigRecord, 4, 0),
    RecordType(PartitionChangeRecord, 5, 2),
    RecordType(FenceBrokerRecord, 7, 0),
    RecordType(UnfenceBrokerRecord, 8, 0),
    RecordType(RemoveTopicRecord, 9, 0),
    RecordType(FeatureLevelRecord, 12, 0),
    RecordType(ProducerIdsRecord, 15, 0),
    RecordType(BrokerRegistrationChangeRecord, 17, 3),
    RecordType(NoOpRecord, 20, 0),
    RecordType(ZkMigrationStateRecord, 21, 0),
    RecordType(BeginTransactionRecord, 23, 0),
    RecordType(EndTransactionRecord, 24, 0),
    RecordType(AbortTransactionRecord, 25, 0),
    RecordType(RegisterControllerRecord, 27, 0),
    RecordType(ClearElrRecord, 28, 0),
)
"""All types but those of `access_records.py`."""
