"""Who is writing: what Spark tells a task about itself. The driver's side of a sink is told nothing of that."""

import re
from typing import Final, NamedTuple

from pyspark import TaskContext

_RUN: Final = re.compile(r"runId = ([0-9a-fA-F-]{36})")


class Attempt(NamedTuple):
    """One attempt of a task."""

    partition: int
    number: int
    """No two attempts of an application have the same."""
    retry: int
    """How many attempts of this task were made before; those that run at once have different numbers."""


class StreamAttempt(NamedTuple):
    """One attempt of a task of a streaming query."""

    partition: int
    number: int
    retry: int
    query: str
    """Stays with the checkpoint."""
    run: str
    """New at every start of the query."""
    batch: int


def this_attempt() -> Attempt:
    """Tell who is running this code, which must be a task."""
    context = TaskContext.get()
    assert context is not None, "rows are written in tasks"
    return Attempt(context.partitionId(), context.taskAttemptId(), context.attemptNumber())


def this_stream_attempt() -> StreamAttempt:
    """Tell who is running this code, which must be a task of a streaming query."""
    context = TaskContext.get()
    assert context is not None, "rows are written in tasks"
    query = context.getLocalProperty("sql.streaming.queryId")
    batch = context.getLocalProperty("streaming.sql.batchId")
    run = run_of(context.getLocalProperty("spark.job.description"))
    if query is None or batch is None or run is None:
        raise RuntimeError(
            "Spark does not tell this task which batch of which query it belongs to; write with Spark 4.2+"
        )
    return StreamAttempt(*this_attempt(), query, run, int(batch))


def run_of(description: str | None) -> str | None:
    """Find the run's id in what Spark shows of a batch in its user interface."""
    found = _RUN.search(description or "")
    return None if found is None else found[1]
