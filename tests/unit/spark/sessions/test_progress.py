"""What is told of Spark's own account of a batch."""

import json
from typing import Any

import pytest
from pyspark.sql.streaming.listener import StreamingQueryProgress

from riverlog.checkpoints.pipelines.progress import progress_of
from riverlog.spark.sessions.progress import batch_facts, cause_of, report
from riverlog.spark.sessions.reporter import ReportReply

ACCOUNT: dict[str, Any] = {
    "id": "00000000-0000-0000-0000-000000000001",
    "runId": "00000000-0000-0000-0000-000000000002",
    "name": "orders",
    "timestamp": "2026-11-16T19:43:02.988Z",
    "batchId": 7,
    "batchDuration": 41,
    "numInputRows": 1000,
    "inputRowsPerSecond": 100.0,
    "processedRowsPerSecond": 25000.5,
    "durationMs": {"addBatch": 20, "triggerExecution": 40},
    "eventTime": {"watermark": "2026-11-16T19:43:00.000Z"},
    "stateOperators": [
        {
            "operatorName": "stateStoreSave",
            "numRowsTotal": 12,
            "numRowsUpdated": 1,
            "numRowsRemoved": 0,
            "numRowsDroppedByWatermark": 3,
            "allUpdatesTimeMs": 1,
            "allRemovalsTimeMs": 1,
            "commitTimeMs": 9,
            "memoryUsedBytes": 4096,
            "numShufflePartitions": 2,
            "numStateStoreInstances": 2,
            "customMetrics": {},
        }
    ]
    * 2,
    "sources": [],
    "sink": {"description": "riverlog", "numOutputRows": 40},
    "observedMetrics": {},
}


def facts_of(**changed: Any) -> dict[str, Any]:
    return batch_facts(StreamingQueryProgress.fromJson(json.loads(json.dumps({**ACCOUNT, **changed}))))


def test_a_batch_is_told_in_numbers() -> None:
    assert facts_of() == {
        "batch": 7,
        "batch_at_ms": 1_794_858_182_988,
        "batch_ms": 40,
        "rows": 1000,
        "rows_per_second": 25000.5,
        "output_rows": 40,
        "watermark_ms": 1_794_858_180_000,
        "late_rows": 6,
        "state_rows": 24,
        "state_memory_bytes": 8192,
        "state_commit_ms": 18,
    }


def test_what_spark_does_not_know_is_not_told() -> None:
    facts = facts_of(
        stateOperators=[],
        eventTime={"watermark": "1970-01-01T00:00:00.000Z"},
        sink={"description": "x", "numOutputRows": -1},
        processedRowsPerSecond=float("nan"),
        timestamp="soon",
    )
    for name in ("watermark_ms", "output_rows", "rows_per_second", "batch_at_ms"):
        assert facts[name] is None
    assert facts["late_rows"] == 0
    assert "state_rows" not in facts
    progress_of({**facts, "query": "q", "run": "r", "state": "running", "began_ms": 1}, heard_ms=0)


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        ("Job aborted: no disk\n=== Streaming Query ===\nIdentifier: x", "Job aborted: no disk"),
        ("no disk\n\tat org.apache.spark.A(A.scala:1)\n\tat b", "no disk"),
        ("first\n\nsecond", "first\nsecond"),
        ("", "the query failed"),
    ],
)
def test_the_cause_of_a_failure_is_told_without_the_plan(said: str, cause: str) -> None:
    assert cause_of(said) == cause


def test_a_node_that_is_away_has_not_heard() -> None:
    assert report("webhdfs://127.0.0.1:1/pipelines/orders", {"state": "running"}) is ReportReply.NOT_DELIVERED


def test_rows_that_a_pipeline_took_out_are_late_as_those_that_spark_dropped() -> None:
    observed = {"riverlog:1": {"rows": 9, "late": 4}, "riverlog:1:rows": {"rows": 9}, "theirs": {"late": 100}}
    assert facts_of(observedMetrics=observed)["late_rows"] == 10
