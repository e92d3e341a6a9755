"""The watermark by which Spark will find rows late in a batch, as a column in front of the operator that finds them
late.

Spark judges the rows of batch N by the watermark of batch N-1, and keeps that in its checkpoint, in `offsets/N-1`,
before batch N begins. So one small task of each batch reads it there, and the plan has it as a scalar: the same value
when the batch is run again, on whatever machine.
"""

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from riverlog.checkpoints.files.paths import parse_location
from riverlog.checkpoints.files.refusals import RequestRefused
from riverlog.checkpoints.pipelines.spark_logs import watermark_ms
from riverlog.checkpoints.remote import RemoteStore

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, SparkSession

_SECONDS_MAX: Final = 30.0
_PAUSE_SECONDS: Final = 0.2


class NoWatermark(RuntimeError):
    """A checkpoint does not say what the watermark was."""


def judged(spark: "SparkSession", checkpoint: str) -> "Column":
    """Return the watermark by which rows are late in the batch that runs, `at`, and the number of that `batch`."""
    from pyspark.sql import functions as sql

    read = spark.range(0, 1, 1, 1).mapInArrow(_WatermarkTask(checkpoint), "late_ms long, batch long")
    # As fields of a struct: a plain number would be written into the code that Spark compiles, anew for each batch.
    return read.select(sql.struct(sql.timestamp_millis("late_ms").alias("at"), "batch")).scalar()


def late_watermark_ms(checkpoint: str, batch: int) -> int:
    """Read the watermark by which rows of this batch are late: that of the batch before, and for the first one 1970."""
    if batch == 0:
        return 0
    planned = _read(checkpoint, f"offsets/{batch - 1}")
    if (found := watermark_ms(planned)) is None:
        raise NoWatermark(f"offsets/{batch - 1} of the checkpoint {checkpoint} names no watermark; this is not Spark's")
    return found


class _WatermarkTask:
    """The task that reads the watermark."""

    def __init__(self, checkpoint: str) -> None:
        self._checkpoint = checkpoint

    def __call__(self, batches: Iterator["pa.RecordBatch"]) -> Iterator["pa.RecordBatch"]:
        import pyarrow as pa
        from pyspark import TaskContext

        for _ in batches:
            pass
        task = TaskContext.get()
        batch = None if task is None else task.getLocalProperty("streaming.sql.batchId")
        if batch is None:
            raise NoWatermark("late rows are found in a streaming query; this one is not: start it with writeStream")
        found = late_watermark_ms(self._checkpoint, int(batch))
        columns = [pa.array([number], pa.int64()) for number in (found, int(batch))]
        yield pa.RecordBatch.from_arrays(columns, names=["late_ms", "batch"])


def _read(checkpoint: str, name: str) -> bytes:
    parsed = parse_location(checkpoint)
    if parsed.scheme == "webhdfs":
        return _from_store(parsed.address, f"{parsed.path.rstrip('/')}/{name}")
    if parsed.scheme in ("", "file"):
        with open(f"{parsed.path}/{name}", "rb") as file:
            return file.read()
    return _from_elsewhere(checkpoint, name)


def _from_store(address: str, path: str) -> bytes:
    """Read from a node, which may be restarting."""
    deadline = time.monotonic() + _SECONDS_MAX
    while True:
        try:
            with RemoteStore(address) as store:
                return b"".join(store.read(path))
        except (OSError, RequestRefused) as problem:
            if time.monotonic() > deadline or (isinstance(problem, RequestRefused) and not problem.is_for_now):
                raise
            time.sleep(_PAUSE_SECONDS)


def _from_elsewhere(checkpoint: str, name: str) -> bytes:
    """Read from a file system that Arrow knows: s3, gs, abfs, hdfs."""
    import pyarrow as pa
    from pyarrow import fs

    try:
        system, path = fs.FileSystem.from_uri(checkpoint.replace("s3a://", "s3://", 1))
    except pa.ArrowInvalid as problem:
        raise NoWatermark(
            f"the checkpoint {checkpoint} cannot be read for its watermark ({problem}); keep it on a node: webhdfs://host:9870/…"
        ) from None
    with system.open_input_stream(f"{path.rstrip('/')}/{name}") as file:
        content: Any = file.read()
    return bytes(content)
