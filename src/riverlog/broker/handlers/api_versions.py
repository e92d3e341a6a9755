"""ApiVersions: what this node speaks, and which features the cluster has switched on."""

import re
from typing import Final

from riverlog.broker.requests.context import Context
from riverlog.metadata.features import KRAFT_VERSION
from riverlog.model.errors import ErrorCode
from riverlog.wire.apis import API_BY_KEY, Api, ApiKey
from riverlog.wire.messages.api_versions import (
    OWN_SOFTWARE,
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
_FIRST_VERSION_WITH_SOFTWARE: Final = 3
_FIRST_VERSION_WITH_FEATURES_FROM_ZERO: Final = 4


def api_versions(request: ApiVersionsRequest | None, context: Context) -> ApiVersionsResponse:
    """List the served APIs, with the window and APIs of our own for our own client; without a request (its version is
    unknown to us) only this one, with the error."""
    if request is None:
        return ApiVersionsResponse(
            error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[_versions(API_BY_KEY[ApiKey.API_VERSIONS])]
        )
    if context.version >= _FIRST_VERSION_WITH_SOFTWARE and not (
        _SOFTWARE.fullmatch(request.client_software_name) and _SOFTWARE.fullmatch(request.client_software_version)
    ):
        context.stats.failed(ErrorCode.INVALID_REQUEST)
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    image, client = context.image, context.client
    finalized = {**image.features, KRAFT_VERSION: context.services.controller.quorum.kraft_version}
    client.takes_credits = request.client_software_name == OWN_SOFTWARE
    return ApiVersionsResponse(
        api_keys=[_versions(api) for api in context.services.served if client.takes_credits or not api.is_own],
        supported_features=[
            SupportedFeatureKey(name=name, min_version=lowest, max_version=highest)
            for name, (lowest, highest) in context.services.features.items()
            if lowest > 0 or context.version >= _FIRST_VERSION_WITH_FEATURES_FROM_ZERO
        ],
        # Clients keep the levels with the highest epoch: one that grows with the metadata, as Kafka's does.
        finalized_features_epoch=max(0, context.services.controller.loaded_offset - 1),
        finalized_features=[
            FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in finalized.items()
            if level > 0
            if name in context.services.features  # a folder that Kafka wrote may name others
        ],
        window_bytes=client.memory.window_bytes if client.takes_credits else 0,
    )


def _versions(api: Api) -> ApiVersion:
    return ApiVersion(api_key=api.key, min_version=api.advertised.min, max_version=api.advertised.max)
