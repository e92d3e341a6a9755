"""Topic patterns from clients, matched by RE2: in time linear in pattern and name, whatever a client writes.

A pattern matches a whole name, as in Kafka. RE2 is imported with the first pattern, since most nodes never see one.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Protocol

from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.limits import TOPIC_PATTERN_CHARACTERS_MAX, TOPIC_PATTERNS_COMPILED_MAX


class Pattern(Protocol):
    """What is used of a compiled pattern."""

    def fullmatch(self, text: str, /) -> object | None: ...


def check_pattern(text: str) -> None:
    """Refuse what is no pattern, in one sentence."""
    _compiled(text)


def matching(text: str, names: Iterable[str]) -> frozenset[str]:
    """Give the names that the pattern matches from end to end."""
    pattern = _compiled(text)
    return frozenset(name for name in names if pattern.fullmatch(name))


@lru_cache(TOPIC_PATTERNS_COMPILED_MAX)
def _compiled(text: str) -> Pattern:
    if len(text) > TOPIC_PATTERN_CHARACTERS_MAX:
        problem = f"it has {len(text)} characters, and {TOPIC_PATTERN_CHARACTERS_MAX} are allowed"
        raise _bad(text[:TOPIC_PATTERN_CHARACTERS_MAX], problem)
    import re2

    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    try:
        pattern: Pattern = re2.compile(text, options)
    except re2.error as error:
        reason = error.args[0]
        raise _bad(text, reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)) from None
    return pattern


def _bad(text: str, problem: str) -> Refusal:
    return Refusal(
        ErrorCode.INVALID_REGULAR_EXPRESSION, f"`{text}` is not a valid regular expression for topics: {problem}."
    )
