"""Spark's side of a sink without Spark: writers are pickled, tasks have contexts, messages come back pickled."""

import io
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from pyspark import TaskContext, cloudpickle
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from riverlog.spark.sink.writers import batch_writer, stream_writer

SCHEMA = StructType([StructField("key", StringType()), StructField("value", BinaryType())])


def travelled(what: Any) -> Any:
    """Return what arrives in another process."""
    return cloudpickle.loads(cloudpickle.dumps(what))


NAMES = {"key": "key", "value": "value"}
"""What the columns of records are called in these frames."""


def frames(*values: bytes) -> list[pa.RecordBatch]:
    """Make a frame of two columns, with the values as keys as well."""
    if not values:
        return []
    keys = pa.array([value.decode() for value in values], pa.string())
    return [pa.record_batch({"key": keys, "value": pa.array(values, pa.binary())})]


class StreamJob:
    """A streaming query with one run, whose batches are written as Spark writes them."""

    def __init__(self, options: dict[str, str], *, query: str, run: str) -> None:
        self._options = options
        self._query = query
        self._run = run
        self._attempts = 0

    def plan(self) -> Any:
        """Return the writer of a batch as tasks get it."""
        return travelled(stream_writer(self._options, SCHEMA, overwrite=False))

    def task(self, writer: Any, batch: int, partition: int, *values: bytes) -> Any:
        """Run one attempt of a task; give its message."""
        self._attempts += 1
        properties = {
            "sql.streaming.queryId": self._query,
            "streaming.sql.batchId": str(batch),
            "spark.job.description": f"orders\nid = {self._query}\nrunId = {self._run}\nbatch = {batch}",
        }
        with task_context(partition, self._attempts, properties):
            return travelled(travelled(writer).write(iter(frames(*values))))

    def commit(self, messages: Iterable[Any], batch: int) -> None:
        stream_writer(self._options, SCHEMA, overwrite=False).commit(list(messages), batch)

    def abort(self, messages: Iterable[Any], batch: int) -> None:
        stream_writer(self._options, SCHEMA, overwrite=False).abort(list(messages), batch)

    def batch(self, number: int, *parts: list[bytes]) -> None:
        """Write and commit a batch, a task for each part."""
        writer = self.plan()
        messages = [self.task(writer, number, partition, *part) for partition, part in enumerate(parts)]
        self.commit(messages, number)


def write_job(options: dict[str, str], *parts: list[bytes], fails_at: int | None = None) -> None:
    """Write a DataFrame, a task for each part; one of them may fail behind its rows."""
    writer = travelled(batch_writer(options, SCHEMA, overwrite=False))
    messages: list[Any] = []
    for partition, part in enumerate(parts):
        rows: Iterable[pa.RecordBatch] = frames(*part)
        with task_context(partition, 100 + partition, {}):
            try:
                rows = _failing(rows) if partition == fails_at else iter(rows)
                messages.append(travelled(travelled(writer).write(rows)))
            except io.UnsupportedOperation:
                travelled(writer).abort([*messages, None])
                return
    travelled(writer).commit(messages)


def _failing(rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from rows
    raise io.UnsupportedOperation("this task fails")


@contextmanager
def task_context(partition: int, attempt: int, properties: dict[str, str], *, retry: int = 0) -> Iterator[None]:
    """Make this thread a task's."""
    context = TaskContext._getOrCreate()
    context._partitionId, context._taskAttemptId, context._attemptNumber = partition, attempt, retry
    context._localProperties = properties
    try:
        yield
    finally:
        TaskContext._setTaskContext(None)
