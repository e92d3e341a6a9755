"""What is said about a query."""

from typing import Any

import pytest

from riverlog.cli.commands.pipelines.queries import lines_of
from riverlog.cli.main import main
from riverlog.cli.terminal.exits import ExitCode

FACTS: dict[str, Any] = {
    "pipeline": "revenue",
    "checkpoint": "/pipelines/revenue",
    "state": "running",
    "since_ms": 1_794_858_182_988,
    "batch": 12,
    "planned_batch": 13,
    "committed_ms": 1_794_858_192_988,
    "lag": 7,
    "rows": 1_000,
    "rows_per_second": 25_000.4,
    "output_rows": 40,
    "batch_ms": 40,
    "watermark_ms": 1_794_858_180_000,
    "late_rows": 3,
    "state_rows": 12,
    "state_memory_bytes": 4_096,
    "state_commit_ms": 9,
    "state_bytes": 100,
    "checkpoint_files": 9,
    "checkpoint_bytes": 2_048,
    "error": None,
    "error_ms": None,
}


def test_a_query_is_described_line_by_line() -> None:
    assert lines_of(FACTS) == [
        "Pipeline revenue: State=running, Since=2026-11-16T19:43:02Z, Batch=12, Lag=7",
        "Last batch: Committed=2026-11-16T19:43:12Z, Rows=1000, RowsPerSecond=25,000, OutputRows=40, Duration=40 ms",
        "Event time: Watermark=2026-11-16T19:43:00Z, LateRows=3",
        "State store: Rows=12, Memory=4.0 KiB, Files=100 B, CommitTime=9 ms",
        "Checkpoint /pipelines/revenue: Files=9, Size=2.0 KiB, PlannedBatch=13",
    ]


def test_what_is_not_known_is_a_dash_and_an_error_is_one_line() -> None:
    empty = dict.fromkeys(FACTS) | {"pipeline": "p", "checkpoint": "/p", "watermark_ms": 2**62}
    lines = lines_of(empty | {"error": "no\x1bdisk", "error_ms": 0})
    assert lines[0] == "Pipeline p: State=-, Since=-, Batch=-, Lag=-"
    assert lines[2] == f"Event time: Watermark={2**62}, LateRows=-"
    assert lines[5] == "Last error, 1970-01-01T00:00:00Z: no\\x1bdisk"


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["list"], ExitCode.UNREACHABLE, "no checkpoint store answers at 127.0.0.1:1"),
        (["describe", "revenue"], ExitCode.UNREACHABLE, "no checkpoint store answers at 127.0.0.1:1"),
        (["describe"], ExitCode.USAGE, "name a pipeline"),
        (["describe", "/a/../b"], ExitCode.USAGE, "has . or .. in it"),
    ],
)
def test_bad_input_gets_one_sentence(
    arguments: list[str], code: ExitCode, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pipelines", *arguments, "--store", "127.0.0.1:1"]) == code
    said = capsys.readouterr().err
    assert sentence in said
    assert said.count("\n") == 1
