"""Metadata: which brokers there are, and who leads which partition.

Asking for no topics means all of them in version 0; from version 1 on, null means all and an empty list none.
"""

from uuid import UUID

from riverlog.wire.apis import ApiKey
from riverlog.wire.types import INT32, array, boolean, int16, int32, message, string, struct, uuid

OPERATIONS_NOT_ASKED_FOR = -(2**31)


@struct
class MetadataRequestTopic:
    """A topic asked for, by id or by name."""

    topic_id: UUID = uuid(since=10)
    name: str | None = string(nullable_since=10)


@message(ApiKey.METADATA)
class MetadataRequest:
    """Ask for the cluster and for some topics, or all."""

    topics: list[MetadataRequestTopic] | None = array(MetadataRequestTopic, nullable_since=1)
    allow_auto_topic_creation: bool = boolean(since=4, default=True)
    include_cluster_authorized_operations: bool = boolean(since=8, until=10)
    include_topic_authorized_operations: bool = boolean(since=8)


@struct
class MetadataResponseBroker:
    """A broker and the address to reach it at."""

    node_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string(since=1, nullable_since=1)


@struct
class MetadataResponsePartition:
    """A partition, its leader and replicas."""

    error_code: int = int16()
    partition_index: int = int32()
    leader_id: int = int32()
    leader_epoch: int = int32(since=7, default=-1)
    replica_nodes: list[int] = array(INT32)
    isr_nodes: list[int] = array(INT32)
    offline_replicas: list[int] = array(INT32, since=5)


@struct
class MetadataResponseTopic:
    """A topic; its name is null where an unknown id was asked for."""

    error_code: int = int16()
    name: str | None = string(nullable_since=12)
    topic_id: UUID = uuid(since=10)
    is_internal: bool = boolean(since=1)
    partitions: list[MetadataResponsePartition] = array(MetadataResponsePartition)
    topic_authorized_operations: int = int32(since=8, default=OPERATIONS_NOT_ASKED_FOR)


@message(ApiKey.METADATA)
class MetadataResponse:
    """The cluster as the answering broker sees it."""

    throttle_time_ms: int = int32(since=3)
    brokers: list[MetadataResponseBroker] = array(MetadataResponseBroker)
    cluster_id: str | None = string(since=2, nullable_since=2)
    controller_id: int = int32(since=1, default=-1)
    topics: list[MetadataResponseTopic] = array(MetadataResponseTopic)
    cluster_authorized_operations: int = int32(since=8, until=10, default=OPERATIONS_NOT_ASKED_FOR)
    error_code: int = int16(since=13)
