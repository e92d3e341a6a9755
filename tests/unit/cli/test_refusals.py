"""What a cluster refuses, as sentences."""

import pytest

from riverlog.cli.refusals import ADVICE, client_errors, no_topic_name, sentence_of
from riverlog.cli.terminal.exits import CommandError, ExitCode
from riverlog.client.arguments import checked_text
from riverlog.client.errors import KafkaError, TimedOut, Unreachable, failure
from riverlog.client.reasons import REASONS
from riverlog.metadata.commands.topics import check_topic_name
from riverlog.model.errors import ErrorCode, Refusal


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (Unreachable("no broker could be reached."), ExitCode.UNREACHABLE, "reached; start one with `riverlog dev`"),
        (TimedOut("1.2.3.4:9092 did not answer Fetch in time"), ExitCode.UNREACHABLE, "did not answer"),
        (KafkaError(ErrorCode.INVALID_PARTITIONS, "too few."), ExitCode.REFUSED, "too few; `riverlog topics describe`"),
    ],
)
def test_the_clients_errors_are_sentences(error: KafkaError, code: ExitCode, words: str) -> None:
    with pytest.raises(CommandError, match=words) as trouble, client_errors():
        raise error
    assert trouble.value.exit_code == code


def test_an_argument_that_no_request_can_hold_is_a_wrong_command_line() -> None:
    with (
        pytest.raises(CommandError, match="a topic's name has at most 32767 bytes, not 40000") as trouble,
        client_errors(),
    ):
        checked_text("a topic's name", "x" * 40_000)
    assert trouble.value.exit_code == ExitCode.USAGE


@pytest.mark.parametrize("code", [each for each in ErrorCode if each is not ErrorCode.NONE])
def test_no_refusal_shouts_a_name_without_a_sentence(code: ErrorCode) -> None:
    sentence = sentence_of(failure(code, "topic 'orders'"))
    assert sentence.startswith("topic 'orders': ")
    assert "; " in sentence
    assert "[" not in sentence
    assert (code.name in sentence) is (code not in ADVICE)


@pytest.mark.parametrize("code", ADVICE)
def test_advice_stands_behind_a_reason_of_ours(code: ErrorCode) -> None:
    assert code in REASONS or code in (ErrorCode.SASL_AUTHENTICATION_FAILED,)


def test_arguments_in_python_are_called_by_kafkas_names() -> None:
    error = KafkaError(ErrorCode.MESSAGE_TOO_LARGE, "the record needs 9 bytes; request_bytes_max allows 5")
    assert sentence_of(error).startswith("the record needs 9 bytes; max.request.size allows 5; send smaller records")


@pytest.mark.parametrize("name", ["a b", "ä", "", "a/b", "a" * 250])
def test_a_name_that_no_topic_can_have_is_known_as_the_cluster_knows_it(name: str) -> None:
    assert no_topic_name(name) is not None
    with pytest.raises(Refusal):
        check_topic_name(name)


@pytest.mark.parametrize("name", ["a", "A.b_c-1", "a" * 249])
def test_a_name_that_a_topic_can_have_is_not_blamed(name: str) -> None:
    assert no_topic_name(name) is None
    check_topic_name(name)
