"""Topic patterns from clients, matched by RE2: in time linear in pattern and name, whatever a client writes.

A pattern matches a whole name, as in Kafka. RE2 is imported with the first pattern, since most nodes never see one.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Protocol

from riverlog.groups.limits import (
    TOPIC_PATTERN_CHARACTERS_MAX,
    TOPIC_PATTERN_INSTRUCTIONS_MAX,
    TOPIC_PATTERNS_COMPILED_MAX,
)
from riverlog.model.errors import ErrorCode, Refusal


class _Pattern(Protocol):
    """A set of one pattern: unlike a pattern alone, it can be asked without building an object for each match."""

    def Add(self, text: str, /) -> int: ...  # noqa: N802 - the library's names
    def Compile(self) -> None: ...  # noqa: N802
    def Match(self, text: str, /) -> list[int]: ...  # noqa: N802


def check_pattern(text: str) -> None:
    """Refuse what is no pattern, in one sentence."""
    _compiled(text)


def matching(text: str, names: Iterable[str]) -> frozenset[str]:
    """Return the names that the pattern matches from end to end."""
    match = _compiled(text).Match
    return frozenset(name for name in names if match(name))


@lru_cache(TOPIC_PATTERNS_COMPILED_MAX)
def _compiled(text: str) -> _Pattern:
    if len(text) > TOPIC_PATTERN_CHARACTERS_MAX:
        raise _bad(text[:TOPIC_PATTERN_CHARACTERS_MAX], f"it is longer than {TOPIC_PATTERN_CHARACTERS_MAX} characters")
    import re2

    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    try:
        size = re2.compile(text, options).programsize
    except re2.error as error:
        raise _bad(text, error.args[0].decode(errors="replace")) from None
    if size > TOPIC_PATTERN_INSTRUCTIONS_MAX:
        raise _bad(text, "it is too complex")
    pattern: _Pattern = re2.Set.FullMatchSet(options)
    pattern.Add(text)
    pattern.Compile()
    return pattern


def _bad(text: str, problem: str) -> Refusal:
    return Refusal(
        ErrorCode.INVALID_REGULAR_EXPRESSION, f"`{text}` is not a valid regular expression for topics: {problem}."
    )
