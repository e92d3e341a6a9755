"""What a user of Spark reads when rows are not written."""

import pytest

from riverlog.client.errors import KafkaError, failure
from riverlog.model.errors import ErrorCode
from riverlog.spark.refusal import refusal


def broken_by(cause: KafkaError) -> KafkaError:
    problem = KafkaError(ErrorCode.TRANSACTION_ABORTABLE, "the transaction can only be aborted")
    problem.__cause__ = cause
    return problem


@pytest.mark.parametrize(
    ("code", "advice"),
    [
        (ErrorCode.MESSAGE_TOO_LARGE, "kafka.batch.size"),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "riverlog topics create"),
        (ErrorCode.POLICY_VIOLATION, ".coalesce(...)"),
    ],
)
def test_what_can_be_done_is_said_also_behind_a_broken_transaction(code: ErrorCode, advice: str) -> None:
    for problem in (failure(code, "orders-0"), broken_by(broken_by(failure(code, "orders-0")))):
        assert advice in str(refusal(problem))
        assert "orders-0" in str(refusal(problem))


def test_elsewhere_the_cause_speaks_for_itself() -> None:
    assert str(refusal(KafkaError(ErrorCode.REQUEST_TIMED_OUT, "too late"))) == "rows are not written: too late"
    alone = KafkaError(ErrorCode.TRANSACTION_ABORTABLE, "aborted")
    assert str(refusal(alone)) == "rows are not written: aborted"
