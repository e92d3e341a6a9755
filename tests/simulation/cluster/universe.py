"""Many processes in one: each has an event loop of its own, and one master clock steps them all.

Whatever is due first anywhere runs first: a timer of some loop, or an event between the hosts, such as bytes that
arrive. A turn of a loop takes no time by itself. A loop that is not stepped is a process that stands still, and one
that is dropped is a process that was killed: what runs where is known by its loop alone.
"""

import asyncio
import sys
import threading
from asyncio import events
from collections.abc import Callable
from contextvars import Context
from heapq import heappop, heappush
from itertools import count
from math import inf
from typing import Any, Final

TURNS_WITHOUT_TIME_MAX: Final = 100_000
_RESOLUTION: Final = 1e-6
_WAITS_ON_THE_WAY_OUT_MAX: Final = 100


class ProcessLoop(asyncio.BaseEventLoop):
    """The event loop of one simulated process. Its clock is the master's, `skew` seconds ahead.

    It reads no descriptors, so it has none.
    """

    def __init__(self, universe: "Universe", skew: float = 0.0) -> None:
        self._universe = universe
        self.skew = skew
        self.stands_still_until = 0.0
        """By the master's clock: until then nothing runs here."""
        self.is_dead = False
        self._turns = False
        super().__init__()
        self._selector = _NothingToRead()
        self._clock_resolution = 0.0
        self._thread_id: int | None = threading.get_ident()  # `is_running`, as others see it

    def time(self) -> float:
        return self.now + self.skew

    @property
    def now(self) -> float:
        """Return the time by the master's clock; later than others have it while this process holds up its turn."""
        return max(self._universe.now, self.stands_still_until)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Any, *args: Any, context: Context | None = None
    ) -> Any:
        """Call at this time; as with uvloop, what is due is called soon, and the handle of that knows no time."""
        if when <= self.time():
            return self.call_soon(callback, *args, context=context)
        return super().call_at(when, callback, *args, context=context)

    def next_due(self) -> float:
        """Return when something is to run, by the master's clock."""
        if self._ready:  # type: ignore[attr-defined]
            return self.stands_still_until
        scheduled: list[asyncio.TimerHandle] = self._scheduled  # type: ignore[attr-defined]
        # A timer is never early by a rounding error: whoever is woken too early wants to be woken again, at once.
        due = scheduled[0].when() - self.skew + _RESOLUTION if scheduled else inf
        return max(due, self.stands_still_until)

    def turn(self) -> None:
        """Run what is due, once."""
        hooks = sys.get_asyncgen_hooks()
        self._turns = True
        events._set_running_loop(self)
        sys.set_asyncgen_hooks(firstiter=self._asyncgen_firstiter_hook, finalizer=self._asyncgen_finalizer_hook)  # type: ignore[attr-defined]
        try:
            self._run_once()  # type: ignore[attr-defined]
        finally:
            self._turns = False
            sys.set_asyncgen_hooks(*hooks)
            events._set_running_loop(None)
            if self.is_dead:
                self._bury()

    def die(self) -> None:
        """End all that runs here; nothing that it does on its way out reaches the world."""
        self.is_dead = True
        if not self._turns:
            self._bury()

    def _bury(self) -> None:
        """Close all coroutines; what they begin on their way out is closed as well."""
        self.set_exception_handler(lambda _loop, _context: None)
        buried = set[asyncio.Task[Any]]()
        events._set_running_loop(self)
        try:
            while left := asyncio.all_tasks(self) - buried:
                for task in sorted(left, key=lambda task: int(task.get_name().rpartition("-")[2])):
                    task._log_destroy_pending = False  # type: ignore[attr-defined]
                    _close(task.get_coro())
                buried |= left
        finally:
            events._set_running_loop(None)
        self._thread_id = None
        self.close()

    def _process_events(self, _events: object) -> None:
        """Nothing is read."""

    def _write_to_self(self) -> None:
        """Nothing sleeps that would have to be woken."""


class Universe:
    """The master clock, and the loops and events that it steps."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.loops: list[ProcessLoop] = []
        self.turns = 0
        self.after_turn: Callable[[ProcessLoop], None] = lambda _loop: None
        """Called after each turn of a loop: what must always hold is looked at here."""
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()
        self._next_loop = 0

    def new_loop(self, skew: float = 0.0) -> ProcessLoop:
        """Return the loop of a process that begins now."""
        loop = ProcessLoop(self, skew)
        self.loops.append(loop)
        return loop

    def drop(self, loop: ProcessLoop) -> None:
        """End a process, without a word."""
        if not loop.is_dead:
            self.loops.remove(loop)
            loop.die()

    def at(self, instant: float, work: Callable[[], None]) -> None:
        """Do something between the processes at this time."""
        heappush(self._events, (max(instant, self.now), next(self._order), work))

    def after(self, seconds: float, work: Callable[[], None]) -> None:
        self.at(self.now + seconds, work)

    def run(self, until: float, stop: Callable[[], bool] = lambda: False) -> bool:
        """Let time pass until then, or until `stop` holds; return whether it does."""
        turns = 0
        while not stop():
            loop, due = self._next()
            event_due = self._events[0][0] if self._events else inf
            first = min(due, event_due)
            if first > until:
                self.now = max(self.now, until)
                return stop()
            if first > self.now:
                self.now, turns = first, 0
            turns += 1
            assert turns < TURNS_WITHOUT_TIME_MAX, "something runs in circles: no time passes"
            if event_due <= due:
                heappop(self._events)[2]()
            else:
                assert loop is not None
                self._turn(loop)
        return True

    def _turn(self, loop: ProcessLoop) -> None:
        self.turns += 1
        loop.turn()
        if not loop.is_dead:
            self.after_turn(loop)

    def _next(self) -> tuple[ProcessLoop | None, float]:
        """Return the loop that is due first; of several each in turn."""
        found, found_due = None, inf
        loops, size = self.loops, len(self.loops)
        for number in range(size):
            loop = loops[(self._next_loop + number) % size]
            due = max(loop.next_due(), self.now)
            if due < found_due:
                found, found_due = loop, due
                if due == self.now:
                    break
        if found is not None:
            self._next_loop = (loops.index(found) + 1) % size
        return found, found_due


class _NothingToRead:
    """Stands in for a selector: it never waits, and never has anything."""

    def select(self, _timeout: float | None = None) -> tuple[()]:
        return ()

    def close(self) -> None:
        """Hold nothing."""


def _close(coroutine: Any) -> None:
    """End a coroutine that may wait on its way out, again and again: nobody runs it any more."""
    try:
        for _ in range(_WAITS_ON_THE_WAY_OUT_MAX):
            coroutine.throw(asyncio.CancelledError())
        coroutine.close()
    except BaseException:  # its end
        return
