"""DescribeClientQuotas: none are set."""

import pytest

from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from tests.support.asking import serving
from tests.support.denial import deny


@pytest.mark.parametrize(
    ("components", "code"),
    [
        ([], ErrorCode.NONE),
        ([ComponentData("user", 0, "a"), ComponentData("client-id", 1)], ErrorCode.NONE),
        ([ComponentData("ip", 2)], ErrorCode.NONE),
        ([ComponentData("colour", 2)], ErrorCode.UNSUPPORTED_VERSION),
        ([ComponentData("", 2)], ErrorCode.INVALID_REQUEST),
        ([ComponentData("user", 3)], ErrorCode.INVALID_REQUEST),
        ([ComponentData("user", 0)], ErrorCode.INVALID_REQUEST),
        ([ComponentData("user", 1, "a")], ErrorCode.INVALID_REQUEST),
        ([ComponentData("user", 2), ComponentData("user", 1)], ErrorCode.INVALID_REQUEST),
        ([ComponentData("user", 2), ComponentData("ip", 2)], ErrorCode.INVALID_REQUEST),
    ],
)
async def test_a_filter_that_makes_sense_finds_nothing(components: list[ComponentData], code: ErrorCode) -> None:
    async with serving() as (line, _node):
        for version in (0, 1):
            request = DescribeClientQuotasRequest(components)
            response = await line.ask(ApiKey.DESCRIBE_CLIENT_QUOTAS, version, request)
            assert response.error_code == code
            assert response.entries == ([] if code is ErrorCode.NONE else None)


async def test_not_everybody_may_see_quotas(monkeypatch: pytest.MonkeyPatch) -> None:
    deny(monkeypatch, Operation.DESCRIBE_CONFIGS)
    async with serving() as (line, _node):
        response = await line.ask(ApiKey.DESCRIBE_CLIENT_QUOTAS, 1, DescribeClientQuotasRequest())
        assert response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
