"""DeleteAcls: remove the access control entries that match filters."""

from riverlog.wire.apis import ApiKey
from riverlog.wire.types import array, int8, int16, int32, message, string, struct


@struct
class DeleteAclsFilter:
    """What entries must match to be removed; null matches everything."""

    resource_type_filter: int = int8()
    resource_name_filter: str | None = string(nullable_since=0)
    pattern_type_filter: int = int8(default=3)
    principal_filter: str | None = string(nullable_since=0)
    host_filter: str | None = string(nullable_since=0)
    operation: int = int8()
    permission_type: int = int8()


@message(ApiKey.DELETE_ACLS)
class DeleteAclsRequest:
    """Name the filters."""

    filters: list[DeleteAclsFilter] = array(DeleteAclsFilter)


@struct
class DeleteAclsMatchingAcl:
    """An entry that was removed, or why it was not."""

    error_code: int = int16()
    error_message: str | None = string(nullable_since=0)
    resource_type: int = int8()
    resource_name: str = string()
    pattern_type: int = int8(default=3)
    principal: str = string()
    host: str = string()
    operation: int = int8()
    permission_type: int = int8()


@struct
class DeleteAclsFilterResult:
    """What one filter matched."""

    error_code: int = int16()
    error_message: str | None = string(nullable_since=0)
    matching_acls: list[DeleteAclsMatchingAcl] = array(DeleteAclsMatchingAcl)


@message(ApiKey.DELETE_ACLS)
class DeleteAclsResponse:
    """The answer, filter by filter."""

    throttle_time_ms: int = int32()
    filter_results: list[DeleteAclsFilterResult] = array(DeleteAclsFilterResult)
