"""CreateAcls: add access control entries."""

from riverlog.wire.apis import ApiKey
from riverlog.wire.types import array, int8, int16, int32, message, string, struct


@struct
class AclCreation:
    """An entry to add."""

    resource_type: int = int8()
    resource_name: str = string()
    resource_pattern_type: int = int8(default=3)
    principal: str = string()
    host: str = string()
    operation: int = int8()
    permission_type: int = int8()


@message(ApiKey.CREATE_ACLS)
class CreateAclsRequest:
    """Name the entries."""

    creations: list[AclCreation] = array(AclCreation)


@struct
class AclCreationResult:
    """Whether an entry was added."""

    error_code: int = int16()
    error_message: str | None = string(nullable_since=0)


@message(ApiKey.CREATE_ACLS)
class CreateAclsResponse:
    """The answer, entry by entry."""

    throttle_time_ms: int = int32()
    results: list[AclCreationResult] = array(AclCreationResult)
