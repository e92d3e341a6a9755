"""ListGroups: the groups that a broker looks after."""

from riverlog.wire.apis import ApiKey
from riverlog.wire.types import STRING, array, int16, int32, message, string, struct


@message(ApiKey.LIST_GROUPS)
class ListGroupsRequest:
    """Ask for all groups, or for those in some states and of some types."""

    states_filter: list[str] = array(STRING, since=4)
    types_filter: list[str] = array(STRING, since=5)


@struct
class ListedGroup:
    """A group."""

    group_id: str = string()
    protocol_type: str = string()
    group_state: str = string(since=4)
    group_type: str = string(since=5)


@message(ApiKey.LIST_GROUPS)
class ListGroupsResponse:
    """The groups that were found."""

    throttle_time_ms: int = int32(since=1)
    error_code: int = int16()
    groups: list[ListedGroup] = array(ListedGroup)
