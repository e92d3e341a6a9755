"""Drivers that start on a checkpoint on which another one may still run: whoever commits there waits for them.

At each start Spark makes the folder of the checkpoint, looks which batches are done, and runs the one that is not. A
driver before it that goes on meanwhile would leave it behind: it would find its batch committed, and both would be
refused. So a commit waits until the new driver has taken over, or has had the time to; then it is the one that goes on.
"""

import asyncio

from riverlog.model.limits import CHECKPOINT_ARRIVAL_SECONDS_MAX


class Arrivals:
    """Who is expected, by checkpoint."""

    def __init__(self) -> None:
        self._expected: dict[str, tuple[float, asyncio.Event]] = {}

    def expect(self, path: str) -> None:
        """Note that a driver is starting; one that was expected before is so for longer."""
        _, came = self._expected.get(path, (0.0, asyncio.Event()))
        self._expected[path] = asyncio.get_running_loop().time() + CHECKPOINT_ARRIVAL_SECONDS_MAX, came

    def came(self, path: str) -> None:
        """Let those go on who wait for it."""
        if path in self._expected:
            self._expected.pop(path)[1].set()

    async def give_way(self, path: str) -> None:
        """Wait until a driver that is expected has come, or has had the time to."""
        while path in self._expected:
            until, came = self._expected[path]
            try:
                async with asyncio.timeout_at(until):
                    await came.wait()
            except TimeoutError:
                if self._expected.get(path) == (until, came):
                    self.came(path)
