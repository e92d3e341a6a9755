"""A query that names no checkpoint is written as one whose checkpoint lies in its session's location."""

import pytest

from riverlog.spark.refusal import SinkRefused
from riverlog.spark.sink import commit_choice
from riverlog.spark.sink.commit_strategies import CheckpointTransaction, TaskCommitMessage
from riverlog.spark.sink.options import read_options
from riverlog.spark.sink.session_checkpoint import SessionCheckpoint
from riverlog.spark.worker.attempt import StreamAttempt
from tests.support.spark_jobs import task_context

ROOT = "spark.sql.streaming.checkpointLocation"
ATTEMPT = StreamAttempt(0, 0, 0, "q", "r", 7)
OPTIONS = read_options({"topic": "t"}, is_stream=True)


def test_the_checkpoint_of_the_session_is_that_of_the_query(monkeypatch: pytest.MonkeyPatch) -> None:
    found = CheckpointTransaction("webhdfs://node:9870/pipelines/the orders")
    monkeypatch.setattr(commit_choice, "decides", lambda location, _: location == found.location)
    monkeypatch.setattr(
        CheckpointTransaction,
        "write",
        lambda strategy, _rows, _options, attempt: TaskCommitMessage(strategy, attempt=attempt),
    )
    with task_context(0, 0, {ROOT: "webhdfs://node:9870/pipelines"}):
        assert SessionCheckpoint("the orders").write_nothing(ATTEMPT) == TaskCommitMessage(found, attempt=ATTEMPT)
        assert SessionCheckpoint("the orders").write(iter([]), OPTIONS, ATTEMPT).strategy == found
        with pytest.raises(SinkRefused, match="not on the cluster that is written to"):
            SessionCheckpoint("others").write(iter([]), OPTIONS, ATTEMPT)


@pytest.mark.parametrize(
    ("properties", "location"), [({}, r"\.\.\."), ({ROOT: "/checkpoints/"}, "/checkpoints/orders")]
)
def test_a_name_alone_is_refused(properties: dict[str, str], location: str) -> None:
    with task_context(0, 0, properties), pytest.raises(SinkRefused, match=f'"checkpointLocation", "{location}"'):
        SessionCheckpoint("orders").write_nothing(ATTEMPT)
