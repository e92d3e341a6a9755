"""A query that names no checkpoint is written as one whose checkpoint lies in its session's location."""

import pytest

from riverlog.spark.refusal import SinkRefused
from riverlog.spark.sink import commit_choice
from riverlog.spark.sink.commit_strategies import InCheckpoint, Written
from riverlog.spark.sink.options import read_options
from riverlog.spark.sink.session_checkpoint import InSession
from riverlog.spark.worker.attempt import StreamAttempt
from tests.support.spark_jobs import task_context

ROOT = "spark.sql.streaming.checkpointLocation"
ATTEMPT = StreamAttempt(0, 0, 0, "q", "r", 7)
OPTIONS = read_options({"topic": "t"}, is_stream=True)


def test_the_checkpoint_of_the_session_is_that_of_the_query(monkeypatch: pytest.MonkeyPatch) -> None:
    found = InCheckpoint("webhdfs://node:9870/pipelines/the orders")
    monkeypatch.setattr(commit_choice, "decides", lambda location, _: location == found.location)
    monkeypatch.setattr(InCheckpoint, "write", lambda way, _rows, _options, attempt: Written(way, attempt=attempt))
    with task_context(0, 0, {ROOT: "webhdfs://node:9870/pipelines"}):
        assert InSession("the orders").write_nothing(ATTEMPT) == Written(found, attempt=ATTEMPT)
        assert InSession("the orders").write(iter([]), OPTIONS, ATTEMPT).way == found
        with pytest.raises(SinkRefused, match="not on the cluster that is written to"):
            InSession("others").write(iter([]), OPTIONS, ATTEMPT)


@pytest.mark.parametrize(
    ("properties", "location"), [({}, r"\.\.\."), ({ROOT: "/checkpoints/"}, "/checkpoints/orders")]
)
def test_a_name_alone_is_refused(properties: dict[str, str], location: str) -> None:
    with task_context(0, 0, properties), pytest.raises(SinkRefused, match=f'"checkpointLocation", "{location}"'):
        InSession("orders").write_nothing(ATTEMPT)
