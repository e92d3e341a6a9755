"""What Spark says, in plain words: every case is one that Spark 4.2 really said."""

import pytest

from riverlog.spark.error_words import mistake, reason

IN_PYTHON = """[STREAM_FAILED] Query clicks [id = 5e, runId = 50] terminated with exception: [PYTHON_ERROR] Failed \
when Python streaming data source perform load: Traceback (most recent call last):
  File "/opt/v/lib/python3.11/site-packages/pyspark/worker.py", line 279, in main
    prepare(reader, outfile)
  File "/opt/v/lib/python3.11/site-packages/riverlog/spark/plain_errors.py", line 27, in called
    raise said.with_traceback(None) from None
riverlog.client.errors.KafkaError: topic 'clicks': the cluster has no such topic. Create it
 SQLSTATE: 38000
\tat org.apache.A(A.scala:1)
=== Streaming Query ===
plan"""
IN_A_FUNCTION = """Job aborted. Traceback (most recent call last):
  File "/opt/v/lib/python3.11/site-packages/pyspark/worker.py", line 1, in main
    process()
  File "/shops/clicks.py", line 12, in priced
    return row["price"]
  File "/opt/v/lib/python3.11/json/decoder.py", line 3, in decode
    raise
ValueError: no such shop
"""
NO_COLUMN = (
    "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column, variable, or function parameter with name `usr` cannot be resolved. "
    "Did you mean one of the following? [{}]. SQLSTATE: 42703; line 1 pos 0;\n'Filter isnotnull('usr)\n+- ~Relation"
)


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("", ""),
        ("no disk\n\tat org.apache.A(A.scala:1)\n=== Streaming Query ===\nplan", "no disk"),
        (IN_PYTHON, "topic 'clicks': the cluster has no such topic. Create it"),
        (IN_A_FUNCTION, "ValueError: no such shop (clicks.py, line 12)"),
        (
            "Job aborted: Traceback (most recent call last):\n  File x",
            "Job aborted: Traceback (most recent call last):",
        ),
        (
            "An error occurred while calling o74.load.\n: org.apache.spark.SparkException: [INTERNAL_ERROR] The worker "
            "exited. SQLSTATE: XX000\n\tat org.apache.spark.A.b(A.scala:1)",
            "The worker exited",
        ),
        ("x" * 400, "x" * 300 + "…"),
    ],
)
def test_the_reason_is_one_line(message: str, words: str) -> None:
    assert reason(message) == words


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (NO_COLUMN.format("`user`, `at`"), "there is no column usr; did you mean user?"),
        (
            NO_COLUMN.format("`window`, `at`, `_riverlog_is_late`"),
            "there is no column usr; did you mean window or at?",
        ),
        (NO_COLUMN.format("`user`, `_riverlog_late`"), "there is no column usr; did you mean user?"),
        (NO_COLUMN.format("`_riverlog_late`"), "there is no column usr"),
        (NO_COLUMN.format("`a`, `b`, `c`"), "there is no column usr; did you mean a, b or c?"),
        (
            "[UNRESOLVED_COLUMN.WITHOUT_SUGGESTION] A column, variable, or function parameter with name `a`.`b` cannot "
            "be resolved. SQLSTATE: 42703",
            "there is no column a.b",
        ),
        (
            "[UNRESOLVED_ROUTINE] Cannot resolve routine `uper` on search path [`system`.`builtin`]. SQLSTATE: 42883; "
            "line 1 pos 0",
            "there is no function uper",
        ),
        (
            "\n[PARSE_SYNTAX_ERROR] Syntax error at or near 'is': extra input 'is'. SQLSTATE: 42601 (line 1, pos 8)\n\n"
            "== SQL ==\nuser is is\n--------^^^\n",
            "Syntax error at or near 'is': extra input 'is', in 'user is is'",
        ),
    ],
)
def test_a_wrong_step_is_told_without_what_only_a_pipeline_knows(message: str, words: str) -> None:
    assert mistake(message) == words
