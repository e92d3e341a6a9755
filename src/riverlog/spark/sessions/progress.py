"""Reports queries to the nodes that hold their checkpoints: `riverlog pipelines list` shows them.

    riverlog.spark.watch(spark)

Sessions of `riverlog.spark.session` are watched from the start. A query whose checkpoint lies elsewhere is not
reported, and a node that is away disturbs none. A node may answer that a query is to stop (`riverlog pipelines stop`):
it ends its batch first. With Spark Connect the server knows where checkpoints are and the client does not: there only
queries in the session's default location are reported, and the session is to be stopped at last.
"""

import atexit
import math
import threading
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final

from riverlog.checkpoints.files.paths import check_path, parse_location
from riverlog.checkpoints.files.refusals import RequestRefused
from riverlog.checkpoints.remote import RemoteStore
from riverlog.spark.sessions.graceful_stop import stop_behind_batch
from riverlog.spark.sessions.query_listener import QueryListener
from riverlog.spark.sessions.reporter import Reporter, ReportReply

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
    )

OBSERVED: Final = "riverlog:"
"""Observed metrics whose names begin with this count rows in front of windows and joins, and how many are `late`."""

_ANSWER_SECONDS_MAX: Final = 3.0
_LAST_EVENTS_MS_MAX: Final = 2_000
_PLAN: Final = "\n=== Streaming Query ==="
"""Where the plan of the query begins in Spark's message about a failure."""


def watch(spark: "SparkSession") -> "Watcher":
    """Report the progress of all queries that a Spark session starts from here on; removeListener(…) takes it back."""
    watcher = Watcher(spark)
    spark.streams.addListener(watcher)
    atexit.register(watcher.detach)
    return watcher


class Watcher(QueryListener):
    """Listens to queries, and reports those whose checkpoints lie on a node."""

    def __init__(self, spark: "SparkSession") -> None:
        self._session = spark
        self._reporter = Reporter(report, is_active=self._is_active, stop=self._stop)

    def close(self) -> None:
        """Report the end of what has not ended yet."""
        self._reporter.close()

    def detach(self) -> None:
        """Wait for the last events, remove the listener, and close: Java complains of a program that ends meanwhile."""
        with suppress(Exception):  # Spark may be gone already
            if hasattr(self._session, "_jsparkSession"):
                self._session.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(_LAST_EVENTS_MS_MAX)
            self._session.streams.removeListener(self)
        self.close()

    def onQueryStarted(self, event: "QueryStartedEvent") -> None:  # noqa: N802 - Spark's name
        """Find out where the checkpoint lies."""
        location = self._location(str(event.id), event.name)
        if location is not None:
            facts = {"query": str(event.id), "began_ms": _ms(event.timestamp) or _now_ms(), "secret": token_hex(16)}
            self._reporter.begin(str(event.runId), location, facts)

    def onQueryProgress(self, event: "QueryProgressEvent") -> None:  # noqa: N802 - Spark's name
        """Report a batch."""
        run = str(event.progress.runId)
        before = self._reporter.facts(run)
        if before:
            facts = batch_facts(event.progress)
            facts["late_rows"] = before.get("late_rows", 0) + facts["late_rows"]
            self._reporter.update(run, facts)

    def onQueryIdle(self, event: "QueryIdleEvent") -> None:  # noqa: N802 - Spark's name
        """Report that nothing comes in."""
        self._reporter.update(str(event.runId), {"rows": 0, "rows_per_second": 0.0})

    def onQueryTerminated(self, event: "QueryTerminatedEvent") -> None:  # noqa: N802 - Spark's name
        """Report the end, and why."""
        if event.exception is None:
            self._reporter.end(str(event.runId), {"state": "stopped"})
        else:
            failed = {"state": "failed", "error": cause_of(event.exception), "error_ms": _now_ms()}
            self._reporter.end(str(event.runId), failed)

    def _location(self, query: str, name: str | None) -> str | None:
        """Return the location of a query's checkpoint, if that is on a node."""
        try:
            if hasattr(self._session, "_jsparkSession"):
                streams = self._session.streams._jsqm
                location = str(streams.get(query).streamingQuery().resolvedCheckpointRoot())
            else:
                root = self._session.conf.get("spark.sql.streaming.checkpointLocation", None)
                location = "" if root is None or name is None else f"{root}/{name}"
        except Exception:
            return None  # whatever Spark's inside answers, the query goes on
        return location if location.startswith("webhdfs://") else None

    def _is_active(self, query: str) -> bool:
        try:
            found = self._session.streams.get(query)
            return found is not None and found.isActive
        except Exception:
            return False  # the session is gone, and the query with it

    def _stop(self, query: str) -> None:
        """Stop a query behind its batch, in a thread: that may take a while."""
        found = self._session.streams.get(query)
        if found is not None:
            threading.Thread(target=stop_behind_batch, args=(found,), name="riverlog-stop", daemon=True).start()


def report(location: str, facts: dict[str, Any]) -> ReportReply:
    """Send a report to the node; it counts as delivered where the node has it, or never will."""
    parsed = parse_location(location)
    try:
        with RemoteStore(parsed.address, seconds_max=_ANSWER_SECONDS_MAX) as store:
            is_to_stop = store.report(check_path(parsed.path), facts)
    except RequestRefused as refusal:
        return ReportReply.NOT_DELIVERED if refusal.is_for_now or facts["state"] == "running" else ReportReply.DELIVERED
    except OSError:
        return ReportReply.NOT_DELIVERED
    return ReportReply.STOP if is_to_stop else ReportReply.DELIVERED


def batch_facts(progress: Any) -> dict[str, Any]:
    """Return what a report says of a batch, out of Spark's own account of it."""
    operators = list(progress.stateOperators)
    facts: dict[str, Any] = {
        "batch": progress.batchId,
        "batch_at_ms": _ms(progress.timestamp),
        "batch_ms": _number(progress.durationMs.get("triggerExecution", progress.batchDuration)),
        "rows": _number(progress.numInputRows),
        "rows_per_second": _rate(progress.processedRowsPerSecond),
        "output_rows": _number(progress.sink.numOutputRows),
        "watermark_ms": _watermark(progress.eventTime),
        "late_rows": _late_rows(progress, operators),
    }
    if operators:
        facts |= {
            "state_rows": _sum(each.numRowsTotal for each in operators),
            "state_memory_bytes": _sum(each.memoryUsedBytes for each in operators),
            "state_commit_ms": _sum(each.commitTimeMs for each in operators),
        }
    return facts


def cause_of(exception: str) -> str:
    """Return the first sentence of Spark's message about a failure: plan and stack are in the driver's log."""
    said = exception.partition(_PLAN)[0].strip()
    lines = [line for line in said.splitlines() if line.strip()]
    stack = next((index for index, line in enumerate(lines) if line.lstrip().startswith("at ")), len(lines))
    return "\n".join(lines[:stack]) or "the query failed"


def _watermark(event_time: Mapping[str, str]) -> int | None:
    watermark_ms = _ms(event_time.get("watermark"))
    return watermark_ms or None  # 1970 is Spark's word for none


def _ms(text: str | None) -> int | None:
    """Read a time as Spark writes it: 2026-01-31T12:00:00.000Z."""
    if not text:
        return None
    try:
        return max(0, round(datetime.fromisoformat(text).timestamp() * 1000))
    except (ValueError, OverflowError):
        return None


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and value >= 0 else None


def _rate(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) and value >= 0 else None


def _late_rows(progress: Any, operators: list[Any]) -> int:
    """Count rows that came too late: those that Spark dropped, and those that a pipeline took out before it could."""
    observed = progress.observedMetrics or {}
    taken_out = (row.asDict().get("late") for name, row in observed.items() if name.startswith(OBSERVED))
    return (_sum(each.numRowsDroppedByWatermark for each in operators) or 0) + (_sum(taken_out) or 0)


def _sum(values: Iterable[object]) -> int | None:
    known = [each for each in map(_number, values) if each is not None]
    return sum(known) if known else None


def _now_ms() -> int:
    return int(time.time() * 1000)
