"""Drivers that start on a checkpoint on which another one may still run: whoever commits there waits for them.

At each start Spark makes the folder of the checkpoint, looks which batches are done, and runs the one that is not. A
driver before it that goes on meanwhile would leave it behind: it would find its batch committed, and both would be
refused. So a commit waits until the new driver has taken over, or has had the time to; then it is the one that goes on.

A driver that fails at each start must not hold up the one that runs. So nobody waits for longer because another start
follows, and a start that somebody has waited for in vain lets those behind it go unheeded: for a minute, then for two,
and each time for twice as long, until a driver has come.
"""

import asyncio
from dataclasses import dataclass

from riverlog.checkpoints.limits import (
    CHECKPOINT_ARRIVAL_PAUSE_SECONDS_MAX,
    CHECKPOINT_ARRIVAL_PAUSE_SECONDS_MIN,
    CHECKPOINT_ARRIVAL_SECONDS_MAX,
    CHECKPOINT_STARTS_REMEMBERED_MAX,
)


class StartingDrivers:
    """Who is expected, by checkpoint."""

    def __init__(self) -> None:
        self._expected: dict[str, _Expected] = {}
        self._in_vain: dict[str, _InVain] = {}

    def expect(self, path: str) -> None:
        """Note that a driver is starting, unless somebody waits for one already, or has waited in vain lately."""
        now = asyncio.get_running_loop().time()
        known, in_vain = self._expected.get(path), self._in_vain.get(path)
        if (known is not None and known.is_waited_for) or (in_vain is not None and now < in_vain.until):
            return
        came = asyncio.Event() if known is None else known.came
        self._expected[path] = _Expected(now + CHECKPOINT_ARRIVAL_SECONDS_MAX, came)

    def came(self, path: str) -> None:
        """Wake up those who wait for it."""
        self._in_vain.pop(path, None)
        self._let_go(path)

    async def give_way(self, path: str) -> None:
        """Wait until a driver that is expected has come, or has had the time to."""
        expected = self._expected.get(path)
        now = asyncio.get_running_loop().time()
        if expected is None:
            return
        if now >= expected.until:
            self._let_go(path)
            return
        expected.is_waited_for = True
        try:
            async with asyncio.timeout_at(expected.until):
                await expected.came.wait()
        except TimeoutError:
            if self._expected.get(path) is expected:
                self._note_in_vain(path, expected.until)
                self._let_go(path)

    def _note_in_vain(self, path: str, now: float) -> None:
        before = self._in_vain.pop(path, None)
        seconds = CHECKPOINT_ARRIVAL_PAUSE_SECONDS_MIN if before is None else 2 * before.seconds
        seconds = min(seconds, CHECKPOINT_ARRIVAL_PAUSE_SECONDS_MAX)
        self._in_vain[path] = _InVain(now + seconds, seconds)
        if len(self._in_vain) > CHECKPOINT_STARTS_REMEMBERED_MAX:
            del self._in_vain[next(iter(self._in_vain))]

    def _let_go(self, path: str) -> None:
        if path in self._expected:
            self._expected.pop(path).came.set()


@dataclass(slots=True)
class _Expected:
    until: float
    came: asyncio.Event
    is_waited_for: bool = False
    """Whether a commit waits: then it does so until this time, whoever starts meanwhile."""


@dataclass(frozen=True, slots=True)
class _InVain:
    until: float
    seconds: float
