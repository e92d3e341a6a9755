"""ListConfigResources: the topics, brokers and other things that have settings."""

from collections.abc import Callable, Iterable
from typing import Final

from riverlog.broker.requests.context import Context
from riverlog.metadata.image import ConfigResourceType, MetadataImage
from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode
from riverlog.wire.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

_CLIENT_METRICS: Final = 16

_NAMES: Final[dict[int, Callable[[MetadataImage], Iterable[str]]]] = {
    2: lambda image: (topic.name for topic in image.all_topics()),
    4: lambda image: map(str, image.brokers),
    8: lambda image: map(str, image.brokers),  # the loggers of brokers
    _CLIENT_METRICS: lambda image: (),
    ConfigResourceType.GROUP: lambda image: image.configured(ConfigResourceType.GROUP),
}
"""How to find the resources of each type."""


def list_config_resources(request: ListConfigResourcesRequest, context: Context) -> ListConfigResourcesResponse:
    """Return the resources of the types asked for: all types unless some are named, one in version 0."""
    if not context.allows_on_cluster(Operation.DESCRIBE_CONFIGS):
        return _refused(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, context)
    types = list(dict.fromkeys(request.resource_types)) or list(_NAMES)
    if context.version == 0:
        types = [_CLIENT_METRICS]
    if any(type_ not in _NAMES for type_ in types):
        return _refused(ErrorCode.UNSUPPORTED_VERSION, context)
    return ListConfigResourcesResponse(
        config_resources=[ConfigResource(name, type_) for type_ in types for name in _NAMES[type_](context.image)]
    )


def _refused(code: ErrorCode, context: Context) -> ListConfigResourcesResponse:
    context.stats.failed(code)
    return ListConfigResourcesResponse(error_code=code)
