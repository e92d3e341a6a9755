"""What a query failed with: classes and conditions count, words do not."""

from typing import Any

import pytest

from riverlog.checkpoints.files.refusals import ACCESS_CONTROL, RequestRefused
from riverlog.pipelines.runtime.failures import is_taken_over, raised_in_python
from riverlog.spark.refusal import TakenOver


class JavaObject:
    """What Py4J has of an exception in the JVM, as far as it is asked."""

    def __init__(self, name: str) -> None:
        self._name = name

    def getClass(self) -> "JavaObject":  # noqa: N802 - Java's name
        return self

    def getName(self) -> str:  # noqa: N802 - Java's name
        return self._name


class Caught(Exception):
    """An exception of the JVM as PySpark catches it: with the exception itself, or with what it says of itself."""

    def __init__(self, words: str, *, kind: str | None = None, origin: str | None = None, cause: Any = None) -> None:
        words = words if kind is None else f"{kind}: {words}"
        super().__init__(words)
        self._desc = words
        self._origin = None if origin is None else JavaObject(origin)
        self._cause = cause


def failed(cause: BaseException) -> Caught:
    return Caught(
        f"[STREAM_FAILED] Query terminated with exception: {cause}\n=== Streaming Query ===\nplan", cause=cause
    )


TRACE = "Job aborted. Traceback (most recent call last):\n  File x\n    y()\n"
STORE = "run r1 of this query was replaced by run r2; nothing that it writes from here on is kept"


@pytest.mark.parametrize(
    "cause",
    [
        RequestRefused.replaced(STORE),
        TakenOver(STORE),
        Caught(f"{TRACE}riverlog.spark.refusal.TakenOver: batch 7 is not written: {STORE}"),
        Caught(STORE, kind=ACCESS_CONTROL),
        Caught("batch 7 is committed: another driver of this query went on", kind=ACCESS_CONTROL),
        Caught(STORE, origin=ACCESS_CONTROL),
        Caught("[CONCURRENT_STREAM_LOG_UPDATE] Multiple", kind="org.apache.spark.SparkException"),
        Caught("[CONCURRENT_STREAM_LOG_UPDATE] Multiple", origin="org.apache.spark.SparkRuntimeException"),
        Caught("Multiple streaming queries", kind="org.apache.spark.SparkConcurrentModificationException"),
        Caught(
            f"{TRACE}riverlog.checkpoints.files.refusals.DriverReplaced: {STORE}\n",
            kind="org.apache.spark.SparkException",
        ),
    ],
)
def test_a_take_over_is_known_by_its_class(cause: BaseException) -> None:
    assert is_taken_over(failed(cause))
    assert is_taken_over(failed(failed(cause)))


@pytest.mark.parametrize(
    "cause",
    [
        RuntimeError(STORE),
        Caught(STORE, kind="java.lang.RuntimeException"),
        Caught("Permission denied: user=ada", kind=ACCESS_CONTROL),
        Caught("a row with [CONCURRENT_STREAM_LOG_UPDATE]", kind="org.apache.spark.SparkException"),
        Caught(f"{ACCESS_CONTROL}: {STORE}", kind="java.lang.RuntimeException"),
        Caught("[CONCURRENT_STREAM_LOG_UPDATE] Multiple streaming queries are concurrently using ProducerFenced"),
        Caught(f"{TRACE}ValueError: {STORE}\n"),
        Caught(f"{TRACE}ValueError: no\nriverlog.checkpoints.refusals.Replaced: {STORE}\n"),
        Caught(f"{TRACE}ValueError: Traceback (most recent call last):\nriverlog.checkpoints.refusals.Replaced: x"),
    ],
)
def test_words_are_no_take_over(cause: BaseException) -> None:
    assert not is_taken_over(failed(cause))


def test_a_circle_of_causes_ends() -> None:
    one = Caught("one")
    one._cause = one
    assert not is_taken_over(one)


def test_what_python_raised_stands_first() -> None:
    assert raised_in_python(f"{TRACE}ValueError: no such shop") == "ValueError"
    assert raised_in_python(f"{TRACE}a.b.Problem") == "a.b.Problem"
    assert raised_in_python("no disk") is None
