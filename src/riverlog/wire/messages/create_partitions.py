"""CreatePartitions: give topics more partitions."""

from riverlog.wire.apis import ApiKey
from riverlog.wire.types import INT32, array, boolean, int16, int32, message, string, struct


@struct
class CreatePartitionsAssignment:
    """The brokers that shall hold one of the new partitions."""

    broker_ids: list[int] = array(INT32)


@struct
class CreatePartitionsTopic:
    """A topic and its new total; null assignments leave the placing to the controller."""

    name: str = string()
    count: int = int32()
    assignments: list[CreatePartitionsAssignment] | None = array(CreatePartitionsAssignment, nullable_since=0)


@message(ApiKey.CREATE_PARTITIONS)
class CreatePartitionsRequest:
    """Ask for more partitions; `validate_only` changes nothing."""

    topics: list[CreatePartitionsTopic] = array(CreatePartitionsTopic)
    timeout_ms: int = int32()
    validate_only: bool = boolean()


@struct
class CreatePartitionsTopicResult:
    """What became of one topic."""

    name: str = string()
    error_code: int = int16()
    error_message: str | None = string(nullable_since=0)


@message(ApiKey.CREATE_PARTITIONS)
class CreatePartitionsResponse:
    """The answer, topic by topic."""

    throttle_time_ms: int = int32()
    results: list[CreatePartitionsTopicResult] = array(CreatePartitionsTopicResult)
