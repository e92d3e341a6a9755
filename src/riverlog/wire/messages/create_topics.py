"""CreateTopics: new topics with their partitions and settings, or a rehearsal of that."""

from uuid import UUID

from riverlog.wire.apis import ApiKey
from riverlog.wire.types import INT32, array, boolean, int8, int16, int32, message, string, struct, uuid


@struct
class CreatableReplicaAssignment:
    """The brokers that shall hold one partition, the preferred leader first."""

    partition_index: int = int32()
    broker_ids: list[int] = array(INT32)


@struct
class CreatableTopicConfig:
    """A setting for the new topic; a null value leaves the default."""

    name: str = string()
    value: str | None = string(nullable_since=0)


@struct
class CreatableTopic:
    """A topic to create; -1 for partitions or replicas takes the broker's default, or the assignments'."""

    name: str = string()
    num_partitions: int = int32(default=-1)
    replication_factor: int = int16(default=-1)
    assignments: list[CreatableReplicaAssignment] = array(CreatableReplicaAssignment)
    configs: list[CreatableTopicConfig] = array(CreatableTopicConfig)


@message(ApiKey.CREATE_TOPICS)
class CreateTopicsRequest:
    """Ask for new topics; `validate_only` changes nothing."""

    topics: list[CreatableTopic] = array(CreatableTopic)
    timeout_ms: int = int32(default=60_000)
    validate_only: bool = boolean()


@struct
class CreatableTopicConfigs:
    """A setting of the new topic and where its value comes from."""

    name: str = string(since=5)
    value: str | None = string(since=5, nullable_since=5)
    read_only: bool = boolean(since=5)
    config_source: int = int8(since=5, default=-1)
    is_sensitive: bool = boolean(since=5)


@struct
class CreatableTopicResult:
    """What became of one topic. `configs` is empty rather than null: Java's client does not expect null there."""

    name: str = string()
    topic_id: UUID = uuid(since=7)
    error_code: int = int16()
    error_message: str | None = string(nullable_since=0)
    topic_config_error_code: int = int16(since=5, tag=0)
    num_partitions: int = int32(since=5, default=-1)
    replication_factor: int = int16(since=5, default=-1)
    configs: list[CreatableTopicConfigs] | None = array(
        CreatableTopicConfigs, since=5, nullable_since=5, default_factory=list
    )


@message(ApiKey.CREATE_TOPICS)
class CreateTopicsResponse:
    """The answer, topic by topic."""

    throttle_time_ms: int = int32()
    topics: list[CreatableTopicResult] = array(CreatableTopicResult)
