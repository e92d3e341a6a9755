"""EndTxn."""

import asyncio

import pytest

from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode
from riverlog.wire.messages.init_producer_id import InitProducerIdResponse
from tests.support.asking import serving
from tests.support.coordinator_lines import add, described, end, init, prepared
from tests.support.denial import deny


@pytest.mark.parametrize("version", range(6))
@pytest.mark.parametrize(("committed", "state"), [(True, "CompleteCommit"), (False, "CompleteAbort")])
async def test_every_version_ends_a_transaction(version: int, committed: bool, state: str) -> None:
    async with serving() as (line, _node):
        await prepared(line, "t")
        producer = await init(line)
        assert await add(line, producer) == [ErrorCode.NONE]
        ended = await end(line, producer, committed=committed, version=version)
        assert ended.error_code == ErrorCode.NONE
        has_epoch = version >= 5
        assert (ended.producer_id, ended.producer_epoch) == ((producer.producer_id, 1) if has_epoch else (-1, -1))
        await asyncio.sleep(1)
        assert (await described(line)).transaction_state == state
        assert await add(line, ended if has_epoch else producer) == [ErrorCode.NONE]


@pytest.mark.parametrize(("version", "code"), [(1, ErrorCode.INVALID_PRODUCER_EPOCH), (2, ErrorCode.PRODUCER_FENCED)])
async def test_a_zombie_is_told_so_in_words_that_it_knows(version: int, code: ErrorCode) -> None:
    async with serving() as (line, _node):
        await prepared(line, "t")
        old = await init(line)
        await init(line)
        assert (await end(line, old, version=version)).error_code == code


async def test_a_delayed_end_cannot_decide_a_later_transaction() -> None:
    async with serving() as (line, _node):
        await prepared(line, "t")
        first = await init(line)
        await add(line, first)
        second = await end(line, first)
        assert await add(line, second) == [ErrorCode.NONE]
        assert (await end(line, first, committed=False)).error_code == ErrorCode.PRODUCER_FENCED
        assert (await described(line)).transaction_state == "Ongoing"


async def test_an_end_that_is_repeated_gives_the_same_answer() -> None:
    async with serving() as (line, _node):
        await prepared(line, "t")
        producer = await init(line)
        await add(line, producer)
        assert await end(line, producer) == await end(line, producer)


async def test_unknown_ids_and_what_cannot_be_ended_are_refused() -> None:
    async with serving() as (line, _node):
        nobody = InitProducerIdResponse(producer_id=9)
        assert (await end(line, nobody)).error_code == ErrorCode.NOT_COORDINATOR
        await prepared(line, "t")
        assert (await end(line, nobody)).error_code == ErrorCode.INVALID_PRODUCER_ID_MAPPING
        assert (await end(line, await init(line))).error_code == ErrorCode.INVALID_TXN_STATE


async def test_not_everybody_may_end_a_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    deny(monkeypatch, Operation.WRITE)
    async with serving() as (line, _node):
        ended = await end(line, InitProducerIdResponse(producer_id=9))
        assert ended.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
