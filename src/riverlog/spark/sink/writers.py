"""The sink: what Spark calls for `df.write.format("riverlog")` and `df.writeStream.format("riverlog")`.

Spark makes a writer in the driver, pickles it for the tasks of one job, and for a stream makes another one to commit.
So a writer decides how it commits when it is about to leave the driver, and a message says so to the one that commits.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pickle import PickleError
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from riverlog.spark.options import Options
from riverlog.spark.plain_errors import plainly
from riverlog.spark.refusal import SinkRefused
from riverlog.spark.sink.columns import record_columns, renamed
from riverlog.spark.sink.commit_strategies import CommitStrategy, TaskCommitMessage
from riverlog.spark.sink.options import OF_STREAM, SinkOptions, read_options
from riverlog.spark.worker.attempt import Attempt, StreamAttempt, this_attempt, this_stream_attempt
from riverlog.spark.worker.disconnection import SparkDisconnected, all_rows, leave
from riverlog.spark.worker.tuning import tune

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType


def batch_writer(given: Mapping[str, str], schema: "StructType", *, overwrite: bool) -> DataSourceArrowWriter:
    """Write a DataFrame, all of it or nothing; of one that is a batch of a query, as that query's sink would."""
    if overwrite:
        raise ValueError('records are never replaced, so there is no mode("overwrite"); write with mode("append")')
    of_stream = Options(given).flag(OF_STREAM, default=False)
    options = read_options(given, is_stream=of_stream)
    names = record_columns(schema, options.topic)
    return StreamBatchSink(options, names) if of_stream else BatchSink(options, names)


def stream_writer(given: Mapping[str, str], schema: "StructType", *, overwrite: bool) -> DataSourceStreamArrowWriter:
    """Write the batches of a query. What `overwrite` stands for, complete output, is appended, as Spark's sink does."""
    options = read_options(given, is_stream=True)
    return StreamSink(options, record_columns(schema, options.topic))


class Unplanned(SinkRefused, PickleError):
    """The sink cannot be planned. Of what pickling raises, Spark passes on only this kind with its message."""


class _SinkWriter:
    """A writer that chooses its strategy once, when it is pickled for its tasks."""

    _is_stream: bool
    _is_one_of_several = False
    """Whether a batch of a query may be written by several of these."""

    def __init__(self, options: SinkOptions, names: dict[str, str]) -> None:
        self._options = options
        self._names = names
        self._strategy: CommitStrategy | None = None

    @plainly
    def __getstate__(self) -> dict[str, Any]:
        if self._strategy is None:
            from riverlog.spark.sink.commit_choice import choose_strategy

            try:
                self._strategy = choose_strategy(
                    self._options, is_stream=self._is_stream, is_one_of_several=self._is_one_of_several
                )
            except SinkRefused as refused:
                raise Unplanned(str(refused)) from None
        return self.__dict__

    def _write(self, frames: "Iterator[pa.RecordBatch]", attempt: Attempt | StreamAttempt) -> TaskCommitMessage:
        """Write rows if there are any: of the many tasks of a shuffle, most may have none in a small batch."""
        strategy, frames = self._chosen(), (renamed(frame, self._names) for frame in all_rows(frames))
        try:
            first = next((frame for frame in frames if frame.num_rows), None)
            if first is None:
                written = strategy.write_nothing(attempt)
            else:
                written = strategy.write(chain((first,), frames), self._options, attempt)
        except SparkDisconnected:
            leave()
        tune()
        return written

    def _chosen(self) -> CommitStrategy:
        assert self._strategy is not None, "tasks get a writer that was pickled"
        return self._strategy


class BatchSink(_SinkWriter, DataSourceArrowWriter):
    """Writes a DataFrame. The writer that commits is a copy of the one that the tasks have."""

    _is_stream = False

    @plainly
    def write(self, iterator: "Iterator[pa.RecordBatch]") -> WriterCommitMessage:
        """Write a task's rows, in the task."""
        return self._write(iterator, self._attempt())

    @plainly
    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Commit what the tasks wrote, in the driver."""
        if written := _written(messages):
            written[0].strategy.commit(written, self._options)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Take back what the tasks wrote, in the driver."""
        self._chosen().abort(_written(messages), self._options)

    def _attempt(self) -> Attempt | StreamAttempt:
        return this_attempt()


class StreamSink(_SinkWriter, DataSourceStreamArrowWriter):
    """Writes the batches of a query. The writer that commits is a new one, which knows what its messages say."""

    _is_stream = True

    @plainly
    def write(self, iterator: "Iterator[pa.RecordBatch]") -> WriterCommitMessage:
        """Write a task's rows, in the task."""
        return self._write(iterator, this_stream_attempt())

    @plainly
    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Commit what the tasks wrote, in the driver. A batch without tasks has nothing to commit."""
        if written := _written(messages):
            written[0].strategy.commit(written, self._options)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Take back what the tasks wrote, in the driver; where none got that far, the next start or time does."""
        if written := _written(messages):
            written[0].strategy.abort(written, self._options)


class StreamBatchSink(BatchSink):
    """Writes a batch of a query out of foreachBatch, perhaps as one of several writes of that batch."""

    _is_stream = True
    _is_one_of_several = True

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Take back what the tasks wrote, in the driver."""
        if written := _written(messages):
            written[0].strategy.abort(written, self._options)

    def _attempt(self) -> StreamAttempt:
        return this_stream_attempt(is_one_of_several=True)


def _written(messages: Sequence[WriterCommitMessage | None]) -> list[TaskCommitMessage]:
    return [each for each in messages if isinstance(each, TaskCommitMessage)]
