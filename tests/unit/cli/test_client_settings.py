"""Settings of the client by Kafka's names."""

from pathlib import Path

import pytest

from riverlog import Admin, Consumer, Producer
from riverlog.cli.client_settings import (
    ClientSettings,
    addresses,
    new_client,
    settings_in_file,
    settings_of,
    typed_settings,
)
from riverlog.cli.terminal.exits import CommandError, ExitCode
from riverlog.client.network.cluster import Cluster
from riverlog.client.network.security import Login, Security
from riverlog.model.ids import Address


def typed(*texts: str) -> ClientSettings:
    return ClientSettings(typed_settings(texts))


def test_settings_become_arguments_of_their_type() -> None:
    settings = typed("linger.ms=2.5", "batch.size=7", "enable.idempotence=true", "client.id=me", "acks=1")
    assert settings_of([Producer], settings) == [
        {"linger_ms": 2.5, "batch_bytes_max": 7, "idempotent": True, "client_id": "me", "acks": "1"}
    ]
    assert settings_of([Producer], ClientSettings()) == [{}]


def test_each_of_several_clients_gets_the_settings_it_has() -> None:
    settings = typed("client.id=me", "linger.ms=5", "request.timeout.ms=7000")
    assert settings_of([Admin, Producer, Cluster], settings) == [
        {"client_id": "me", "timeout_ms": 7000},
        {"client_id": "me", "linger_ms": 5.0, "request_timeout_ms": 7000},
        {"client_id": "me", "request_timeout_ms": 7000},
    ]


def test_kafkas_classes_are_known_by_their_names() -> None:
    settings = typed("partition.assignment.strategy=org.apache.kafka.clients.consumer.RangeAssignor")
    assert settings_of([Consumer], settings) == [{"assignor": "range"}]


def test_a_level_counts_where_its_compression_is_chosen() -> None:
    both = ("compression.type=zstd", "compression.zstd.level=9", "compression.gzip.level=1")
    assert settings_of([Producer], ClientSettings(filed=typed_settings(both))) == [
        {"compression": "zstd", "compression_level": 9}
    ]


def test_security_is_read_as_the_client_reads_it() -> None:
    settings = typed("security.protocol=SASL_PLAINTEXT", "sasl.mechanism=PLAIN", "sasl.username=u", "sasl.password=p")
    security = Security(login=Login("PLAIN", "u", "p"))
    assert settings_of([Admin, Producer], settings) == [{"security": security}, {"security": security}]
    with pytest.raises(CommandError, match="GSSAPI cannot be spoken here"):
        settings_of([Admin], typed("security.protocol=SASL_SSL"))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("linger.ms=soon", "linger.ms takes a number, not 'soon'"),
        ("batch.size=99999999999", "batch.size takes a number up to 2147483647, not '99999999999'"),
        ("linger.ms=nan", "linger.ms takes a number up to 2147483647, not 'nan'"),
        ("enable.idempotence=maybe", "enable.idempotence takes true or false, not 'maybe'"),
        ("acks=7", "acks takes 0, 1, -1, all, not '7'"),
        ("linger.mss=1", "-X: Kafka's clients have no setting linger.mss; did you mean 'linger.ms'?"),
        ("xyz=1", "-X: Kafka's clients have no setting xyz; Kafka's documentation of its clients has their names"),
        ("group.id=g", "-X group.id is a setting of other clients; leave it out"),
        ("value.serializer=x", "-X value.serializer means nothing here; leave it out"),
        ("linger.ms", "-X needs name=value, but 'linger.ms' was given"),
    ],
)
def test_a_setting_that_cannot_be_is_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(CommandError) as trouble:
        settings_of([Producer], typed(text))
    assert str(trouble.value) == sentence
    assert trouble.value.exit_code == ExitCode.USAGE


def test_a_file_is_read_and_what_means_nothing_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "client.properties"
    file.write_text("# ours\nlinger.ms=5\nvalue.serializer=x\nschema.registry.url=http://r\ngroup.id=g\n")
    settings = settings_in_file(str(file))
    assert settings == {"linger.ms": "5", "group.id": "g"}
    assert capsys.readouterr().err == (
        f"riverlog: {file}: passed over, without meaning here: value.serializer, schema.registry.url\n"
    )
    assert settings_of([Producer], ClientSettings(filed=settings)) == [{"linger_ms": 5.0}]


def test_what_was_typed_wins_and_settings_win_over_flags() -> None:
    settings = ClientSettings({"linger.ms": "5"}, {"linger.ms": "7", "client.id": "filed"})
    assert settings_of([Producer], settings) == [{"linger_ms": 5.0, "client_id": "filed"}]
    assert new_client(Producer, "a:1", typed("acks=1"), {"acks": "nonsense"})


def test_what_the_client_refuses_is_a_usage_error_in_kafkas_names() -> None:
    with pytest.raises(CommandError, match=r"delivery\.timeout\.ms must not be smaller than linger\.ms") as trouble:
        new_client(Producer, "a:1", typed("delivery.timeout.ms=1"))
    assert trouble.value.exit_code == ExitCode.USAGE


def test_addresses() -> None:
    assert addresses("a:1, b") == (Address("a", 1), Address("b", 9092))
    with pytest.raises(CommandError, match="is no bootstrap address") as trouble:
        addresses("a:port")
    assert trouble.value.exit_code == ExitCode.USAGE
