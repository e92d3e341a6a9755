"""DescribeConfigs: the settings of topics and brokers, their source, type and documentation."""

from riverlog.wire.apis import ApiKey
from riverlog.wire.types import STRING, array, boolean, int8, int16, int32, message, string, struct


@struct
class DescribeConfigsResource:
    """A topic or broker, and the settings asked for; null asks for all."""

    resource_type: int = int8()
    resource_name: str = string()
    configuration_keys: list[str] | None = array(STRING, nullable_since=0)


@message(ApiKey.DESCRIBE_CONFIGS)
class DescribeConfigsRequest:
    """Ask for settings."""

    resources: list[DescribeConfigsResource] = array(DescribeConfigsResource)
    include_synonyms: bool = boolean(since=1)
    include_documentation: bool = boolean(since=3)


@struct
class DescribeConfigsSynonym:
    """A place that a setting could come from; the first that has a value wins."""

    name: str = string(since=1)
    value: str | None = string(since=1, nullable_since=0)
    source: int = int8(since=1)


@struct
class DescribeConfigsResourceResult:
    """A setting; the value of a sensitive one is null."""

    name: str = string()
    value: str | None = string(nullable_since=0)
    read_only: bool = boolean()
    config_source: int = int8(since=1, default=-1)
    is_sensitive: bool = boolean()
    synonyms: list[DescribeConfigsSynonym] = array(DescribeConfigsSynonym, since=1)
    config_type: int = int8(since=3)
    documentation: str | None = string(since=3, nullable_since=0)


@struct
class DescribeConfigsResult:
    """The settings of one topic or broker."""

    error_code: int = int16()
    error_message: str | None = string(nullable_since=0)
    resource_type: int = int8()
    resource_name: str = string()
    configs: list[DescribeConfigsResourceResult] = array(DescribeConfigsResourceResult)


@message(ApiKey.DESCRIBE_CONFIGS)
class DescribeConfigsResponse:
    """The answer, resource by resource."""

    throttle_time_ms: int = int32()
    results: list[DescribeConfigsResult] = array(DescribeConfigsResult)
