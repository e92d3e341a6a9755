"""ListConfigResources: what there is that has settings."""

from riverlog.wire.apis import ApiKey
from riverlog.wire.types import INT8, array, int8, int16, int32, message, string, struct


@message(ApiKey.LIST_CONFIG_RESOURCES)
class ListConfigResourcesRequest:
    """Ask for some types of resources, or for all; version 0 knows only subscriptions to client metrics."""

    resource_types: list[int] = array(INT8, since=1)


@struct
class ConfigResource:
    """A resource."""

    resource_name: str = string()
    resource_type: int = int8(since=1, default=16)


@message(ApiKey.LIST_CONFIG_RESOURCES)
class ListConfigResourcesResponse:
    """The resources."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    config_resources: list[ConfigResource] = array(ConfigResource)
