"""InitProducerId."""

import asyncio

import pytest

from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.init_producer_id import InitProducerIdRequest
from tests.support.asking import connected, serving
from tests.support.coordinator_lines import add, described, init, prepared
from tests.support.denial import deny
from tests.support.virtual_time import run
from tests.support.world import Universe


async def test_every_version_gives_an_id_that_nobody_had():
    async with serving() as (line, _node):
        ids = []
        for version in range(6):
            response = await line.ask(ApiKey.INIT_PRODUCER_ID, version, InitProducerIdRequest())
            assert (response.error_code, response.producer_epoch) == (ErrorCode.NONE, 0)
            ids.append(response.producer_id)
        assert len(set(ids)) == 6


async def test_ids_are_not_given_again_after_the_power_was_lost():
    universe = Universe()
    ids = []
    for _ in range(3):
        async with serving(universe) as (line, _node):
            ids.append((await line.ask(ApiKey.INIT_PRODUCER_ID, 4, InitProducerIdRequest())).producer_id)
            await universe.lose_power()
    assert len(set(ids)) == 3


async def test_every_version_gives_the_next_epoch_of_a_transactional_id() -> None:
    async with serving() as (line, _node):
        await prepared(line)
        producers = [await init(line, version) for version in range(6)]
        assert [each.error_code for each in producers] == [ErrorCode.NONE] * 6
        assert [each.producer_epoch for each in producers] == list(range(6))
        assert len({each.producer_id for each in producers}) == 1


@pytest.mark.parametrize(("version", "code"), [(3, ErrorCode.INVALID_PRODUCER_EPOCH), (4, ErrorCode.PRODUCER_FENCED)])
async def test_a_producer_that_was_replaced_is_told_so_in_words_that_it_knows(version: int, code: ErrorCode) -> None:
    async with serving() as (line, _node):
        await prepared(line)
        old = await init(line)
        await init(line)
        refused = await init(line, version, producer_id=old.producer_id, producer_epoch=old.producer_epoch)
        assert (refused.error_code, refused.producer_id) == (code, -1)


async def test_an_open_transaction_is_aborted_before_the_answer_comes() -> None:
    universe = Universe()
    async with serving(universe) as (line, _node):
        await prepared(line, "t")
        old = await init(line)
        await add(line, old)
        new = await init(await connected(universe))
        assert (new.error_code, new.producer_epoch) == (ErrorCode.NONE, old.producer_epoch + 2)
        assert (await described(line)).transaction_state == "Empty"
        assert await add(line, old) == [ErrorCode.PRODUCER_FENCED]


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"transactional_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"transaction_timeout_ms": 0}, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        ({"transaction_timeout_ms": 900_001}, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        ({"producer_id": 5}, ErrorCode.INVALID_REQUEST),
        ({"producer_epoch": 5}, ErrorCode.INVALID_REQUEST),
    ],
)
async def test_a_wrong_request_is_refused(wrong: dict[str, object], code: ErrorCode) -> None:
    async with serving() as (line, _node):
        await prepared(line)
        refused = await init(line, **wrong)
        assert (refused.error_code, refused.producer_id, refused.producer_epoch) == (code, -1, -1)


async def test_without_the_topic_there_is_no_coordinator() -> None:
    async with serving() as (line, _node):
        assert (await init(line)).error_code == ErrorCode.NOT_COORDINATOR


async def test_transactional_ids_survive_the_power() -> None:
    universe = Universe()
    async with serving(universe, durability="fsync") as (line, _node):
        await prepared(line)
        before = await init(line)
        await universe.lose_power()
    async with serving(universe, durability="fsync") as (line, _node):
        await asyncio.sleep(1)
        after = await init(line)
        assert (after.producer_id, after.producer_epoch) == (before.producer_id, 1)


@pytest.mark.parametrize(
    ("denied", "transactional_id", "code"),
    [
        (Operation.IDEMPOTENT_WRITE, None, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
        (Operation.WRITE, "tx", ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
    ],
)
def test_who_may_not_write_with_an_id_gets_none(
    monkeypatch: pytest.MonkeyPatch, denied: Operation, transactional_id: str | None, code: ErrorCode
):
    async def scenario() -> None:
        async with serving() as (line, _node):
            assert (await init(line, 4, transactional_id=transactional_id)).error_code == code

    deny(monkeypatch, denied)
    run(scenario())
