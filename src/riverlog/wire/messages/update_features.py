"""UpdateFeatures: raise or lower what the whole cluster may use."""

from riverlog.wire.apis import ApiKey
from riverlog.wire.types import array, boolean, int8, int16, int32, message, string, struct


@struct
class FeatureUpdateKey:
    """A feature and its new level; 0 switches it off."""

    feature: str = string()
    max_version_level: int = int16()
    upgrade_type: int = int8(since=1, default=1)
    allow_downgrade: bool = boolean(until=0)


@message(ApiKey.UPDATE_FEATURES)
class UpdateFeaturesRequest:
    """Name the features."""

    timeout_ms: int = int32(default=60000)
    feature_updates: list[FeatureUpdateKey] = array(FeatureUpdateKey)
    validate_only: bool = boolean(since=1)


@struct
class UpdatableFeatureResult:
    """Whether a feature was changed."""

    feature: str = string(until=1)
    error_code: int = int16(until=1)
    error_message: str | None = string(until=1, nullable_since=0)


@message(ApiKey.UPDATE_FEATURES)
class UpdateFeaturesResponse:
    """The answer: all or none from version 2 on."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable_since=0)
    results: list[UpdatableFeatureResult] = array(UpdatableFeatureResult, until=1)
