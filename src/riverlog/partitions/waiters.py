"""Those who wait for what they have appended: to stand in the log, or to be committed."""

import asyncio
import math
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

from riverlog.model.errors import ErrorCode
from riverlog.model.ids import Offset
from riverlog.observe.containment import contained

_DONE: Final = ErrorCode.NONE  # one look-up for all requests: in an enumeration it takes as long as a call

Waiter = tuple[Offset, float, Callable[[ErrorCode], None]]
"""The last offset that somebody wrote, until when they wait for it, and whom to call. A bare tuple: there is one for
every request."""


class AppendWaiters:
    """The waiters of one partition, in the order of their offsets; each is called once, with what became of it."""

    __slots__ = ("_deadline", "_timer", "for_commit", "for_write")

    def __init__(self) -> None:
        self.for_write: list[Waiter] = []
        self.for_commit: deque[Waiter] = deque()
        self._timer: asyncio.Handle | None = None  # one for all of them
        self._deadline = 0.0  # uvloop's handle has no deadline where it calls at once

    def add(self, last_offset: Offset, done: Callable[[ErrorCode], None], seconds_max: float | None) -> None:
        """Wait for an offset to be committed, for so long at most."""
        if seconds_max is None:
            self.for_commit.append((last_offset, math.inf, done))
            return
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds_max
        self.for_commit.append((last_offset, deadline, done))
        if self._timer is None or deadline < self._deadline:
            self._wait_until(deadline, loop)

    def written(self) -> None:
        """Answer those who waited for the end of a turn: all of it stands in the log."""
        waiters, self.for_write = self.for_write, []
        _answer(waiters, _DONE)

    def committed(self, high_watermark: Offset) -> None:
        """Answer those whose offsets the high watermark has passed."""
        waiters = self.for_commit
        while waiters and waiters[0][0] < high_watermark:
            try:
                waiters.popleft()[2](_DONE)
            except Exception as error:
                contained("answer for a committed batch", error)

    def lost(self, end: Offset, code: ErrorCode) -> None:
        """Answer those whose offsets are not in the log, which ends here: others get them."""
        waiting = [*self.for_write, *self.for_commit]
        self.for_commit = deque(waiter for waiter in self.for_commit if waiter[0] < end)
        written, self.for_write = self.for_write, []
        _answer((waiter for waiter in waiting if waiter[0] >= end), code)
        _answer((waiter for waiter in written if waiter[0] < end), _DONE)

    def fail(self, code: ErrorCode) -> None:
        """Answer all who wait for a commit: there will be none here."""
        waiting, self.for_commit = self.for_commit, deque()
        _answer(waiting, code)

    def _wait_until(self, deadline: float, loop: asyncio.AbstractEventLoop) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._deadline = loop.call_at(deadline, self._time_out), deadline

    def _time_out(self) -> None:
        """Answer those whose time is up, and look again when the next one's will be."""
        self._timer = None
        loop = asyncio.get_running_loop()
        waiting, self.for_commit = self.for_commit, deque()
        late: list[Waiter] = []
        for waiter in waiting:
            (late if waiter[1] <= loop.time() else self.for_commit).append(waiter)
        _answer(late, ErrorCode.REQUEST_TIMED_OUT)
        deadline = min((deadline for _, deadline, _ in self.for_commit), default=math.inf)
        if deadline < math.inf:
            self._wait_until(deadline, loop)


def _answer(waiters: Iterable[Waiter], code: ErrorCode) -> None:
    """Answer each with what became of its batch; an exception of one does not stop the others."""
    for _, _, done in waiters:
        try:
            done(code)
        except Exception as error:
            contained("answer for a batch", error)
