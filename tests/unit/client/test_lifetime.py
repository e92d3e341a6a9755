"""What is started and closed by `async with`."""

from typing import Self

import pytest

from riverlog.client.lifetime import Startable


class Door(Startable):
    def __init__(self, *, jams: bool = False) -> None:
        self.seen: list[str] = []
        self._jams = jams

    async def start(self) -> Self:
        if self._jams:
            raise OSError("it jams")
        self.seen.append("start")
        return self

    async def close(self) -> None:
        self.seen.append("close")


async def test_the_block_has_the_started_object_and_closes_it() -> None:
    door = Door()

    async with door as same:
        assert same is door
        assert door.seen == ["start"]

    assert door.seen == ["start", "close"]


async def test_an_error_in_the_block_closes_and_goes_on() -> None:
    door = Door()

    with pytest.raises(LookupError, match="a step is missing"):
        async with door:
            raise LookupError("a step is missing")

    assert door.seen == ["start", "close"]


async def test_what_could_not_start_is_not_closed() -> None:
    door = Door(jams=True)

    with pytest.raises(OSError, match="it jams"):
        async with door:
            raise AssertionError("the block is not entered")

    assert door.seen == []
