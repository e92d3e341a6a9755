"""JoinGroup: become a member of a classic group, or come back to it; answered when the whole group has joined."""

from riverlog.wire.apis import ApiKey
from riverlog.wire.types import array, binary, boolean, int16, int32, message, string, struct


@struct
class JoinGroupRequestProtocol:
    """A way of sharing that the member offers, and what it wants to tell the leader in it."""

    name: str = string()
    metadata: bytes = binary()


@message(ApiKey.JOIN_GROUP)
class JoinGroupRequest:
    """Ask to be a member; whoever has no member id yet is given one."""

    group_id: str = string()
    session_timeout_ms: int = int32()
    rebalance_timeout_ms: int = int32(since=1, default=-1)
    member_id: str = string()
    group_instance_id: str | None = string(since=5, nullable_since=5)
    protocol_type: str = string()
    protocols: list[JoinGroupRequestProtocol] = array(JoinGroupRequestProtocol)
    reason: str | None = string(since=8, nullable_since=8)


@struct
class JoinGroupResponseMember:
    """A member as the leader sees it."""

    member_id: str = string()
    group_instance_id: str | None = string(since=5, nullable_since=5)
    metadata: bytes = binary()


@message(ApiKey.JOIN_GROUP)
class JoinGroupResponse:
    """The new generation; only its leader is told the members."""

    throttle_time_ms: int = int32(since=2)
    error_code: int = int16()
    generation_id: int = int32(default=-1)
    protocol_type: str | None = string(since=7, nullable_since=7)
    protocol_name: str | None = string(nullable_since=7)
    leader: str = string()
    skip_assignment: bool = boolean(since=9)
    member_id: str = string()
    members: list[JoinGroupResponseMember] = array(JoinGroupResponseMember)
