"""Patience with a cluster that is away for a while."""

import asyncio
from types import TracebackType
from typing import Self

import pytest

from riverlog.client.errors import KafkaError, Unreachable
from riverlog.model.errors import ErrorCode
from riverlog.spark.sink.retries import start_with_patience, started
from tests.support.virtual_time import run


class Part:
    """Something that can be started once a while has passed."""

    def __init__(self, *, after: float, problem: KafkaError | None = None) -> None:
        self._after = after
        self._problem = problem or Unreachable("nobody is there")
        self.left_with: list[object] = []

    async def start(self) -> Self:
        if asyncio.get_running_loop().time() < self._after:
            raise self._problem
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.left_with.append(kind)


async def test_who_comes_back_in_time_is_reached() -> None:
    part = Part(after=asyncio.get_running_loop().time() + 20)
    async with started(part, seconds_max=30) as found:
        assert found is part
    assert part.left_with == [None]


async def test_who_does_not_is_given_up() -> None:
    start = asyncio.get_running_loop().time()
    with pytest.raises(Unreachable):
        await start_with_patience(Part(after=start + 20).start, seconds_max=10)
    assert 9 < asyncio.get_running_loop().time() - start <= 10


async def test_a_no_is_a_no() -> None:
    start = asyncio.get_running_loop().time()
    refused = KafkaError(ErrorCode.INVALID_TRANSACTION_TIMEOUT, "no")
    with pytest.raises(KafkaError, match="no"):
        await start_with_patience(Part(after=start + 20, problem=refused).start, seconds_max=30)
    assert asyncio.get_running_loop().time() == start


def test_a_part_learns_what_ended_its_block() -> None:
    async def scenario() -> None:
        part = Part(after=0)
        with pytest.raises(ZeroDivisionError):
            await fail_with(part)
        assert part.left_with == [ZeroDivisionError]

    async def fail_with(part: Part) -> None:
        async with started(part, seconds_max=30):
            raise ZeroDivisionError

    run(scenario())
