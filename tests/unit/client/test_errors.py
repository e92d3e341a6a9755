"""Exceptions say what, why and what to do."""

import pytest

from riverlog.client.errors import BufferFull, KafkaError, OffsetOutOfRange, PartlyFailed, Unreachable, check, failure
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import TopicPartition


def test_the_code_stands_behind_the_sentence() -> None:
    error = failure(ErrorCode.NOT_LEADER_OR_FOLLOWER, "orders-0")
    assert str(error) == "orders-0: the partition has moved to another broker [NOT_LEADER_OR_FOLLOWER]"
    assert error.retriable
    assert str(failure(ErrorCode.INVALID_CONFIG, "orders", "no such setting")) == (
        "orders: no such setting [INVALID_CONFIG]"
    )


def test_a_code_from_the_future_keeps_its_number() -> None:
    error = failure(9_999, "orders-0")
    assert error.code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert "9999" in str(error)


def test_check_lets_success_pass() -> None:
    check(ErrorCode.NONE, "orders")
    with pytest.raises(KafkaError) as raised:
        check(ErrorCode.TOPIC_ALREADY_EXISTS, "orders")
    assert not raised.value.retriable


def test_what_partly_failed_names_each_and_is_never_repeated() -> None:
    failures = {"a": failure(ErrorCode.NOT_CONTROLLER, "topic a"), "b": failure(ErrorCode.INVALID_CONFIG, "topic b")}
    error = PartlyFailed(failures, 3)
    assert error.failures == failures
    assert error.message == (
        "2 of 3 failed: topic a: the controller has moved to another broker; "
        "topic b: a setting is not known, or cannot have this value"
    )
    assert not error.retriable


def test_advice_is_given_where_there_is_some() -> None:
    assert "producer.ready()" in str(BufferFull(1_000))
    assert "auto_offset_reset" in str(OffsetOutOfRange(TopicPartition("orders", 1), 7))
    assert "address right" in str(Unreachable.all_of(["a:1: refused", "b:2: no answer"]))
