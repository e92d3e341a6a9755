"""Queries that name no checkpoint: theirs lies where their session keeps checkpoints, under their names.

Whoever plans a write does not get the session's settings, and tasks do. So the checkpoint is found in the task, and
the batch is written as that of any query whose checkpoint is on the node. A name alone is not enough to write exactly
once: another application may have a query of the same name, and the two would fence each other.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark import TaskContext

from riverlog.spark.refusal import SinkRefused
from riverlog.spark.sink.commit_strategies import CheckpointTransaction, TaskCommitMessage
from riverlog.spark.sink.options import AT_LEAST_ONCE, SinkOptions
from riverlog.spark.worker.attempt import Attempt, StreamAttempt

if TYPE_CHECKING:
    import pyarrow as pa

_ROOT: Final = "spark.sql.streaming.checkpointLocation"


@dataclass(frozen=True, slots=True)
class SessionCheckpoint:
    """The strategy of a query that has a name and no checkpoint: its tasks find another, which their messages carry."""

    query_name: str

    def write(
        self, rows: "Iterator[pa.RecordBatch]", options: SinkOptions, attempt: Attempt | StreamAttempt
    ) -> TaskCommitMessage:
        """Find the checkpoint, and write as with it."""
        from riverlog.spark.sink.commit_choice import decides

        strategy = self._found()
        if not decides(strategy.location, options):
            raise SinkRefused(
                f"the checkpoint {strategy.location} is not on the cluster that is written to, and the query names "
                f'none: set .option("checkpointLocation", "{strategy.location}")'
            )
        return strategy.write(rows, options, attempt)

    def write_nothing(self, attempt: Attempt | StreamAttempt) -> TaskCommitMessage:
        """Find the checkpoint; its store learns of the batch when it is committed."""
        return self._found().write_nothing(attempt)

    def commit(self, messages: Sequence[TaskCommitMessage], options: SinkOptions) -> None:
        """Leave it to the strategy that the tasks have found, which is in their messages."""
        raise AssertionError("messages carry another strategy")

    def abort(self, messages: Sequence[TaskCommitMessage], options: SinkOptions) -> None:
        """Leave it to the strategy that the tasks have found, which is in their messages."""
        raise AssertionError("messages carry another strategy")

    def _found(self) -> CheckpointTransaction:
        context = TaskContext.get()
        assert context is not None, "rows are written in tasks"
        root = (context.getLocalProperty(_ROOT) or "").rstrip("/")
        if root.startswith("webhdfs://"):
            return CheckpointTransaction(f"{root}/{self.query_name}")
        there = f"{root}/{self.query_name}" if root else "..."
        raise SinkRefused(
            f"the query {self.query_name!r} names no checkpoint, and another application may have one of this name, "
            f'so it cannot be written exactly once: set .option("checkpointLocation", "{there}"), keep the checkpoints '
            f"of the session on a node (riverlog.spark.session(checkpoints=...)), or set delivery={AT_LEAST_ONCE}"
        )
