"""Futures that have ended already, and failures that are nobody's fault."""

import asyncio
import gc

import pytest

from riverlog.coordination.futures import answered, concluded, refused, unwatched
from riverlog.model.errors import ErrorCode, Refusal


async def test_who_has_an_answer_already_need_not_wait() -> None:
    told, failed = answered(7), refused(Refusal(ErrorCode.NOT_COORDINATOR, "not here"))
    assert (told.done(), told.result(), failed.done()) == (True, 7, True)
    with pytest.raises(Refusal):
        await failed


async def test_what_follows_from_a_future_is_known_when_it_has_ended() -> None:
    asked: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    doubled = asyncio.ensure_future(concluded(asked, lambda future: 2 * future.result()))
    await asyncio.sleep(1)
    assert not doubled.done()
    asked.set_result(7)
    assert await doubled == 14
    with pytest.raises(Refusal):
        await concluded(refused(Refusal(ErrorCode.NOT_COORDINATOR, "not here")), asyncio.Future.result)


async def test_a_failure_that_nobody_waits_for_is_no_fault() -> None:
    async def fails() -> None:
        raise Refusal(ErrorCode.NOT_COORDINATOR, "not here")

    faults: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, fault: faults.append(fault))
    refused(ZeroDivisionError())
    unwatched(asyncio.ensure_future(fails()))
    unwatched(asyncio.get_running_loop().create_future()).cancel()
    await asyncio.sleep(1)
    gc.collect()
    assert faults == []
