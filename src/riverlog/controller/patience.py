"""How long is waited for a disk without room, or a system without descriptors: what is tried again, and what is not.

Each piece of work leaves everything as it is when it cannot begin, and goes on where it was. What hinders for long ends
the node; a full disk only keeps it from voting, for as long as it is full. A failed flush is never tried again.
"""

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

from riverlog.controller.limits import METADATA_TRIES_MAX
from riverlog.model.disk_errors import DiskTrouble, judge
from riverlog.model.errors import Refusal
from riverlog.model.ports import Workers
from riverlog.observe.logging import get_logger

T = TypeVar("T")
TRY_AGAIN_SECONDS: Final = 0.1


class ClosedMeanwhile(Exception):
    """What hinders has not passed, and nobody waits for it any more."""


class Patience:
    """Judges errors of the disk, and counts how often something was tried."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._tries_left = METADATA_TRIES_MAX
        self._is_waiting = False
        self._closing = False
        self._logger = get_logger("riverlog.metadata")

    def close(self) -> None:
        """Try nothing again from now on."""
        self._closing = True

    def may_pass(self, error: Exception) -> bool:
        """Return whether to try again; ClosedMeanwhile where nobody waits any more."""
        cause = error.__cause__ if isinstance(error, Refusal) else error
        trouble = judge(cause) if isinstance(cause, OSError) else None
        if trouble not in (DiskTrouble.HINDERED, DiskTrouble.FULL):
            return False
        if self._closing:
            raise ClosedMeanwhile
        if not self._is_waiting:
            self._is_waiting = True
            self._logger.warning("metadata wait for the disk", detail=str(error))
        if trouble is DiskTrouble.HINDERED:
            self._tries_left -= 1
        return self._tries_left > 0

    def went_on(self) -> None:
        """Note that something was possible again."""
        self._is_waiting = False
        self._tries_left = METADATA_TRIES_MAX

    async def insist(self, work: Callable[[], T], *, beside: bool) -> T:
        """Do something on the loop or beside it, again where something is in the way that may pass."""
        while True:
            try:
                result = await self._workers.run(work) if beside else work()
            except OSError as error:
                if not self.may_pass(error):
                    raise
            else:
                self.went_on()
                return result
            await asyncio.sleep(TRY_AGAIN_SECONDS)
