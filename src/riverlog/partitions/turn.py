"""The end of a turn: what requests that arrived together have left to do, done together.

A turn is one round of the event loop: every socket that has bytes is read, every whole request in them is handled.
Partitions gather batches meanwhile, and connections gather answers. When all have been handled, each partition writes
once, then those look who wait for what was written, and then each connection whose answers are due sends once.
A few readers come before the acknowledgements: what they wait for is on its way since it was written. Nobody is read
from before that, so a gathered batch may stay where it was received.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

from riverlog.observe.containment import contained

_AT_TURNS_END: Final = "end of a turn"
_READERS_FIRST_MAX: Final = 4  # to find what they wait for takes several times as long as to send an acknowledgement


class Turn:
    """Collects what is to be done when the turn ends; in three queues: answers come after what they answer for."""

    __slots__ = ("_call_soon", "_due", "_looks", "_sends", "_writes", "number")

    def __init__(self) -> None:
        self.number = 0
        """Counts the ends; whatever was gathered before the last one is written."""
        self._writes: list[Callable[[], object]] = []
        self._looks: dict[Callable[[], None], None] = {}  # whoever waits for several partitions still looks once
        self._sends: list[Callable[[], None]] = []
        self._due = False
        self._call_soon: Callable[[Callable[[], None]], object] | None = None

    def write(self, write: Callable[[], object]) -> None:
        """Call this when the turn ends."""
        self._writes.append(write)
        if not self._due:
            self._schedule()

    def look(self, look: Callable[[], None]) -> None:
        """Call this once when the turn ends, after everything has been written: it may find something to send."""
        self._looks[look] = None
        if not self._due:
            self._schedule()

    def send(self, send: Callable[[], None]) -> None:
        """Call this when the turn ends, after everything has been written."""
        self._sends.append(send)
        if not self._due:
            self._schedule()

    def end(self) -> None:
        """Do it all now; what that leads to is done at the end of the next turn, except that it may look and send."""
        self.number += 1
        writes, self._writes = self._writes, []
        for write in writes:  # as _call_all does, without a call: there is one of each in every turn
            try:
                write()
            except Exception as error:
                contained(_AT_TURNS_END, error)
        sends, self._sends = self._sends, []
        if self._looks:
            sends = self._look(sends)
        for send in sends:
            try:
                send()
            except Exception as error:
                contained(_AT_TURNS_END, error)

    def _look(self, sends: list[Callable[[], None]]) -> list[Callable[[], None]]:
        """Call all who wait; return what is to be sent, first to readers if they are few, else to writers."""
        looks, self._looks = self._looks, {}
        if len(looks) > _READERS_FIRST_MAX:
            _call_all(sends)
            sends = []
        _call_all(looks)
        found, self._sends = self._sends, []
        return found + sends

    def _schedule(self) -> None:
        self._due = True
        if self._call_soon is None:  # asking for the loop is a call to the system
            self._call_soon = asyncio.get_running_loop().call_soon
        self._call_soon(self._end)

    def _end(self) -> None:
        try:
            self.end()
        finally:
            self._due = False
            if self._writes or self._looks or self._sends:
                self._schedule()


def _call_all(calls: Iterable[Callable[[], object]]) -> None:
    """Call each; an exception of one does not stop the others."""
    for call in calls:
        try:
            call()
        except Exception as error:
            contained(_AT_TURNS_END, error)
