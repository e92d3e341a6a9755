"""SyncGroup: the leader hands in who gets what, and every member learns its part."""

from riverlog.wire.apis import ApiKey
from riverlog.wire.types import array, binary, int16, int32, message, string, struct


@struct
class SyncGroupRequestAssignment:
    """What one member gets, in words that only members understand."""

    member_id: str = string()
    assignment: bytes = binary()


@message(ApiKey.SYNC_GROUP)
class SyncGroupRequest:
    """Ask for one's part; the leader brings everybody's."""

    group_id: str = string()
    generation_id: int = int32()
    member_id: str = string()
    group_instance_id: str | None = string(since=3, nullable_since=3)
    protocol_type: str | None = string(since=5, nullable_since=5)
    protocol_name: str | None = string(since=5, nullable_since=5)
    assignments: list[SyncGroupRequestAssignment] = array(SyncGroupRequestAssignment)


@message(ApiKey.SYNC_GROUP)
class SyncGroupResponse:
    """The member's part."""

    throttle_time_ms: int = int32(since=1)
    error_code: int = int16()
    protocol_type: str | None = string(since=5, nullable_since=5)
    protocol_name: str | None = string(since=5, nullable_since=5)
    assignment: bytes = binary()
