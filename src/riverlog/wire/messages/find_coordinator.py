"""FindCoordinator: which broker looks after a group or a transactional id.

One key per request until version 3, from version 4 on a list of them.
"""

from riverlog.wire.apis import ApiKey
from riverlog.wire.types import STRING, array, int8, int16, int32, message, string, struct


@message(ApiKey.FIND_COORDINATOR)
class FindCoordinatorRequest:
    """Ask for coordinators; `key_type` 0 means groups, 1 transactional ids, 2 share groups."""

    key: str = string(until=3)
    key_type: int = int8(since=1)
    coordinator_keys: list[str] = array(STRING, since=4)


@struct
class Coordinator:
    """Who looks after one key, or why that is not known."""

    key: str = string(since=4)
    node_id: int = int32(since=4)
    host: str = string(since=4)
    port: int = int32(since=4)
    error_code: int = int16(since=4)
    error_message: str | None = string(since=4, nullable_since=4)


@message(ApiKey.FIND_COORDINATOR)
class FindCoordinatorResponse:
    """The coordinator of the one key, or of each key that was asked for."""

    throttle_time_ms: int = int32(since=1)
    error_code: int = int16(until=3)
    error_message: str | None = string(since=1, until=3, nullable_since=1)
    node_id: int = int32(until=3)
    host: str = string(until=3)
    port: int = int32(until=3)
    coordinators: list[Coordinator] = array(Coordinator, since=4)
