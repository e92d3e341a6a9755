"""ListConfigResources."""

import pytest

from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from riverlog.wire.messages.list_config_resources import ListConfigResourcesRequest
from tests.support.asking import serving
from tests.support.denial import deny


@pytest.mark.parametrize(
    ("version", "types", "found"),
    [
        (0, [], set()),
        (1, [], {("t", 2), ("5", 4), ("5", 8)}),
        (1, [2], {("t", 2)}),
        (1, [4, 4], {("5", 4)}),
        (1, [16, 32], set()),
    ],
)
async def test_resources_are_listed_by_type(version: int, types: list[int], found: set[tuple[str, int]]) -> None:
    async with serving(node_id="5") as (line, _node):
        await line.ask(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest([CreatableTopic("t")]))
        response = await line.ask(ApiKey.LIST_CONFIG_RESOURCES, version, ListConfigResourcesRequest(types))
        assert response.error_code == ErrorCode.NONE
        assert {(each.resource_name, each.resource_type) for each in response.config_resources} == found


async def test_an_unknown_type_is_refused() -> None:
    async with serving() as (line, _node):
        response = await line.ask(ApiKey.LIST_CONFIG_RESOURCES, 1, ListConfigResourcesRequest([2, 3]))
        assert response.error_code == ErrorCode.UNSUPPORTED_VERSION


async def test_not_everybody_may_see_them(monkeypatch: pytest.MonkeyPatch) -> None:
    deny(monkeypatch, Operation.DESCRIBE_CONFIGS)
    async with serving() as (line, _node):
        response = await line.ask(ApiKey.LIST_CONFIG_RESOURCES, 1, ListConfigResourcesRequest())
        assert response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
