"""Errors without our frames: PySpark shows the calls that led to a problem above it.

What is raised by this package is a sentence that says what to do. Anything else is a mistake, and keeps its trace.
"""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

_OURS = "riverlog."


def plainly(door: Callable[P, R]) -> Callable[P, R]:
    """Decorate what Spark calls: of a problem of ours only the last step is shown."""

    @wraps(door)
    def called(*arguments: P.args, **named: P.kwargs) -> R:
        try:
            return door(*arguments, **named)
        except Exception as problem:
            if not type(problem).__module__.startswith(_OURS):
                raise
            said = problem
        raise said.with_traceback(None) from None

    return called
