"""Kafka's error codes, held against another implementation's list."""

from kio.schema.errors import ErrorCode as KioErrorCode

from riverlog.model.errors import ErrorCode, Refusal


def test_names_and_numbers_are_kafkas():
    ours = {code.name.lower(): code.value for code in ErrorCode}
    for code in KioErrorCode:
        if code.value in set(ours.values()):
            assert ours[code.name] == code.value


def test_no_code_that_kafka_has_is_missing():
    assert {code.value for code in KioErrorCode} - {code.value for code in ErrorCode} == set()


def test_clients_may_repeat_what_kafkas_clients_repeat():
    theirs = {code.value for code in KioErrorCode if code.retriable}
    ours = {code.value for code in ErrorCode if code.retriable and code.value in {each.value for each in KioErrorCode}}
    assert ours == theirs


def test_an_error_can_be_said_in_words():
    assert ErrorCode.UNKNOWN_TOPIC_ID.title == "unknown topic id"


def test_a_refusal_carries_its_code_and_its_sentence():
    refusal = Refusal(ErrorCode.INVALID_CONFIG, "No.")
    assert (refusal.code, refusal.message, str(refusal)) == (ErrorCode.INVALID_CONFIG, "No.", "No.")
