"""Who is writing: what Spark tells a task about itself. The driver's side of a sink learns nothing of that."""

import re
from typing import Final, NamedTuple

from pyspark import TaskContext

from riverlog.spark.refusal import SinkRefused

_ID: Final = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_PARTITIONS: Final = 2**20
_WRITES: Final = 2**11
"""Tasks are numbered with 31 bits. Writes of one batch are numbered one behind the other, or nearly so."""


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
    write: int = 0
    """Which write of the batch, where a query's foreachBatch may have several: no two have the same."""

    @property
    def task(self) -> int:
        """Number the task within its batch, also where several writes have a task for the same partition."""
        return (self.write % _WRITES) * _PARTITIONS + self.partition % _PARTITIONS


def this_attempt() -> Attempt:
    """Find who is running this code, which must be a task."""
    context = TaskContext.get()
    assert context is not None, "rows are written in tasks"
    return Attempt(context.partitionId(), context.taskAttemptId(), context.attemptNumber())


def this_stream_attempt(*, is_one_of_several: bool = False) -> StreamAttempt:
    """Find who is running this code, which must be a task of a streaming query, and perhaps one write of its batch."""
    context = TaskContext.get()
    assert context is not None, "rows are written in tasks"
    query = context.getLocalProperty("sql.streaming.queryId")
    batch = context.getLocalProperty("streaming.sql.batchId")
    if query is None or batch is None:
        raise SinkRefused(
            "Spark does not tell this task which batch of which query it belongs to; write with Spark 4.2+, and with "
            "the option ofStream only in foreachBatch"
        )
    run = run_of(
        context.getLocalProperty("spark.jobGroup.id"),
        context.getLocalProperty("spark.job.description"),
        is_interrupting=context.getLocalProperty("spark.job.interruptOnCancel") == "true",
        query=query,
        batch=batch,
    )
    if run is None:
        raise SinkRefused(
            f"batch {batch} is not written: the program has replaced the job group of this query, by which its run is "
            "known; call setJobGroup() in another thread than that of foreachBatch, or setJobDescription() instead"
        )
    write = int(context.getLocalProperty("spark.sql.execution.id") or 0) if is_one_of_several else 0
    return StreamAttempt(*this_attempt(), query, run, int(batch), write)


def run_of(group: str | None, description: str | None, *, is_interrupting: bool, query: str, batch: str) -> str | None:
    """Find the run's id: it names the job group, and stands in the description, unless a program has set these.

    A program may name its groups by ids as Spark does; but the groups of queries interrupt tasks that are cancelled.
    """
    if is_interrupting and re.fullmatch(_ID, group or ""):
        return group
    found = re.search(
        rf"^id = {re.escape(query)}\nrunId = ({_ID})\nbatch = {re.escape(batch)}$", description or "", re.M
    )
    return None if found is None else found[1]
