"""Deadlines by name, for machines: most are moved long before they come.

Moving one later, which every heartbeat does, costs a dictionary entry; the heap is corrected when the old time comes.
So `next` may name a moment at which nothing is due; it never names one that is too late.
"""

from collections.abc import Hashable
from heapq import heappop, heappush
from itertools import count
from typing import Generic, TypeVar

from riverlog.model.machine import Instant

Name = TypeVar("Name", bound=Hashable)


class Timers(Generic[Name]):
    """Named deadlines; each name has at most one."""

    def __init__(self) -> None:
        self._deadlines: dict[Name, Instant] = {}
        self._heap: list[tuple[Instant, int, Name]] = []
        self._queued: dict[Name, Instant] = {}  # the earliest moment at which the heap will look at a name
        self._order = count()  # names need not be comparable

    def set(self, name: Name, deadline: Instant) -> None:
        """Set or move a deadline."""
        self._deadlines[name] = deadline
        queued = self._queued.get(name)
        if queued is None or deadline < queued:
            self._push(name, deadline)

    def cancel(self, name: Name) -> None:
        """Forget a deadline; one that is not set is fine."""
        self._deadlines.pop(name, None)

    def get(self, name: Name) -> Instant | None:
        return self._deadlines.get(name)

    def pop(self, now: Instant) -> Name | None:
        """Remove one name whose time has come. One at a time, since what follows from it may move the others."""
        while self._heap and self._heap[0][0] <= now:
            queued, _, name = heappop(self._heap)
            if self._queued.get(name) == queued:
                del self._queued[name]
            deadline = self._deadlines.get(name)
            if deadline is None:
                continue
            if deadline <= now:
                del self._deadlines[name]
                return name
            if name not in self._queued:
                self._push(name, deadline)
        return None

    def next(self) -> Instant | None:
        """Return when to look again, if at all."""
        return self._heap[0][0] if self._heap else None

    def _push(self, name: Name, deadline: Instant) -> None:
        self._queued[name] = deadline
        heappush(self._heap, (deadline, next(self._order), name))
