"""UpdateFeatures: a feature can be set to a level that this version of riverlog can run with."""

from riverlog.broker.requests.context import Context
from riverlog.metadata.features import SUPPORTED_FEATURES
from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.wire.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)


def update_features(request: UpdateFeaturesRequest, context: Context) -> UpdateFeaturesResponse:
    """Answer all features or refuse them together; every level that is possible is the one that is set."""
    response = UpdateFeaturesResponse()
    try:
        if not context.allows_on_cluster(Operation.ALTER):
            raise Refusal(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Not allowed to change features.")
        for update in request.feature_updates:
            _check(update, context)
        response.results = [UpdatableFeatureResult(update.feature) for update in request.feature_updates]
    except Refusal as refusal:
        context.stats.failed(refusal.code)
        response.error_code, response.error_message = refusal.code, refusal.message
    return response


def _check(update: FeatureUpdateKey, context: Context) -> None:
    supported = SUPPORTED_FEATURES.get(update.feature)
    if supported is None:
        raise Refusal(ErrorCode.INVALID_UPDATE_VERSION, f"There is no feature {update.feature!r} here.")
    level = context.image.features.get(update.feature)
    if update.max_version_level != level:
        raise Refusal(
            ErrorCode.INVALID_UPDATE_VERSION,
            f"{update.feature} is at level {level} and can be set from {supported.lowest} to {supported.highest}, "
            f"not to {update.max_version_level}.",
        )
