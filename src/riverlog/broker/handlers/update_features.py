"""UpdateFeatures: the cluster as a whole goes to other levels of features, as far as every node knows them."""

from typing import Final

from riverlog.broker.requests.context import Context
from riverlog.metadata.commands.features import FeatureUpdate, UpdateFeatures, UpgradeType
from riverlog.metadata.features import KRAFT_VERSION
from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.wire.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

_FIRST_VERSION_WITH_UPGRADE_TYPE: Final = 1


async def update_features(request: UpdateFeaturesRequest, context: Context) -> UpdateFeaturesResponse:
    """Set all of the levels or none."""
    response = UpdateFeaturesResponse()
    services = context.services
    try:
        if not context.allows_on_cluster(Operation.ALTER):
            raise Refusal(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Not allowed to change features.")
        others = (voter.key.id for voter in services.controller.quorum.voters if voter.key.id != services.node_id)
        command = UpdateFeatures(
            updates=tuple(_update(each, context) for each in request.feature_updates if not _is_kept(each, context)),
            controller_ids=tuple(others),  # this one's own levels are those that the command is checked with
            validate_only=request.validate_only,
        )
        await services.controller.submit(command)
        response.results = [UpdatableFeatureResult(update.feature) for update in request.feature_updates]
    except Refusal as refusal:
        context.stats.failed(refusal.code)
        response.error_code, response.error_message = refusal.code, refusal.message
    return response


def _is_kept(update: FeatureUpdateKey, context: Context) -> bool:
    """Return whether this is the level of kraft.version that is in use, which no metadata record says; Refusal for
    another one."""
    if update.feature != KRAFT_VERSION:
        return False
    level = context.services.controller.quorum.kraft_version
    if update.max_version_level != level:
        raise Refusal(
            ErrorCode.INVALID_UPDATE_VERSION,
            f"{KRAFT_VERSION} is at level {level} and stays there: riverlog cannot change it while the cluster runs; "
            f"choose it when the controllers are formatted.",
        )
    return True


def _update(update: FeatureUpdateKey, context: Context) -> FeatureUpdate:
    if context.version >= _FIRST_VERSION_WITH_UPGRADE_TYPE:
        return FeatureUpdate(update.feature, update.max_version_level, update.upgrade_type)
    kind = UpgradeType.SAFE_DOWNGRADE if update.allow_downgrade else UpgradeType.UPGRADE
    return FeatureUpdate(update.feature, update.max_version_level, kind)
