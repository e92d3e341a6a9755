"""What became of one part of a command."""

from riverlog.metadata.commands.outcome import DONE, Outcome, repeats
from riverlog.model.errors import ErrorCode, Refusal


def test_a_refusal_is_an_outcome():
    assert Outcome.of(Refusal(ErrorCode.INVALID_CONFIG, "No.")) == Outcome(ErrorCode.INVALID_CONFIG, "No.")
    assert DONE.code is ErrorCode.NONE


def test_names_that_stand_twice_are_found():
    assert repeats(["a", "b", "a", "c", "a"]) == {"a"}
    assert repeats([]) == set()
