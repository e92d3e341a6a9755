"""Queries of a pipeline that run: waited for together, stopped together, and counted while they do."""

import time
from typing import TYPE_CHECKING, Any, Final

from riverlog.pipelines.operators.row_counts import Counts, RowCounter
from riverlog.pipelines.runtime.interrupts import Interrupts, interrupts
from riverlog.spark.sessions.graceful_stop import FINISH_SECONDS_MAX, stop_behind_batch
from riverlog.spark.sessions.query_listener import QueryListener

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_PAUSE_SECONDS_MAX: Final = 1.0
_PAUSE_SECONDS_MIN: Final = 0.001
"""Spark counts in milliseconds, and refuses to wait for none."""


class Running:
    """The queries of one start."""

    def __init__(self, spark: "SparkSession", accounts: RowCounter) -> None:
        self.queries: list[StreamingQuery] = []
        self._spark = spark
        self._accounts = accounts
        self._listener = _Listener(self)
        spark.streams.addListener(self._listener)

    def add(self, query: "StreamingQuery") -> None:
        self.queries.append(query)

    @property
    def is_active(self) -> bool:
        """Whether one of them runs."""
        return any(query.isActive for query in self.queries)

    def wait(self, seconds: float | None) -> None:
        """Wait for all; raise what one of them failed with, or Ctrl-C, after the others were stopped."""
        with interrupts() as found:
            try:
                self._wait(None if seconds is None else time.monotonic() + seconds, found)
            except BaseException:
                self.stop(finish=False)
                raise

    def _wait(self, deadline: float | None, found: Interrupts) -> None:
        while waiting := [query for query in self.queries if query.isActive]:
            if found.noted:
                self.stop(finish=True)
                raise KeyboardInterrupt
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                return
            self._raise_failure()
            pause = _PAUSE_SECONDS_MAX if left is None else min(left, _PAUSE_SECONDS_MAX)
            waiting[0].awaitTermination(max(pause, _PAUSE_SECONDS_MIN))  # type: ignore[arg-type]  # takes any number
        self._raise_failure()
        self._close()
        if found.noted:
            raise KeyboardInterrupt

    def stop(self, *, finish: bool) -> None:
        """Stop all; with `finish`, each at the end of its batch, if that comes within a minute."""
        try:
            for query in self.queries:
                stop_behind_batch(query, seconds_max=FINISH_SECONDS_MAX if finish else 0.0)
        finally:
            self._close()

    def counts(self) -> dict[str, Counts]:
        """Return the sums, with what Spark has reported late."""
        for query in self.queries:
            for progress in query.recentProgress:
                self.take(progress)
        return self._accounts.operators()

    def take(self, progress: Any) -> None:
        """Count a batch; Spark reports it both in an event and when it is asked."""
        if any(str(progress["runId"]) == str(query.runId) for query in self.queries):
            self._accounts.take(str(progress["runId"]), int(progress["batchId"]), progress["observedMetrics"] or {})

    def _raise_failure(self) -> None:
        for query in self.queries:
            if not query.isActive and (failure := query.exception()) is not None:
                raise failure

    def _close(self) -> None:
        if not self.is_active:
            self._spark.streams.removeListener(self._listener)


class _Listener(QueryListener):
    """Notes batches before Spark forgets them: it remembers a hundred."""

    def __init__(self, running: Running) -> None:
        self._running = running

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802 - Spark's name
        pass

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802 - Spark's name
        self._running.take(event.progress)

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802 - Spark's name
        pass
