"""Sends reports about queries to the nodes that hold their checkpoints, from a thread of its own.

Nobody waits for it: a report is only noted, the latest of each run, and a node that is away gets it when it is back. A
run is reported every two seconds until its end; one that cannot be found any more has ended too. The end of a run is
sent for half a minute, and then forgotten. A node may answer that a run is to stop; that is passed on.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

PAUSE_SECONDS: Final = 1.0
"""Between two reports about one run; its beginning and its end are sent at once."""
HEARTBEAT_SECONDS: Final = 2.0
END_SECONDS_MAX: Final = 30.0
EXIT_SECONDS_MAX: Final = 2.0
RUNS_MAX: Final = 1_024
"""Runs that are reported at a time; further ones are not."""


class ReportReply(Enum):
    """A node's reply to a report."""

    NOT_DELIVERED = "not delivered"
    DELIVERED = "delivered"
    STOP = "stop"
    """Delivered, and the run is to stop."""


Send = Callable[[str, dict[str, Any]], ReportReply]
"""Takes a checkpoint's location and a report, and returns the node's reply."""


@dataclass(slots=True)
class _Run:
    location: str
    facts: dict[str, Any] = field(default_factory=dict)
    is_new: bool = True
    """Whether there is something that the node has not got."""
    is_stopping: bool = False
    """Whether it was asked to stop."""
    ended_at: float | None = None
    next_at: float = 0.0
    heartbeat_at: float = 0.0

    @property
    def due_at(self) -> float:
        return self.next_at if self.is_new else self.heartbeat_at


class Reporter:
    """Reports about the runs of one session."""

    def __init__(
        self,
        send: Send,
        *,
        is_active: Callable[[str], bool],
        stop: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take how to reach nodes, to ask whether a query runs, and to stop one without waiting for it."""
        self._send = send
        self._stop = stop
        self._is_active = is_active
        self._clock = clock
        self._runs: dict[str, _Run] = {}
        self._changed = threading.Condition()
        self._closed = False
        self._thread: threading.Thread | None = None

    def begin(self, run: str, location: str, facts: dict[str, Any]) -> None:
        """Begin to report about a run."""
        with self._changed:
            if self._closed or len(self._runs) >= RUNS_MAX:
                return
            self._runs[run] = _Run(location, {**facts, "run": run, "state": "running"})
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="riverlog-progress", daemon=True)
                self._thread.start()
            self._changed.notify()

    def update(self, run: str, facts: dict[str, Any]) -> None:
        """Add to the report about a run; nothing where it was not begun here."""
        with self._changed:
            if (known := self._runs.get(run)) is not None and known.ended_at is None:
                known.facts |= facts
                known.is_new = True
                self._changed.notify()

    def end(self, run: str, facts: dict[str, Any]) -> None:
        """Report that a run has ended."""
        with self._changed:
            if (known := self._runs.get(run)) is not None and known.ended_at is None:
                known.facts |= {"ended_ms": int(time.time() * 1000), **facts}
                known.is_new, known.ended_at, known.next_at = True, self._clock(), 0.0
                self._changed.notify()

    def facts(self, run: str) -> dict[str, Any]:
        """Return what was reported about a run."""
        with self._changed:
            known = self._runs.get(run)
            return {} if known is None else dict(known.facts)

    def close(self) -> None:
        """Report that all ends with this process, and wait for the nodes to take that, but not for long."""
        deadline = self._clock() + EXIT_SECONDS_MAX
        with self._changed:
            live = [run for run, known in self._runs.items() if known.ended_at is None]
            # The end of a query is on its way from the JVM when a program ends right behind it.
            self._changed.wait_for(lambda: not self._live(live), EXIT_SECONDS_MAX / 2)
        for run in live:
            self.end(run, {"state": "stopped"})
        with self._changed:
            self._closed = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(max(0.0, deadline - self._clock()))

    def _live(self, runs: list[str]) -> bool:
        return any(run in self._runs and self._runs[run].ended_at is None for run in runs)

    def _work(self) -> None:
        while due := self._next():
            for name in due:
                self._report(name)

    def _next(self) -> list[str]:
        """Wait until runs are to be reported, and name them; none once all are and nothing follows."""
        with self._changed:
            while self._runs or not self._closed:
                now = self._clock()
                if due := [name for name, run in self._runs.items() if run.due_at <= now]:
                    return due
                first = min((run.due_at for run in self._runs.values()), default=None)
                self._changed.wait(None if first is None else first - now)
            return []

    def _report(self, name: str) -> None:
        run = self._runs[name]
        if not run.is_new and not self._is_active(run.facts["query"]):
            self.end(name, {"state": "stopped"})
        with self._changed:
            facts, ended_at, run.is_new = dict(run.facts), run.ended_at, False
        reply = self._send(run.location, facts)
        delivered = reply is not ReportReply.NOT_DELIVERED
        if reply is ReportReply.STOP and ended_at is None and not run.is_stopping:
            run.is_stopping = True
            self._stop(run.facts["query"])
        with self._changed:
            now = self._clock()
            run.is_new |= not delivered
            run.next_at, run.heartbeat_at = now + PAUSE_SECONDS, now + HEARTBEAT_SECONDS
            if ended_at is not None and (delivered or self._closed or now - ended_at > END_SECONDS_MAX):
                del self._runs[name]
            self._changed.notify_all()
