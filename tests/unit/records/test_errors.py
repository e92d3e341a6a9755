"""A broken batch is a refusal with a code, so that brokers can answer it and clients can show it."""

from riverlog.model.errors import ErrorCode, Refusal
from riverlog.records.errors import BatchTooLarge, CorruptBatch


def test_a_corrupt_batch_is_a_refusal() -> None:
    problem = CorruptBatch("the checksum does not match")
    assert isinstance(problem, Refusal)
    assert (problem.code, problem.message) == (ErrorCode.CORRUPT_MESSAGE, "the checksum does not match")


def test_a_bomb_is_a_corrupt_batch_that_names_the_limit() -> None:
    problem = BatchTooLarge(1_000)
    assert isinstance(problem, CorruptBatch)
    assert problem.code is ErrorCode.MESSAGE_TOO_LARGE
    assert "1000 bytes" in problem.message
