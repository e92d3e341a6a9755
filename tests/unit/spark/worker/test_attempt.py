"""What Spark tells a task about itself."""

import pytest

from riverlog.spark.refusal import SinkRefused
from riverlog.spark.worker.attempt import Attempt, StreamAttempt, run_of, this_attempt, this_stream_attempt
from tests.support.spark_jobs import task_context

RUN = "5b3c86a6-8f5b-4b2e-9f0e-0c8f3c1d2e4f"
QUERY = "4a3c86a6-8f5b-4b2e-9f0e-0c8f3c1d2e4f"
OTHER = "6c3c86a6-8f5b-4b2e-9f0e-0c8f3c1d2e4f"
DESCRIPTION = f"orders\nid = {QUERY}\nrunId = {RUN}\nbatch = 7"


def test_a_task_of_a_job() -> None:
    with task_context(3, 11, {}, retry=2):
        assert this_attempt() == Attempt(partition=3, number=11, retry=2)


def test_a_task_of_a_query() -> None:
    properties = {
        "sql.streaming.queryId": "query",
        "streaming.sql.batchId": "7",
        "spark.jobGroup.id": RUN,
        "spark.job.interruptOnCancel": "true",
        "spark.job.description": "what a program says of its job",
        "spark.sql.execution.id": "42",
    }
    with task_context(3, 11, properties):
        assert this_stream_attempt() == StreamAttempt(3, 11, 0, "query", RUN, 7)
        assert this_stream_attempt(is_one_of_several=True) == StreamAttempt(3, 11, 0, "query", RUN, 7, write=42)


def test_a_task_whose_run_the_program_has_hidden_says_so() -> None:
    properties = {"sql.streaming.queryId": "query", "streaming.sql.batchId": "7", "spark.jobGroup.id": "mine"}
    with task_context(3, 11, properties), pytest.raises(SinkRefused, match=r"batch 7 is not written.*setJobGroup"):
        this_stream_attempt()


def test_tasks_of_several_writes_have_different_numbers() -> None:
    attempts = [StreamAttempt(partition, 0, 0, "q", "r", 7, write) for partition in (0, 1_023) for write in (0, 8, 9)]
    assert len({each.task for each in attempts}) == len(attempts)
    assert StreamAttempt(2**31 - 1, 0, 0, "q", "r", 7, 2**62).task < 2**31


def test_a_task_that_is_told_nothing_says_so() -> None:
    with task_context(3, 11, {}), pytest.raises(RuntimeError, match="which batch of which query"):
        this_stream_attempt()


@pytest.mark.parametrize(
    ("group", "description", "is_interrupting", "run"),
    [
        (RUN, "my job", True, RUN),
        (RUN, DESCRIPTION, True, RUN),
        ("my group", DESCRIPTION, False, RUN),
        (OTHER, DESCRIPTION, False, RUN),
        (OTHER, "my job", False, None),
        (OTHER, f"runId = {OTHER}", False, None),
        (OTHER, DESCRIPTION.replace("batch = 7", "batch = 8"), False, None),
        ("my group", "my job", False, None),
        (None, None, False, None),
    ],
)
def test_the_run_names_the_job_group_or_is_in_the_description(
    group: str | None, description: str | None, is_interrupting: bool, run: str | None
) -> None:
    assert run_of(group, description, is_interrupting=is_interrupting, query=QUERY, batch="7") == run
