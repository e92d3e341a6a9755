"""What became of one part of a command: done, or refused with a code and a sentence."""

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from riverlog.model.errors import ErrorCode, Refusal

Named = TypeVar("Named", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Outcome:
    """An error code, NONE if it was done, and the sentence that goes with it."""

    code: ErrorCode = ErrorCode.NONE
    message: str | None = None

    @classmethod
    def of(cls, refusal: Refusal) -> "Outcome":
        return cls(refusal.code, refusal.message)


DONE = Outcome()


def repeats(names: Iterable[Named]) -> set[Named]:
    """Return the names that a request holds more than once: which of them is meant, nobody can say."""
    return {name for name, count in Counter(names).items() if count > 1}


def named_twice(topic: str) -> Refusal:
    """Return the refusal for a topic that a request names more than once."""
    return Refusal(ErrorCode.INVALID_REQUEST, f"The request names the topic {topic!r} more than once.")
