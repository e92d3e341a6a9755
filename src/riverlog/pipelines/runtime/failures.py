"""What a query of Spark failed with: whether another run has taken it over.

Words prove nothing: a user's exception, or a row in it, may have any. So a take-over is known by the class of an
exception in the JVM, by Spark's own condition, or by the class that a Python worker raised. Each of them stands in
front of what may be anybody's words.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

from riverlog.checkpoints.files.refusals import ACCESS_CONTROL, DriverReplaced
from riverlog.spark.refusal import TakenOver

_CONCURRENT: Final = frozenset(
    {"java.util.ConcurrentModificationException", "org.apache.spark.SparkConcurrentModificationException"}
)
_CONDITION: Final = "CONCURRENT_STREAM_LOG_UPDATE"
_STORE_SAYS: Final = ("was replaced", "another driver")
"""With the store's class: other file systems refuse by the same."""
_IN_PYTHON: Final = frozenset(f"{each.__module__}.{each.__qualname__}" for each in (DriverReplaced, TakenOver))
_TRACEBACK: Final = "Traceback (most recent call last):"
_RAISED: Final = re.compile(r"([A-Za-z_][\w.]*)(?::|$)")
_TO_STRING: Final = re.compile(r"((?:[a-z]\w*\.)+[A-Z][\w$]*)(?::|$)")
_SPARK_CONDITION: Final = re.compile(r"(?:[\w.$]+: )?\[([A-Z_.]+)\]")
_CAUSES_MAX: Final = 16
_PLAN: Final = "\n=== Streaming Query ==="


def is_taken_over(problem: BaseException) -> bool:
    """Return whether a query failed because another run has taken it over."""
    for cause in _causes(problem):
        kind, words = _java_class(cause), _description(cause)
        if isinstance(cause, DriverReplaced | TakenOver) or kind in _CONCURRENT or _condition(cause) == _CONDITION:
            return True
        if kind == ACCESS_CONTROL and any(each in words for each in _STORE_SAYS):
            return True
        if raised_in_python(words) in _IN_PYTHON:
            return True
    return False


def raised_in_python(words: str) -> str | None:
    """Name the class that a Python worker raised; what stands behind it may be anybody's words."""
    lines = words.partition(_PLAN)[0].partition(_TRACEBACK)[2].splitlines()
    first = next((line for line in lines if line[:1].strip()), "")
    found = _RAISED.match(first)
    return None if found is None else found[1]


def _causes(problem: BaseException) -> Iterator[BaseException]:
    """Return an exception and what it came from: in the JVM, as PySpark has caught it, or in Python."""
    each: BaseException | None = problem
    for _ in range(_CAUSES_MAX):
        if each is None:
            return
        yield each
        caught = getattr(each, "_cause", None)
        each = caught if isinstance(caught, BaseException) else each.__cause__


def _java_class(problem: BaseException) -> str | None:
    """Name the class in the JVM: PySpark has the exception itself, or for most kinds only what `toString` gives."""
    origin: Any = getattr(problem, "_origin", None)
    if origin is not None:
        return str(origin.getClass().getName())
    found = _TO_STRING.match(_description(problem)) if hasattr(problem, "_desc") else None
    return None if found is None else found[1]


def _condition(problem: BaseException) -> str | None:
    """Return Spark's name for what is wrong, where this is one of Spark's."""
    if (_java_class(problem) or "").startswith("org.apache.spark."):
        found = _SPARK_CONDITION.match(_description(problem))
        return None if found is None else found[1]
    return None


def _description(problem: BaseException) -> str:
    """Return the message alone, without the stack that PySpark adds."""
    described = getattr(problem, "_desc", None)
    return described if isinstance(described, str) else str(problem)
