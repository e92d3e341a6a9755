"""Drivers that start on a checkpoint on which another one may still run: whoever commits there waits for them.

At each start Spark makes the folder of the checkpoint, looks which batches are done, and runs the one that is not. A
driver before it that goes on meanwhile would leave it behind: it would find its batch committed, and both would be
refused. So a commit waits until the new driver has taken over, or has had the time to; then it is the one that goes on.

A driver that fails at each start must not hold up the one that runs. So no commit waits for longer because another
start follows; and after a start that was waited for in vain, further starts are ignored: for a minute, then for two,
each time for twice as long, until a driver has come.
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
    """The drivers that are expected, by checkpoint."""

    def __init__(self) -> None:
        self._expected: dict[str, _ExpectedDriver] = {}
        self._missed: dict[str, _MissedStart] = {}

    def expect(self, path: str) -> None:
        """Expect a driver that is starting, unless a commit waits for one already, or has waited in vain lately."""
        now = asyncio.get_running_loop().time()
        known, missed = self._expected.get(path), self._missed.get(path)
        if (known is not None and known.is_waited_for) or (missed is not None and now < missed.until):
            return
        arrived = asyncio.Event() if known is None else known.arrived
        self._expected[path] = _ExpectedDriver(now + CHECKPOINT_ARRIVAL_SECONDS_MAX, arrived)

    def arrived(self, path: str) -> None:
        """Wake up those who wait for it."""
        self._missed.pop(path, None)
        self._release(path)

    async def wait_for(self, path: str) -> None:
        """Wait until a driver that is expected has come, or has had the time to."""
        expected = self._expected.get(path)
        now = asyncio.get_running_loop().time()
        if expected is None:
            return
        if now >= expected.until:
            self._release(path)
            return
        expected.is_waited_for = True
        try:
            async with asyncio.timeout_at(expected.until):
                await expected.arrived.wait()
        except TimeoutError:
            if self._expected.get(path) is expected:
                self._note_missed(path, expected.until)
                self._release(path)

    def _note_missed(self, path: str, now: float) -> None:
        before = self._missed.pop(path, None)
        seconds = CHECKPOINT_ARRIVAL_PAUSE_SECONDS_MIN if before is None else 2 * before.seconds
        seconds = min(seconds, CHECKPOINT_ARRIVAL_PAUSE_SECONDS_MAX)
        self._missed[path] = _MissedStart(now + seconds, seconds)
        if len(self._missed) > CHECKPOINT_STARTS_REMEMBERED_MAX:
            del self._missed[next(iter(self._missed))]

    def _release(self, path: str) -> None:
        if path in self._expected:
            self._expected.pop(path).arrived.set()


@dataclass(slots=True)
class _ExpectedDriver:
    until: float
    arrived: asyncio.Event
    is_waited_for: bool = False
    """Whether a commit waits: then it waits until this time, whoever starts meanwhile."""


@dataclass(frozen=True, slots=True)
class _MissedStart:
    until: float
    seconds: float
