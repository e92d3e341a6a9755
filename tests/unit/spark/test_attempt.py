"""What Spark tells a task about itself."""

import pytest

from riverlog.spark.attempt import Attempt, StreamAttempt, run_of, this_attempt, this_stream_attempt
from tests.support.spark_jobs import task_context

RUN = "5b3c86a6-8f5b-4b2e-9f0e-0c8f3c1d2e4f"
DESCRIPTION = f"orders\nid = 4a3c86a6-8f5b-4b2e-9f0e-0c8f3c1d2e4f\nrunId = {RUN}\nbatch = 7"


def test_a_task_of_a_job() -> None:
    with task_context(3, 11, {}, retry=2):
        assert this_attempt() == Attempt(partition=3, number=11, retry=2)


def test_a_task_of_a_query() -> None:
    properties = {
        "sql.streaming.queryId": "query",
        "streaming.sql.batchId": "7",
        "spark.job.description": DESCRIPTION,
    }
    with task_context(3, 11, properties):
        assert this_stream_attempt() == StreamAttempt(3, 11, 0, "query", RUN, 7)


def test_a_task_that_is_told_nothing_says_so() -> None:
    with task_context(3, 11, {}), pytest.raises(RuntimeError, match="which batch of which query"):
        this_stream_attempt()


def test_the_run_is_found_in_any_description() -> None:
    assert run_of(DESCRIPTION) == RUN
    assert run_of("my job") is None
    assert run_of(None) is None
