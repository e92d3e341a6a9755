"""AlterConfigs: replace all settings of a resource; those not named fall back to their defaults."""

from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.incremental_alter_configs import AlterConfigsResourceResponse
from riverlog.wire.types import array, boolean, int8, int32, message, string, struct


@struct
class AlterableConfig:
    """A setting and its new value; null takes it away."""

    name: str = string()
    value: str | None = string(nullable_since=0)


@struct
class AlterConfigsResource:
    """A topic or broker with all the settings it shall have."""

    resource_type: int = int8()
    resource_name: str = string()
    configs: list[AlterableConfig] = array(AlterableConfig)


@message(ApiKey.ALTER_CONFIGS)
class AlterConfigsRequest:
    """Ask to replace settings; `validate_only` changes nothing."""

    resources: list[AlterConfigsResource] = array(AlterConfigsResource)
    validate_only: bool = boolean()


@message(ApiKey.ALTER_CONFIGS)
class AlterConfigsResponse:
    """The answer, resource by resource."""

    throttle_time_ms: int = int32()
    responses: list[AlterConfigsResourceResponse] = array(AlterConfigsResourceResponse)
