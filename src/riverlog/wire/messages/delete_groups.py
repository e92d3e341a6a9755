"""DeleteGroups: forget groups that have no members, and their offsets."""

from riverlog.wire.apis import ApiKey
from riverlog.wire.types import STRING, array, int16, int32, message, string, struct


@message(ApiKey.DELETE_GROUPS)
class DeleteGroupsRequest:
    """Name the groups."""

    groups_names: list[str] = array(STRING)


@struct
class DeletableGroupResult:
    """Whether a group is gone."""

    group_id: str = string()
    error_code: int = int16()


@message(ApiKey.DELETE_GROUPS)
class DeleteGroupsResponse:
    """The answer, group by group."""

    throttle_time_ms: int = int32()
    results: list[DeletableGroupResult] = array(DeletableGroupResult)
