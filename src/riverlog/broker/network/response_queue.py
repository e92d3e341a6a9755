"""The responses of one connection, in the order of their requests, until the peer has taken them.

What a peer can pile up is counted here: the bytes of its unanswered requests, its window, and the memory of responses
that wait behind another.
"""

from collections import deque
from collections.abc import Callable
from typing import Final

from riverlog.broker.network.outbox import Outbox
from riverlog.broker.requests.context import PendingResponse
from riverlog.model.ports import Socket

_SMALL_BYTES_MAX: Final = 1024  # a whole queue of such responses is less than a socket takes


class ResponseQueue:
    """Keeps order, counts bytes, and moves what is ready to the outbox."""

    __slots__ = ("_now", "_sent_with", "_sizes", "held_bytes", "waiting", "window")

    def __init__(self, window_bytes_max: int, now: Callable[[], float]) -> None:
        self.window = window_bytes_max
        """How many bytes of requests may still arrive before others are answered."""
        self.waiting: deque[PendingResponse] = deque()
        """Not ready, or behind one that is not."""
        self.held_bytes = 0
        """Memory of the responses that wait: of those that are ready, and of those that may become large."""
        self._sizes: dict[PendingResponse, int] = {}
        self._sent_with: list[PendingResponse] = []  # their bytes are in the outbox
        self._now = now

    def append(self, pending: PendingResponse, request_bytes: int) -> None:
        """Queue the response to a request of this size."""
        pending.request_bytes = request_bytes
        self.window -= request_bytes
        self.waiting.append(pending)

    def hold(self, pending: PendingResponse, size: int) -> None:
        """Count the memory of a response that waits."""
        self.held_bytes += size - self._sizes.get(pending, 0)
        self._sizes[pending] = size

    def move_ready(self, outbox: Outbox) -> None:
        """Put the bytes of all responses into the outbox that have none missing before them."""
        waiting = self.waiting
        ready = self._now()
        while waiting and (parts := waiting[0].parts) is not None:
            pending = waiting.popleft()
            pending.ready = ready
            outbox.put(parts)
            if self._sizes:
                self.held_bytes -= self._sizes.pop(pending, 0)
            self._sent_with.append(pending)

    def send_small(self, socket: Socket) -> bool:
        """Send the whole queue at once: nearly always all is ready and small. If not, all is still to do."""
        waiting = self.waiting
        responses: list[bytes] = []
        for pending in waiting:
            parts = pending.parts
            if not parts or type(part := parts[0]) is not bytes or len(parts) > 1 or len(part) > _SMALL_BYTES_MAX:
                return False
            responses.append(part)
        joined = responses[0] if len(responses) == 1 else b"".join(responses)
        ready = self._now()
        try:
            sent = socket.send(joined)
        except OSError:
            return False  # it will be met again, and dealt with
        if sent != len(joined):
            for pending in waiting:
                pending.parts = []
            waiting[0].parts = [joined[sent:]]
            return False
        now = self._now()
        for pending in waiting:
            self.window += pending.request_bytes
            pending.stats.answered(pending.received, pending.started, pending.handled, ready, now)
        waiting.clear()
        if self._sizes:
            self._sizes.clear()
            self.held_bytes = 0
        return True

    def taken(self) -> None:
        """Count all responses as answered whose bytes were in the outbox: it is empty."""
        if self._sent_with:
            now = self._now()
            for pending in self._sent_with:
                self.window += pending.request_bytes
                pending.stats.answered(pending.received, pending.started, pending.handled, pending.ready, now)
            self._sent_with.clear()

    def abandon(self) -> None:
        """Forget all responses: the connection has ended."""
        for pending in self.waiting:
            pending.abandon()
        self.waiting.clear()
        self._sizes.clear()
        self._sent_with.clear()
