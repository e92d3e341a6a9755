"""Counts that the data path keeps about itself, as plain numbers.

Whoever does the work increments the field; nothing is locked, looked up by label or formatted until somebody
asks (`metrics.py`). Counting one answered request costs less than half a microsecond.
"""

from bisect import bisect_left
from enum import StrEnum, unique
from typing import Final

from riverlog.model.errors import ErrorCode
from riverlog.model.transactions import TransactionOutcome

SECONDS_BOUNDS: Final = (
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
)  # fmt: skip
"""Upper bounds of every histogram's buckets, in seconds; one more bucket holds what is slower."""

_QUICK_SECONDS: Final = SECONDS_BOUNDS[0]


class Histogram:
    """How long something took, by bucket. `counts[i]` is what fell into bucket i alone, not cumulated."""

    __slots__ = ("counts", "sum_seconds")

    def __init__(self) -> None:
        self.counts = _no_counts()
        self.sum_seconds = 0.0

    def observe(self, seconds: float) -> None:
        """Count one more."""
        self.counts[bisect_left(SECONDS_BOUNDS, seconds)] += 1
        self.sum_seconds += seconds

    def copy(self) -> "Histogram":
        """Copy what was counted so far."""
        copied = Histogram()
        copied.counts = self.counts.copy()
        copied.sum_seconds = self.sum_seconds
        return copied


class RequestStats:
    """The requests of one API: how many, with which errors, and how long each stage of the road took.

    Stages: *queue*, from the arrival of the bytes to the handler; *handle*, the handler's ordered work; *wait*,
    what it waited for (a flush, replicas, records to fetch); *send*, until the peer's socket took the answer.
    """

    __slots__ = (
        "_handle", "_handle_seconds", "_queue", "_queue_seconds", "_send", "_send_seconds", "_total", "_wait",
        "_wait_seconds", "api", "count", "errors",
    )  # fmt: skip

    def __init__(self, api: str) -> None:
        self.api = api
        self.count = 0
        self.errors: dict[ErrorCode, int] = {}
        # Most stages of most requests belong into the first bucket, which is therefore not counted but worked out.
        self._queue, self._queue_seconds = _no_counts(), 0.0
        self._handle, self._handle_seconds = _no_counts(), 0.0
        self._wait, self._wait_seconds = _no_counts(), 0.0
        self._send, self._send_seconds = _no_counts(), 0.0
        self._total = _no_counts()

    def answered(self, received: float, started: float, handled: float, ready: float, sent: float) -> None:
        """Count one answered request by the instants (monotonic seconds) at which its stages ended."""
        self.count += 1
        self._queue_seconds += (queue := started - received)
        self._handle_seconds += (handle := handled - started)
        self._wait_seconds += (wait := ready - handled)
        self._send_seconds += (send := sent - ready)
        if (total := sent - received) > _QUICK_SECONDS:
            self._total[bisect_left(SECONDS_BOUNDS, total)] += 1
            if queue > _QUICK_SECONDS:
                self._queue[bisect_left(SECONDS_BOUNDS, queue)] += 1
            if handle > _QUICK_SECONDS:
                self._handle[bisect_left(SECONDS_BOUNDS, handle)] += 1
            if wait > _QUICK_SECONDS:
                self._wait[bisect_left(SECONDS_BOUNDS, wait)] += 1
            if send > _QUICK_SECONDS:
                self._send[bisect_left(SECONDS_BOUNDS, send)] += 1

    def failed(self, code: ErrorCode) -> None:
        """Count one error code of an answer, unless it is NONE; an answer about many partitions may count many."""
        if code is not ErrorCode.NONE:
            self.errors[code] = self.errors.get(code, 0) + 1

    def stages(self) -> dict[str, Histogram]:
        """Return the histogram of each stage, in the order of a request's way."""
        return {
            "queue": self._histogram(self._queue, self._queue_seconds),
            "handle": self._histogram(self._handle, self._handle_seconds),
            "wait": self._histogram(self._wait, self._wait_seconds),
            "send": self._histogram(self._send, self._send_seconds),
        }

    def total(self) -> Histogram:
        """Return the histogram of whole requests, from their arrival to the last byte of the answer."""
        seconds = self._queue_seconds + self._handle_seconds + self._wait_seconds + self._send_seconds
        return self._histogram(self._total, seconds)

    def _histogram(self, slower: list[int], sum_seconds: float) -> Histogram:
        """Build a whole histogram: what is in no slower bucket was quick."""
        histogram = Histogram()
        histogram.counts = [self.count - sum(slower), *slower[1:]]
        histogram.sum_seconds = sum_seconds
        return histogram


class PartitionStats:
    """The traffic of one partition since the node started."""

    __slots__ = ("batches_in", "bytes_in", "bytes_out", "fetches", "messages_in", "messages_out")

    def __init__(self) -> None:
        self.messages_in = 0
        self.batches_in = 0
        self.bytes_in = 0
        self.messages_out = 0
        self.bytes_out = 0
        self.fetches = 0


@unique
class CloseReason(StrEnum):
    """Why a connection ended."""

    PEER = "peer"
    IDLE = "idle"
    BROKEN = "broken"
    MALFORMED = "malformed"
    UNANSWERED = "unanswered"
    """A request has no answer that could be given: its client is told so by this alone."""
    SLOW = "slow"
    STOPPING = "stopping"


class ConnectionStats:
    """The connections of one node: how many are open, what they hold, and what became of the others."""

    __slots__ = ("accepted", "accepts_held_up", "closed", "held_back", "open", "refused", "request_bytes")

    def __init__(self) -> None:
        self.open = 0
        self.held_back = 0  # not read from: too much unanswered, or no memory for what they send
        self.request_bytes = 0  # request memory in use
        self.accepted = 0
        self.refused = 0  # turned away at the door: `max.connections` was reached
        self.accepts_held_up = 0  # how often the system had no descriptor or no memory for one more
        self.closed = dict.fromkeys(CloseReason, 0)

    def opened(self) -> None:
        """Count a connection that was accepted."""
        self.accepted += 1
        self.open += 1

    def ended(self, reason: CloseReason) -> None:
        """Count the end of a connection that was accepted."""
        self.open -= 1
        self.closed[reason] += 1
        assert self.open >= 0


class ScrubStats:
    """What the scrubber has done since the node started."""

    __slots__ = ("bytes", "completed_ms")

    def __init__(self) -> None:
        self.bytes = 0
        self.completed_ms = 0  # when it was last through with all closed segments; 0 until then


class TransactionStats:
    """What the transaction coordinators of one node have decided, and the markers that they send."""

    __slots__ = ("ended", "markers_retried", "markers_waiting")

    def __init__(self) -> None:
        self.ended = dict.fromkeys(TransactionOutcome, 0)
        self.markers_waiting = 0  # of transactions that are decided, and not known everywhere yet
        self.markers_retried = 0


class NodeStats:
    """All that one node counts, except per partition: each partition keeps its own `PartitionStats`."""

    __slots__ = (
        "connections",
        "contained",
        "flushes",
        "loop_lag",
        "requests",
        "scrub",
        "startup_seconds",
        "transactions",
    )

    def __init__(self) -> None:
        self.requests: dict[str, RequestStats] = {}  # by API name; bounded by the table of APIs
        self.connections = ConnectionStats()
        self.contained = 0  # unexpected exceptions that the node survived
        self.flushes = Histogram()
        self.loop_lag = Histogram()  # while metrics are served
        self.scrub = ScrubStats()
        self.transactions = TransactionStats()
        self.startup_seconds = 0.0  # from the start of the process to the ready line; 0 until then

    def of_api(self, api: str) -> RequestStats:
        """Return the counts of one API. Callers keep what they are given: it is never replaced."""
        return self.requests.setdefault(api, RequestStats(api))


def _no_counts() -> list[int]:
    return [0] * (len(SECONDS_BOUNDS) + 1)
