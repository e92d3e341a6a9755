"""An event loop whose clock jumps: what would wait for minutes takes no time, and the order of events is kept."""

import asyncio
import selectors
from collections.abc import Coroutine
from contextvars import Context
from typing import Any, Final, TypeVar

T = TypeVar("T")
TURNS_WITHOUT_TIME_MAX: Final = 1_000_000


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Runs timers as soon as nothing else is left to do, and moves the clock to them."""

    def __init__(self) -> None:
        self.now = 1_000.0
        super().__init__(_JumpingSelector(self))

    def time(self) -> float:
        return self.now

    def call_at(self, when: float, callback: Any, *args: Any, context: Context | None = None) -> Any:
        """Call at this time; as with uvloop, what is due is called soon, and the handle of that knows no time."""
        if when <= self.now:
            return self.call_soon(callback, *args, context=context)
        return super().call_at(when, callback, *args, context=context)


class VirtualClock:
    """The Clock port on the running loop's time."""

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    def wall_ms(self) -> int:
        return 1_700_000_000_000 + int(asyncio.get_running_loop().time() * 1000)


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on virtual time. A wait that nothing can end is an error, not a hanging test; so are circles."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(work)


class _JumpingSelector(selectors.DefaultSelector):  # type: ignore[misc, valid-type]
    """Instead of sleeping until the next timer, moves the loop's clock to it."""

    def __init__(self, loop: VirtualTimeLoop) -> None:
        super().__init__()
        self._loop = loop
        self._turns = 0  # since time has passed

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self._turns += 1
        if self._turns > TURNS_WITHOUT_TIME_MAX:
            self._turns = 0  # what is cancelled now may take a few
            raise AssertionError("something runs in circles: no time passes")
        ready: list[tuple[selectors.SelectorKey, int]] = super().select(0)
        if ready:
            return ready
        assert timeout is not None, "every task waits, and nothing is left that could wake one"
        if timeout > 0:
            self._loop.now += timeout
            self._turns = 0
        return []
