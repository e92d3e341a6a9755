"""ApiVersions: the door through which every client comes in."""

import pytest

from riverlog.broker.handlers import CONTROLLER_HANDLERS, HANDLERS
from riverlog.model.errors import ErrorCode
from riverlog.wire.apis import API_BY_KEY, FIRST_OWN_KEY, ApiKey
from riverlog.wire.messages.api_versions import ApiVersionsRequest
from riverlog.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.support.asking import Line, connected, serving
from tests.support.clusters import controller_line
from tests.support.virtual_time import run
from tests.support.world import Universe

WHO = ApiVersionsRequest(client_software_name="test", client_software_version="1.0")


@pytest.mark.parametrize("version", range(5))
async def test_every_served_api_is_listed(version: int) -> None:
    async with serving() as (line, _node):
        response = await line.ask(ApiKey.API_VERSIONS, version, WHO)
        assert response.error_code == ErrorCode.NONE
        listed = {each.api_key: (each.min_version, each.max_version) for each in response.api_keys}
        assert listed == {
            key: (API_BY_KEY[key].advertised.min, API_BY_KEY[key].advertised.max)
            for key in HANDLERS
            if not API_BY_KEY[key].is_own
        }
        if version >= 3:
            finalized = {each.name: each.max_version_level for each in response.finalized_features}
            assert finalized["metadata.version"] > 0


def test_a_cluster_tells_the_level_of_its_quorum_which_no_record_says() -> None:
    async def scenario() -> None:
        async with controller_line() as (controller, cluster):
            broker = Line(await cluster.network.connect("n4", 9092))
            for line, served in ((controller, CONTROLLER_HANDLERS), (broker, HANDLERS)):
                response = await line.ask(ApiKey.API_VERSIONS, 4, WHO)
                finalized = {each.name: each.max_version_level for each in response.finalized_features}
                assert (finalized["kraft.version"], finalized["metadata.version"]) == (1, 30)
                assert {each.api_key for each in response.api_keys} == {key for key in served if key < FIRST_OWN_KEY}

    run(scenario())


def test_produce_is_advertised_from_0_on() -> None:
    """librdkafka compresses only if it sees these versions (KAFKA-18659), though they are refused."""
    assert API_BY_KEY[ApiKey.PRODUCE].advertised.min == 0
    assert API_BY_KEY[ApiKey.PRODUCE].versions.min == 3


async def test_software_must_have_a_name_that_can_stand_in_a_metric() -> None:
    async with serving() as (line, _node):
        for bad in ("", "a b", "-a", 'x"y'):
            request = ApiVersionsRequest(client_software_name=bad, client_software_version="1")
            response = await line.ask(ApiKey.API_VERSIONS, 3, request)
            assert response.error_code == ErrorCode.INVALID_REQUEST


async def test_a_newer_client_is_answered_in_version_0_with_our_range() -> None:
    async with serving() as (line, _node):
        answered = line.send(ApiKey.API_VERSIONS, 0, WHO)
        line._socket._on_the_way[-1] = _with_version(line._socket._on_the_way[-1], 99)
        response = await answered
        assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
        (own,) = response.api_keys
        assert (own.api_key, own.min_version, own.max_version) == (ApiKey.API_VERSIONS, 0, 4)


async def test_only_our_own_client_is_shown_what_is_ours() -> None:
    universe = Universe()
    async with serving(universe) as (line, _node):
        ours = await connected(universe)
        for who, asking in (("riverlog", ours), ("apache-kafka-java", line)):
            request = ApiVersionsRequest(client_software_name=who, client_software_version="1")
            response = await asking.ask(ApiKey.API_VERSIONS, 4, request)
            own = [each.api_key for each in response.api_keys if each.api_key >= FIRST_OWN_KEY]
            expected = [key for key in HANDLERS if API_BY_KEY[key].is_own] if who == "riverlog" else []
            assert own == expected


async def test_only_our_own_client_is_told_its_window() -> None:
    universe = Universe()
    async with serving(universe, connection_window_bytes="70000") as (line, _node):
        ours = await connected(universe)
        for who, asking, window in (("riverlog", ours, 70_000), ("librdkafka", line, 0)):
            request = ApiVersionsRequest(client_software_name=who, client_software_version="1")
            response = await asking.ask(ApiKey.API_VERSIONS, 4, request)
            assert response.window_bytes == window


def _with_version(frame: bytes, version: int) -> bytes:
    return frame[:6] + version.to_bytes(2, "big") + frame[8:]


async def test_a_level_that_was_lowered_is_newer_than_the_one_before() -> None:
    """Clients keep the levels with the highest epoch that they have seen."""
    async with serving() as (line, _node):
        before = await line.ask(ApiKey.API_VERSIONS, 4, WHO)
        lower = FeatureUpdateKey(feature="transaction.version", max_version_level=1, upgrade_type=2)
        lowered = await line.ask(ApiKey.UPDATE_FEATURES, 2, UpdateFeaturesRequest(feature_updates=[lower]))
        assert lowered.error_code == ErrorCode.NONE
        now = await line.ask(ApiKey.API_VERSIONS, 4, WHO)
        assert {each.name: each.max_version_level for each in now.finalized_features}["transaction.version"] == 1
        assert now.finalized_features_epoch > before.finalized_features_epoch
