"""The requests that one connection repeats, recognised by their bytes.

A producer sends the same request again and again: but for the correlation id and the batch, every byte is that of the
one before. So what was found out about the first (where it leads, that it is allowed, how the answer looks) is kept
under those bytes, and the next one is taken apart with a single call. A route itself knows whether it still holds: the
partition is led in the same epoch. All are forgotten when the access rules change.
"""

from collections.abc import Callable
from functools import cache
from struct import Struct
from typing import Any, Final, Protocol

from riverlog.broker.limits import REPEATED_HEAD_BYTES_MAX, ROUTES_PER_CONNECTION_MAX
from riverlog.observe.stats import RequestStats

_FRONT_BYTES: Final = 8
"""API key, version, correlation id."""


class Route(Protocol):
    """What is known about a repeated request: where it leads."""

    @property
    def kind(self) -> int:
        """Return API key and version, as one number."""
        ...

    @property
    def stats(self) -> RequestStats: ...

    def take(self, frame: memoryview, position: int, correlation_id: int) -> Any:
        """Do the work of one more; `position` is where it begins to differ.

        None, with nothing done, where the rest is of another form or the route does not hold any more.
        """
        ...


class Routes:
    """Routes by the bytes between the correlation id and the batch; all known heads have the same length."""

    __slots__ = ("head_bytes", "known", "rules", "take_apart")

    def __init__(self) -> None:
        self.known: dict[bytes, Route] = {}
        self.rules = 0
        """The version of the access rules by which they are allowed."""
        self.head_bytes = 1 << 31
        """Where known heads end in a frame; beyond all frames while none is known."""
        self.take_apart: Callable[[memoryview], tuple[int, int, bytes]] = _shape(0)
        """Returns kind, correlation id and head of a frame."""

    def learn(self, frame: memoryview, head_bytes: int, route: Route, rules: int) -> None:
        """Remember where requests lead that begin like this frame."""
        if head_bytes > REPEATED_HEAD_BYTES_MAX:
            return
        if head_bytes != self.head_bytes or rules != self.rules or len(self.known) >= ROUTES_PER_CONNECTION_MAX:
            self.known.clear()
            self.rules = rules
            self.head_bytes = head_bytes
            self.take_apart = _shape(head_bytes - _FRONT_BYTES)
        self.known[bytes(frame[_FRONT_BYTES:head_bytes])] = route


@cache
def _shape(head_bytes: int) -> Callable[[memoryview], tuple[int, int, bytes]]:
    return Struct(f">ii{head_bytes}s").unpack_from
