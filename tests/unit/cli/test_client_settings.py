"""Settings of the client by Kafka's names, and the client's errors as sentences."""

from typing import Literal

import pytest

from riverlog import Producer
from riverlog.cli.client_settings import addresses, client_settings, new_client, run, settings_of
from riverlog.cli.terminal.exits import CommandError, ExitCode
from riverlog.client.errors import KafkaError, TimedOut, Unreachable
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import Address


class Client:
    def __init__(
        self,
        bootstrap: str,
        *,
        linger_ms: float = 0,
        batch_bytes_max: int = 1,
        idempotent: bool | None = None,
        client_id: str | None = None,
        isolation: Literal["read_committed", "read_uncommitted"] = "read_uncommitted",
        ports: object = None,
    ) -> None:
        if batch_bytes_max < 0:
            raise ValueError("batch_bytes_max must not be negative")
        self.given = (bootstrap, linger_ms, batch_bytes_max, idempotent, client_id, isolation, ports)


def test_settings_become_keyword_arguments_of_their_type() -> None:
    texts = ["linger.ms=2.5", "batch.size=7", "enable.idempotence=true", "client.id=me", "isolation=read_committed"]
    assert client_settings(Client, texts) == {
        "linger_ms": 2.5,
        "batch_bytes_max": 7,
        "idempotent": True,
        "client_id": "me",
        "isolation": "read_committed",
    }
    assert client_settings(Client, ()) == {}


def test_each_of_several_clients_gets_the_settings_it_has() -> None:
    def other(_bootstrap: str, *, client_id: str = "", rack: str = "") -> None: ...

    texts = ["client.id=me", "rack=r", "linger.ms=5"]
    assert settings_of([Client, other], texts) == [
        {"client_id": "me", "linger_ms": 5.0},
        {"client_id": "me", "rack": "r"},
    ]
    with pytest.raises(CommandError, match=r"the client has no setting 'nonsense'; it has .*linger\.ms, rack"):
        settings_of([Client, other], ["nonsense=1"])


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("linger.ms=soon", "-X linger.ms takes a number, not 'soon'"),
        ("batch.size=99999999999", "-X batch.size takes a number up to 2147483647, not '99999999999'"),
        ("linger.ms=nan", "-X linger.ms takes a number up to 2147483647, not 'nan'"),
        ("idempotent=maybe", "-X idempotent takes true or false, not 'maybe'"),
        ("ports=x", "the client has no setting 'ports'; it has batch.bytes.max, batch.size, client.id,"),
        ("bootstrap=x", "the client has no setting 'bootstrap'"),
    ],
)
def test_a_setting_that_cannot_be_is_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(CommandError) as trouble:
        client_settings(Client, [text])
    assert str(trouble.value).startswith(sentence)
    assert trouble.value.exit_code == ExitCode.USAGE


def test_a_client_is_made_with_flags_and_settings_win() -> None:
    client = new_client(Client, "a:1", ["linger.ms=5"], {"linger_ms": 1.0, "client_id": "flag"})
    assert client.given == ("a:1", 5.0, 1, None, "flag", "read_uncommitted", None)


def test_what_the_client_refuses_is_a_usage_error() -> None:
    with pytest.raises(CommandError, match="must not be negative") as trouble:
        new_client(Client, "a:1", ["batch.size=-1"])
    assert trouble.value.exit_code == ExitCode.USAGE


def test_the_real_producer_takes_kafkas_names() -> None:
    assert client_settings(Producer, ["linger.ms=5", "acks=1"]) == {"linger_ms": 5.0, "acks": "1"}


def test_addresses() -> None:
    assert addresses("a:1, b") == (Address("a", 1), Address("b", 9092))
    with pytest.raises(CommandError, match="is no bootstrap address") as trouble:
        addresses("a:port")
    assert trouble.value.exit_code == ExitCode.USAGE


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (Unreachable("no broker could be reached."), ExitCode.UNREACHABLE, "riverlog doctor"),
        (TimedOut("1.2.3.4:9092 did not answer Fetch in time"), ExitCode.UNREACHABLE, "did not answer"),
        (KafkaError(ErrorCode.INVALID_PARTITIONS, "too few"), ExitCode.REFUSED, r"too few \[INVALID_PARTITIONS\]"),
    ],
)
def test_the_clients_errors_are_sentences(error: KafkaError, code: ExitCode, words: str) -> None:
    async def fail() -> None:
        raise error

    with pytest.raises(CommandError, match=words) as trouble:
        run(fail())
    assert trouble.value.exit_code == code
