"""One line on standard error when a cluster owes an answer for a while, and one when it answers again."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from riverlog import KafkaError

NOTICE_SECONDS: Final = 2.0
LOOK_SECONDS: Final = 0.2

Unanswered = Callable[[], "tuple[float, KafkaError | None]"]
"""Hears for how many seconds an answer has been missing, and the last failure if there was one."""


class Talking(Protocol):
    """A client that tells how long it has been waiting."""

    def unanswered(self) -> "tuple[float, KafkaError | None]": ...

    async def __aenter__(self) -> object: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...


class Notices:
    """Prints each thing once: that there is no answer, why as far as that is known, and that there is one again."""

    def __init__(self, unanswered: Unanswered, waits_for: str) -> None:
        """Watch what `unanswered` tells; `waits_for` completes `no … for 2 s`."""
        self._unanswered = unanswered
        self._waits_for = waits_for
        self._silent = False
        self._reason: str | None = None

    def look(self) -> None:
        """Print a line if one is due."""
        seconds, problem = self._unanswered()
        if seconds < NOTICE_SECONDS:
            if self._silent:
                _say("the cluster answers again")
            self._silent, self._reason = False, None
            return
        reason = None if problem is None else problem.message.partition(". Is one running")[0].rstrip(".")
        if self._silent and (self._reason is not None or reason is None):
            return
        self._silent, self._reason = True, reason
        say_silence(self._waits_for, seconds, reason)


@asynccontextmanager
async def noticing(
    unanswered: Unanswered, waits_for: str, also: Callable[[], None] = lambda: None
) -> AsyncIterator[None]:
    """Look from time to time while the block runs; `also` is called each time."""
    notices = Notices(unanswered, waits_for)

    async def watch() -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            also()
            notices.look()

    watching = asyncio.create_task(watch())
    try:
        yield
    finally:
        watching.cancel()
        await asyncio.wait([watching])


def say_silence(waits_for: str = "answer", seconds: float = NOTICE_SECONDS, reason: str | None = None) -> None:
    """Print that an answer is missing, and why where that is known."""
    _say(f"no {waits_for} for {seconds:.0f} s{f' ({reason})' if reason else ''}; still trying, Ctrl-C ends")


def _say(sentence: str) -> None:
    print(f"riverlog: {sentence}", file=sys.stderr, flush=True)
