"""DescribeTransactions and ListTransactions."""

import asyncio

import pytest

from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.list_transactions import ListTransactionsRequest
from tests.support.asking import Line, serving
from tests.support.coordinator_lines import ID, add, described, init, prepared
from tests.support.denial import deny


async def listed(line: Line, version: int = 2, **filters: object) -> list[tuple[str, str]]:
    request = ListTransactionsRequest(**filters)  # type: ignore[arg-type]
    response = await line.ask(ApiKey.LIST_TRANSACTIONS, version, request)
    assert response.error_code == ErrorCode.NONE
    return [(each.transactional_id, each.transaction_state) for each in response.transaction_states]


async def test_a_transactional_id_is_described() -> None:
    async with serving() as (line, _node):
        await prepared(line, "t")
        producer = await init(line)
        await add(line, producer)
        state = await described(line)
        assert (state.error_code, state.transaction_state, state.transaction_timeout_ms) == (0, "Ongoing", 60_000)
        assert (state.producer_id, state.producer_epoch) == (producer.producer_id, producer.producer_epoch)
        assert [(each.topic, each.partitions) for each in state.topics] == [("t", [0])]
        assert state.transaction_start_time_ms > 0
        assert (await described(line, "nobody")).error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        assert (await described(line, "")).error_code == ErrorCode.INVALID_REQUEST


async def test_without_the_topic_none_is_described_and_none_listed() -> None:
    async with serving() as (line, _node):
        assert (await described(line)).error_code == ErrorCode.NOT_COORDINATOR
        assert await listed(line) == []


async def test_transactional_ids_are_listed_by_state_producer_duration_and_pattern() -> None:
    async with serving() as (line, _node):
        await prepared(line, "t")
        await add(line, await init(line))
        await asyncio.sleep(10)
        other = await init(line, transactional_id="orders")
        everything = [("orders", "Empty"), (ID, "Ongoing")]
        for version in range(3):
            assert await listed(line, version) == everything
        assert await listed(line, state_filters=["Ongoing"]) == [(ID, "Ongoing")]
        assert await listed(line, producer_id_filters=[other.producer_id]) == [("orders", "Empty")]
        assert await listed(line, duration_filter=5_000, state_filters=["Ongoing"]) == [(ID, "Ongoing")]
        assert await listed(line, duration_filter=50_000, state_filters=["Ongoing"]) == []
        assert await listed(line, transactional_id_pattern="ord.*") == [("orders", "Empty")]
        assert await listed(line, transactional_id_pattern="ord") == []


async def test_unknown_states_are_named_and_bad_patterns_refused() -> None:
    async with serving() as (line, _node):
        await prepared(line)
        await init(line)
        request = ListTransactionsRequest(state_filters=["Empty", "Sleeping"])
        response = await line.ask(ApiKey.LIST_TRANSACTIONS, 2, request)
        assert response.unknown_state_filters == ["Sleeping"]
        assert len(response.transaction_states) == 1
        assert await listed(line, state_filters=["Sleeping"]) == []
        bad = await line.ask(ApiKey.LIST_TRANSACTIONS, 2, ListTransactionsRequest(transactional_id_pattern="("))
        assert bad.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION


async def test_not_everybody_may_see_transactions(monkeypatch: pytest.MonkeyPatch) -> None:
    deny(monkeypatch, Operation.DESCRIBE)
    async with serving() as (line, node):
        await node.parts.transactions.ensure_topic()
        await init(line)
        assert (await described(line)).error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        assert await listed(line) == []


async def test_while_a_coordinator_loads_the_list_is_not_complete() -> None:
    async with serving() as (line, node):
        await prepared(line)
        await init(line)
        for shard in node.parts.transactions:
            shard.loaded = False
        response = await line.ask(ApiKey.LIST_TRANSACTIONS, 2, ListTransactionsRequest())
        assert response.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
