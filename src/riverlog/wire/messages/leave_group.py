"""LeaveGroup: members go of their own accord, or are sent away by an operator.

One member per request until version 2, from version 3 on a list of them.
"""

from riverlog.wire.apis import ApiKey
from riverlog.wire.types import array, int16, int32, message, string, struct


@struct
class MemberIdentity:
    """Who leaves: by member id, or by the name of a static member."""

    member_id: str = string(since=3)
    group_instance_id: str | None = string(since=3, nullable_since=3)
    reason: str | None = string(since=5, nullable_since=5)


@message(ApiKey.LEAVE_GROUP)
class LeaveGroupRequest:
    """Remove members."""

    group_id: str = string()
    members: list[MemberIdentity] = array(MemberIdentity, since=3)
    member_id: str = string(until=2)


@struct
class MemberResponse:
    """What became of one of them."""

    member_id: str = string(since=3)
    group_instance_id: str | None = string(since=3, nullable_since=3)
    error_code: int = int16(since=3)


@message(ApiKey.LEAVE_GROUP)
class LeaveGroupResponse:
    """What became of each."""

    throttle_time_ms: int = int32(since=1)
    error_code: int = int16()
    members: list[MemberResponse] = array(MemberResponse, since=3)
