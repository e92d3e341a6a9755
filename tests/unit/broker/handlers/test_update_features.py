"""UpdateFeatures: levels that every node can run with, and no others."""

import pytest

from riverlog.metadata.features import METADATA_VERSION, SUPPORTED_FEATURES
from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.support.asking import Line, serving
from tests.support.clusters import controller_line
from tests.support.denial import deny
from tests.support.virtual_time import run

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


def test_a_cluster_goes_to_another_level_when_all_its_nodes_know_it() -> None:
    async def scenario() -> None:
        async with controller_line() as (controller, cluster):
            broker = Line(await cluster.network.connect("n4", 9092))
            for line, level, kind in ((controller, 0, 2), (broker, 2, 1)):
                request = UpdateFeaturesRequest(feature_updates=[FeatureUpdateKey("transaction.version", level, kind)])
                for validate_only in (True, False):
                    request.validate_only = validate_only
                    before = cluster.nodes[1].controller.image.features["transaction.version"]
                    response = await line.ask(ApiKey.UPDATE_FEATURES, 2, request)
                    assert (response.error_code, response.error_message) == (ErrorCode.NONE, None)
                    after = cluster.nodes[1].controller.image.features.get("transaction.version", 0)
                    assert after == (before if validate_only else level)

    run(scenario())


@pytest.mark.parametrize(
    ("allow_downgrade", "code"), [(True, ErrorCode.NONE), (False, ErrorCode.INVALID_UPDATE_VERSION)]
)
def test_the_oldest_version_says_otherwise_that_a_downgrade_is_meant(allow_downgrade: bool, code: ErrorCode) -> None:
    async def scenario() -> None:
        async with controller_line() as (line, _cluster):
            update = FeatureUpdateKey("transaction.version", 1, allow_downgrade=allow_downgrade)
            response = await line.ask(ApiKey.UPDATE_FEATURES, 0, UpdateFeaturesRequest(feature_updates=[update]))
            assert response.error_code == code

    run(scenario())


def test_the_level_of_the_quorum_stays() -> None:
    async def scenario() -> None:
        async with controller_line() as (line, _cluster):
            for level, code in ((1, ErrorCode.NONE), (0, ErrorCode.INVALID_UPDATE_VERSION)):
                update = FeatureUpdateKey("kraft.version", level, 2)
                response = await line.ask(ApiKey.UPDATE_FEATURES, 2, UpdateFeaturesRequest(feature_updates=[update]))
                assert response.error_code == code
            assert response.error_message.startswith("kraft.version is at level 1 and stays there: ")

    run(scenario())


async def test_not_everybody_may_change_features(monkeypatch: pytest.MonkeyPatch) -> None:
    deny(monkeypatch, Operation.ALTER)
    async with serving() as (line, _node):
        response = await line.ask(ApiKey.UPDATE_FEATURES, 2, UpdateFeaturesRequest())
        assert response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
