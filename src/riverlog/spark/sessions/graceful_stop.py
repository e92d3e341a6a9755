"""Stops a query of Spark behind the batch that it is at, so that the next run has nothing to do twice.

Spark itself stops in the middle of a batch, which is then run again. Nothing is lost or doubled either way.
"""

import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

FINISH_SECONDS_MAX: Final = 60.0
"""A batch that takes longer is not waited for."""
_LOOK_SECONDS: Final = 0.05


def stop_behind_batch(query: "StreamingQuery", *, seconds_max: float = FINISH_SECONDS_MAX) -> None:
    """Wait until no batch runs, or the one that does has ended; then stop the query."""
    deadline = time.monotonic() + seconds_max
    batch = _last_batch(query)
    while _is_busy(query) and _last_batch(query) == batch and time.monotonic() < deadline:
        time.sleep(_LOOK_SECONDS)
    query.stop()


def _is_busy(query: "StreamingQuery") -> bool:
    if not query.isActive:
        return False
    status = query.status
    return bool(status["isTriggerActive"] and status["isDataAvailable"])


def _last_batch(query: "StreamingQuery") -> int:
    progress = query.lastProgress
    return -1 if progress is None else int(progress["batchId"])
