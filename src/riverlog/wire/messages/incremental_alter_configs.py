"""IncrementalAlterConfigs: change single settings of a resource and leave the others alone."""

from enum import IntEnum

from riverlog.wire.apis import ApiKey
from riverlog.wire.types import array, boolean, int8, int16, int32, message, string, struct


class ConfigOperation(IntEnum):
    """What to do with a setting; APPEND and SUBTRACT are for lists."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@struct
class AlterableConfig:
    """One change of one setting."""

    name: str = string()
    config_operation: int = int8()
    value: str | None = string(nullable_since=0)


@struct
class AlterConfigsResource:
    """A topic or broker and the changes to it."""

    resource_type: int = int8()
    resource_name: str = string()
    configs: list[AlterableConfig] = array(AlterableConfig)


@message(ApiKey.INCREMENTAL_ALTER_CONFIGS)
class IncrementalAlterConfigsRequest:
    """Ask for changes; `validate_only` changes nothing."""

    resources: list[AlterConfigsResource] = array(AlterConfigsResource)
    validate_only: bool = boolean()


@struct
class AlterConfigsResourceResponse:
    """What became of one resource."""

    error_code: int = int16()
    error_message: str | None = string(nullable_since=0)
    resource_type: int = int8()
    resource_name: str = string()


@message(ApiKey.INCREMENTAL_ALTER_CONFIGS)
class IncrementalAlterConfigsResponse:
    """The answer, resource by resource."""

    throttle_time_ms: int = int32()
    responses: list[AlterConfigsResourceResponse] = array(AlterConfigsResourceResponse)
