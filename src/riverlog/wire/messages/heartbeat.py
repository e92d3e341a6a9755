"""Heartbeat: a member of a classic group is still there."""

from riverlog.wire.apis import ApiKey
from riverlog.wire.types import int16, int32, message, string


@message(ApiKey.HEARTBEAT)
class HeartbeatRequest:
    """Report that a member is there."""

    group_id: str = string()
    generation_id: int = int32()
    member_id: str = string()
    group_instance_id: str | None = string(since=3, nullable_since=3)


@message(ApiKey.HEARTBEAT)
class HeartbeatResponse:
    """Whether it still belongs, or must join again."""

    throttle_time_ms: int = int32(since=1)
    error_code: int = int16()
