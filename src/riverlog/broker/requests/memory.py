"""The node's memory for requests: bounded, shared fairly, and never a reason to wait for ever.

Every connection has a small receive buffer of its own. What a larger request needs is taken from one of two pools
before it is read, for the whole frame at once: half-read requests do not wait for one another. But a frame that hardly
grows while others wait gives back what it has not filled, and from then on gets memory only as its bytes come; so does
one that takes more than half of the pool and finds it too full. Large
Produce requests share the one pool. All others have the reserve to themselves, so that what frees memory (a replica's
Fetch, a heartbeat, a small request) never waits behind what fills it. Who finds a pool empty is not read from and waits
in line; whoever has finished a request while others wait gives its memory back and joins the line at its end.

What is large may wait long for frames that were only announced. So small requests in line that fit pass it, but only
from time to time: in between, what they were lent comes back, and the large one finds it.

A pool lends at most its size, and beyond it one frame: to the first in line when all who hold memory wait themselves,
or when its frame is larger than the whole pool. Should all wait even then, the one that holds most is sent away.
"""

from collections.abc import Callable
from typing import Final

from riverlog.broker.limits import (
    ANSWERS_MEMORY_PART,
    CONNECTION_WINDOW_BYTES_MIN,
    PASSING_REQUEST_PART,
    REQUEST_MEMORY_RESERVE_PART,
    STALLED_FRAME_SECONDS,
)
from riverlog.model.limits import RECEIVE_BUFFER_BYTES, RECEIVE_BUFFER_BYTES_MIN
from riverlog.observe.stats import ConnectionStats
from riverlog.wire.apis import ApiKey

CallLater = Callable[[float, Callable[[], None]], object]
"""Calls something after so many seconds."""

_PRODUCE: Final = ApiKey.PRODUCE.to_bytes(2, "big")


class RequestMemory:
    """What all connections of a node may hold together for requests that have not yet been begun."""

    def __init__(self, bytes_max: int, *, window_bytes_max: int, stats: ConnectionStats, later: CallLater) -> None:
        reserve_bytes = bytes_max // REQUEST_MEMORY_RESERVE_PART
        self.window_bytes_max = window_bytes_max
        self.stats = stats
        self.answer_bytes = 0
        """Answers in memory that peers have not taken yet."""
        self._answer_bytes_max = bytes_max // ANSWERS_MEMORY_PART
        self.bulk = MemoryPool(bytes_max - reserve_bytes, stats, later)
        self.reserve = MemoryPool(reserve_bytes, stats, later)

    @property
    def answers_crowded(self) -> bool:
        """Return whether so much waits to be taken that nothing should be copied that can be sent from its file."""
        return self.answer_bytes > self._answer_bytes_max

    @property
    def window_bytes(self) -> int:
        """Return how many bytes a client should have unanswered: less while others wait for memory."""
        if not self.bulk.crowded:
            return self.window_bytes_max
        return min(max(self.bulk.fair_share, CONNECTION_WINDOW_BYTES_MIN), self.window_bytes_max)


class ConnectionMemory:
    """One connection's part of the request memory, and the lender of its receive buffer."""

    __slots__ = (
        "_memory", "bytes", "frame_bytes", "give_back", "give_up", "granted", "grants", "look", "pool", "stalled",
        "step", "waits",
    )  # fmt: skip

    def __init__(
        self,
        memory: RequestMemory,
        *,
        granted: Callable[[], None],
        give_back: Callable[[], None],
        give_up: Callable[[], None],
        look: Callable[[], None],
    ) -> None:
        self.pool = memory.reserve
        self.bytes = 0  # held in `pool`; the smallest buffer is not counted
        self.waits = False  # in line, in either pool
        self.grants = 0  # how often memory was lent so far
        self.frame_bytes = self.step = 0  # of the frame for which memory was last asked: in all, and at once
        self.stalled = False  # the frame did not come while others waited: nothing is lent for what is only announced
        self.granted = granted
        """Called when the connection got what it waited for."""
        self.give_back = give_back
        """Called when others need what the connection has and may not need."""
        self.give_up = give_up
        """Called when the connection must end, because nobody else can go on."""
        self.look = look
        """Called from time to time while others wait, for the connection to give back what is not being filled."""
        self._memory = memory

    @property
    def in_demand(self) -> bool:
        """Return whether others wait for what is held here."""
        return self.bytes > 0 and self.pool.crowded

    def lend(self, size: int, *, step: int, frame: memoryview) -> bool:
        """Grant all of `size`, of a stalled frame the next step, or put the connection in line."""
        self.frame_bytes, self.step = size, step
        wanted = step if self.stalled else size
        if wanted <= self.bytes:
            return True
        large = size > RECEIVE_BUFFER_BYTES and frame[:2] == _PRODUCE
        return (self._memory.bulk if large else self._memory.reserve).claim(self, wanted)

    def lend_spare(self, size: int) -> bool:
        """Grant it only if there is enough for everybody."""
        return size <= self.bytes or self._memory.reserve.claim_spare(self, size)

    def returned(self, size: int) -> None:
        """Keep no more than the buffer has."""
        kept = size if size > RECEIVE_BUFFER_BYTES_MIN else 0
        if not kept:
            self.stalled = False
        if kept < self.bytes:
            self.pool.release(self, kept)

    def close(self) -> None:
        """Hold nothing, wait for nothing, and know the connection no more: its buffer is free at once, not at the next
        search for cycles."""
        self.granted = self.give_back = self.give_up = self.look = _nobody
        self._memory.bulk.forget(self)
        self._memory.reserve.forget(self)


class MemoryPool:
    """A number of bytes, those who hold some, and the line of those who wait for some."""

    def __init__(self, bytes_max: int, stats: ConnectionStats, later: CallLater) -> None:
        self.bytes_max = bytes_max
        self.used = 0
        self.short = False  # somebody waits, or more is lent than there is: nothing is kept for requests to come
        self._holders: dict[ConnectionMemory, None] = {}
        self._line: dict[ConnectionMemory, int] = {}  # in order of arrival, with the size that each wants
        self._stats = stats
        self._later = later
        self._watching = False

    @property
    def crowded(self) -> bool:
        """Return whether anybody waits."""
        return bool(self._line)

    @property
    def fair_share(self) -> int:
        """Return how many bytes everyone would get if all who hold or want memory got the same."""
        return self.bytes_max // max(1, len(self._holders | self._line))

    def claim(self, share: ConnectionMemory, size: int) -> bool:
        """Grant the connection `size` bytes in all if there are enough and nobody waits; else queue it."""
        if self.claim_spare(share, size):
            return True
        if not self._line:
            for holder in tuple(self._holders):
                if holder is not share:
                    holder.give_back()
        self._line[share] = size
        share.waits = True
        self._serve()
        if share.waits:
            self._watch()
        if share.waits and share.bytes and share.pool is not self:
            share.pool._serve()  # if all who hold memory there now wait, its line must go on
        return share.pool is self and share.bytes >= size

    def claim_spare(self, share: ConnectionMemory, size: int) -> bool:
        """Grant the connection `size` bytes in all if there are enough and nobody waits; else do nothing."""
        if self._line or not self._fits(share, size):
            return False
        self._grant(share, size)
        return True

    def release(self, share: ConnectionMemory, kept: int) -> None:
        """Take back all but `kept` bytes, and let those who wait go on."""
        self._count(kept - share.bytes)
        share.bytes = kept
        if not kept:
            del self._holders[share]
        self._serve()

    def forget(self, share: ConnectionMemory) -> None:
        """Forget a connection that has ended."""
        if self._line.pop(share, None) is not None:
            share.waits = False
        if share in self._holders:
            self.release(share, 0)
        self._serve()

    def _watch(self) -> None:
        """Look soon, and again while anybody waits, who keeps memory for a frame that does not come."""
        if not self._watching:
            self._watching = True
            self._later(STALLED_FRAME_SECONDS, self._look)

    def _look(self) -> None:
        self._watching = False
        if not self._line:
            return
        for holder in tuple(self._holders):
            if not holder.waits:
                holder.look()
        for share in self._line:
            if 2 * share.frame_bytes > self.bytes_max:  # so much is rarely free: it would keep all behind it waiting
                share.stalled = True
                self._line[share] = share.step
        self._serve()
        self._serve_small()
        if self._line:
            self._watch()

    def _serve_small(self) -> None:
        """Grant to small requests what there is, past the large one that is first in line and does not fit."""
        for share, size in tuple(self._line.items()):
            # Whoever is granted something may take back memory or leave, so each is looked at anew.
            if share in self._line and size <= self.bytes_max // PASSING_REQUEST_PART and self._fits(share, size):
                self._leave_line(share, size)
        self.short = self.crowded or self.used > self.bytes_max

    def _serve(self) -> None:
        """Grant in order what can be granted."""
        while self._line:
            share, size = next(iter(self._line.items()))
            if not self._fits(share, size):
                if not all(holder.waits for holder in self._holders):
                    break
                if self.used > self.bytes_max:
                    max(self._holders, key=lambda holder: holder.bytes).give_up()
                    break  # its leave has served the line
                size = max(size, share.frame_bytes)  # so that one of them comes to its end
            self._leave_line(share, size)
        self.short = self.crowded or self.used > self.bytes_max

    def _leave_line(self, share: ConnectionMemory, size: int) -> None:
        del self._line[share]
        self._grant(share, size)
        share.waits = False
        share.granted()

    def _fits(self, share: ConnectionMemory, size: int) -> bool:
        held = self._held_by(share)
        return self.used - held + size <= self.bytes_max or self.used == held

    def _grant(self, share: ConnectionMemory, size: int) -> None:
        self._count(size - self._held_by(share))
        self._holders[share] = None
        before, bytes_before = share.pool, share.bytes
        share.pool, share.bytes = self, size
        share.grants += 1
        if bytes_before and before is not self:
            before._leave(share, bytes_before)

    def _leave(self, share: ConnectionMemory, count: int) -> None:
        self._count(-count)
        del self._holders[share]
        self._serve()

    def _held_by(self, share: ConnectionMemory) -> int:
        return share.bytes if share.pool is self else 0

    def _count(self, change: int) -> None:
        self.used += change
        self.short = self.crowded or self.used > self.bytes_max
        self._stats.request_bytes += change


def _nobody() -> None:
    """Stand in for a connection that has ended."""
