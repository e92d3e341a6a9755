"""DescribeAcls: the access control entries that match a filter."""

from riverlog.wire.apis import ApiKey
from riverlog.wire.types import array, int8, int16, int32, message, string, struct


@message(ApiKey.DESCRIBE_ACLS)
class DescribeAclsRequest:
    """Name what the entries must match; null matches everything."""

    resource_type_filter: int = int8()
    resource_name_filter: str | None = string(nullable_since=0)
    pattern_type_filter: int = int8(default=3)
    principal_filter: str | None = string(nullable_since=0)
    host_filter: str | None = string(nullable_since=0)
    operation: int = int8()
    permission_type: int = int8()


@struct
class AclDescription:
    """Who may, or may not, do what."""

    principal: str = string()
    host: str = string()
    operation: int = int8()
    permission_type: int = int8()


@struct
class DescribeAclsResource:
    """A resource and its entries."""

    resource_type: int = int8()
    resource_name: str = string()
    pattern_type: int = int8(default=3)
    acls: list[AclDescription] = array(AclDescription)


@message(ApiKey.DESCRIBE_ACLS)
class DescribeAclsResponse:
    """The entries that match."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable_since=0)
    resources: list[DescribeAclsResource] = array(DescribeAclsResource)
