"""DeleteTopics: remove topics by name or, from version 6, also by id."""

from uuid import UUID

from riverlog.wire.apis import ApiKey
from riverlog.wire.types import STRING, array, int16, int32, message, string, struct, uuid


@struct
class DeleteTopicState:
    """A topic to delete: its name, or null and its id."""

    name: str | None = string(since=6, nullable_since=6)
    topic_id: UUID = uuid(since=6)


@message(ApiKey.DELETE_TOPICS)
class DeleteTopicsRequest:
    """Ask to delete; `topic_names` up to version 5, `topics` after it."""

    topics: list[DeleteTopicState] = array(DeleteTopicState, since=6)
    topic_names: list[str] = array(STRING, until=5)
    timeout_ms: int = int32()


@struct
class DeletableTopicResult:
    """What became of one topic; its name is null where an unknown id was asked for."""

    name: str | None = string(nullable_since=6)
    topic_id: UUID = uuid(since=6)
    error_code: int = int16()
    error_message: str | None = string(since=5, nullable_since=5)


@message(ApiKey.DELETE_TOPICS)
class DeleteTopicsResponse:
    """The answer, topic by topic."""

    throttle_time_ms: int = int32(since=1)
    responses: list[DeletableTopicResult] = array(DeletableTopicResult)
