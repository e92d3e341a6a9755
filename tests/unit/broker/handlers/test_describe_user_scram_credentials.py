"""DescribeUserScramCredentials: nobody has any."""

import pytest

from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest, UserName
from tests.support.asking import serving
from tests.support.clusters import controller_line
from tests.support.denial import deny
from tests.support.virtual_time import run


async def test_no_user_is_found() -> None:
    async with serving() as (line, _node):
        key = ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS
        everybody = await line.ask(key, 0, DescribeUserScramCredentialsRequest())
        assert (everybody.error_code, everybody.results) == (ErrorCode.NONE, [])
        users = [UserName("ada"), UserName("bob"), UserName("ada")]
        named = await line.ask(key, 0, DescribeUserScramCredentialsRequest(users))
        assert {each.user: each.error_code for each in named.results} == {
            "ada": ErrorCode.DUPLICATE_RESOURCE,
            "bob": ErrorCode.RESOURCE_NOT_FOUND,
        }


async def test_not_everybody_may_see_users(monkeypatch: pytest.MonkeyPatch) -> None:
    deny(monkeypatch, Operation.DESCRIBE)
    async with serving() as (line, _node):
        request = DescribeUserScramCredentialsRequest()
        response = await line.ask(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, request)
        assert response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def test_a_controller_knows_nobody_either() -> None:
    async def scenario() -> None:
        async with controller_line() as (line, _cluster):
            key = ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS
            everybody = await line.ask(key, 0, DescribeUserScramCredentialsRequest())
            assert (everybody.error_code, everybody.results) == (ErrorCode.NONE, [])

    run(scenario())
