"""UpdateFeatures: levels that riverlog can run with, and no others."""

import pytest

from riverlog.metadata.features import METADATA_VERSION, SUPPORTED_FEATURES
from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.support.asking import serving
from tests.support.denial import deny

LEVEL = SUPPORTED_FEATURES[METADATA_VERSION].highest


@pytest.mark.parametrize("version", range(3))
@pytest.mark.parametrize(
    ("feature", "level", "code"),
    [
        (METADATA_VERSION, LEVEL, ErrorCode.NONE),
        (METADATA_VERSION, LEVEL + 1, ErrorCode.INVALID_UPDATE_VERSION),
        (METADATA_VERSION, 0, ErrorCode.INVALID_UPDATE_VERSION),
        ("group.colour", 1, ErrorCode.INVALID_UPDATE_VERSION),
    ],
)
async def test_a_level_is_kept_or_refused(version: int, feature: str, level: int, code: ErrorCode) -> None:
    async with serving() as (line, _node):
        request = UpdateFeaturesRequest(feature_updates=[FeatureUpdateKey(feature, level)])
        response = await line.ask(ApiKey.UPDATE_FEATURES, version, request)
        assert (response.error_code, bool(response.error_message)) == (code, code is not ErrorCode.NONE)


async def test_not_everybody_may_change_features(monkeypatch: pytest.MonkeyPatch) -> None:
    deny(monkeypatch, Operation.ALTER)
    async with serving() as (line, _node):
        response = await line.ask(ApiKey.UPDATE_FEATURES, 2, UpdateFeaturesRequest())
        assert response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
