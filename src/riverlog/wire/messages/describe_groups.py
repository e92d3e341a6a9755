"""DescribeGroups: classic groups with their members."""

from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.metadata import OPERATIONS_NOT_ASKED_FOR
from riverlog.wire.types import STRING, array, binary, boolean, int16, int32, message, string, struct


@message(ApiKey.DESCRIBE_GROUPS)
class DescribeGroupsRequest:
    """Name the groups."""

    groups: list[str] = array(STRING)
    include_authorized_operations: bool = boolean(since=3)


@struct
class DescribedGroupMember:
    """A member, with what it offered and what it got."""

    member_id: str = string()
    group_instance_id: str | None = string(since=4, nullable_since=4)
    client_id: str = string()
    client_host: str = string()
    member_metadata: bytes = binary()
    member_assignment: bytes = binary()


@struct
class DescribedGroup:
    """A group; one that is not there is called dead."""

    error_code: int = int16()
    error_message: str | None = string(since=6, nullable_since=6)
    group_id: str = string()
    group_state: str = string()
    protocol_type: str = string()
    protocol_data: str = string()
    members: list[DescribedGroupMember] = array(DescribedGroupMember)
    authorized_operations: int = int32(since=3, default=OPERATIONS_NOT_ASKED_FOR)


@message(ApiKey.DESCRIBE_GROUPS)
class DescribeGroupsResponse:
    """The answer, group by group."""

    throttle_time_ms: int = int32(since=1)
    groups: list[DescribedGroup] = array(DescribedGroup)
