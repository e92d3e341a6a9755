"""What became of one part of a command: done, or refused with a code and a sentence."""

from dataclasses import dataclass

from riverlog.model.errors import ErrorCode, Refusal


@dataclass(frozen=True, slots=True)
class Outcome:
    """An error code, NONE if it was done, and the sentence that goes with it."""

    code: ErrorCode = ErrorCode.NONE
    message: str | None = None

    @classmethod
    def of(cls, refusal: Refusal) -> "Outcome":
        return cls(refusal.code, refusal.message)


DONE = Outcome()
