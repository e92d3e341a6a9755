"""DescribeTransactions and ListTransactions: there are none."""

import pytest

from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.describe_transactions import DescribeTransactionsRequest
from riverlog.wire.messages.list_transactions import ListTransactionsRequest
from tests.support.asking import serving
from tests.support.denial import deny
from tests.support.virtual_time import run


def test_no_transactional_id_is_found() -> None:
    async def scenario() -> None:
        async with serving() as (line, _node):
            response = await line.ask(ApiKey.DESCRIBE_TRANSACTIONS, 0, DescribeTransactionsRequest(["a", ""]))
            assert [(each.transactional_id, each.error_code) for each in response.transaction_states] == [
                ("a", ErrorCode.TRANSACTIONAL_ID_NOT_FOUND),
                ("", ErrorCode.INVALID_REQUEST),
            ]

    run(scenario())


@pytest.mark.parametrize("version", range(3))
def test_none_are_listed_and_unknown_states_are_named(version: int) -> None:
    async def scenario() -> None:
        async with serving() as (line, _node):
            request = ListTransactionsRequest(state_filters=["Ongoing", "Sleeping"])
            response = await line.ask(ApiKey.LIST_TRANSACTIONS, version, request)
            assert (response.error_code, response.transaction_states) == (ErrorCode.NONE, [])
            assert response.unknown_state_filters == ["Sleeping"]

    run(scenario())


def test_not_everybody_may_see_transactions(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        deny(monkeypatch, Operation.DESCRIBE)
        async with serving() as (line, _node):
            response = await line.ask(ApiKey.DESCRIBE_TRANSACTIONS, 0, DescribeTransactionsRequest(["a"]))
            (state,) = response.transaction_states
            assert state.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED

    run(scenario())
