"""Options: what is understood, what passes, and what is refused in which words."""

import pytest

from riverlog.client.network.security import Login, Security
from riverlog.spark.options import BadOption, ClientOptions, Options, check_names, cluster_options


def test_case_does_not_matter() -> None:
    options = Options({"FailOnDataLoss": " False ", "minPartitions": "7", "strategy": "LATEST"})
    assert options.flag("failOnDataLoss", default=True) is False
    assert options.number("minpartitions") == 7
    assert options.choice("strategy", ["error", "latest"], default="error") == "latest"
    assert (options.text("other"), options.number("other"), options.flag("other", default=True)) == (None, None, True)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda options: options.flag("x", default=True), "option x='seven': write true or false"),
        (lambda options: options.number("x"), "option x='seven': write a whole number"),
        (lambda options: options.choice("x", ["a", "b", "c"], default="a"), "option x='seven': write a, b or c"),
        (lambda options: options.number("y"), "option y='0': write a number that is not smaller than 1"),
    ],
)
def test_a_bad_value_is_told_with_what_to_write(call: object, message: str) -> None:
    with pytest.raises(BadOption) as refused:
        call(Options({"x": "seven", "y": "0"}))  # type: ignore[operator]
    assert str(refused.value) == message


def test_the_cluster_is_named_by_option_variable_or_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RIVERLOG_BOOTSTRAP_SERVERS", raising=False)
    assert cluster_options(Options({})) == ClientOptions("127.0.0.1:9092", {})
    monkeypatch.setenv("RIVERLOG_BOOTSTRAP_SERVERS", "variable:1")
    assert cluster_options(Options({})).bootstrap == "variable:1"
    assert cluster_options(Options({"bootstrap": "short:2"})).bootstrap == "short:2"
    assert cluster_options(Options({"kafka.bootstrap.servers": "long:3"})).bootstrap == "long:3"
    with pytest.raises(BadOption, match="says something else"):
        cluster_options(Options({"kafka.bootstrap.servers": "long:3", "bootstrap": "short:2"}))
    with pytest.raises(BadOption, match=r'kafka.bootstrap.servers=.*write "host:port"'):
        cluster_options(Options({"kafka.bootstrap.servers": "host:port"}))


def test_settings_that_the_client_has_reach_it() -> None:
    given = {"kafka.client.id": "me", "kafka.request.timeout.ms": "5000", "kafka.retry.backoff.ms": "50"}
    expected = {"client_id": "me", "request_timeout_ms": 5_000, "retry_backoff_ms": 50}
    assert cluster_options(Options(given)).client == expected


def test_settings_of_security_reach_it_too() -> None:
    given = {
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.jaas.config": 'org.….PlainLoginModule required username="alice" password="secret";',
    }
    check_names(Options(given), [], {})
    assert cluster_options(Options(given)).client == {"security": Security(login=Login("PLAIN", "alice", "secret"))}
    with pytest.raises(
        BadOption, match=r"option kafka\.ssl\.truststore\.password: a trust store in PEM has no password"
    ):
        cluster_options(Options({**given, "kafka.ssl.truststore.password": "hidden"}))
    with pytest.raises(BadOption, match=r"option kafka\.ssl\.truststore: no certificate of an authority"):
        cluster_options(Options({"kafka.security.protocol": "SSL", "kafka.ssl.ca.pem": "-----BEGIN nothing"}))


@pytest.mark.parametrize("name", ["SUBSCRIBE", "bootstrap", "kafka.client.id", "kafka.max.poll.records"])
def test_what_is_known_passes(name: str) -> None:
    check_names(Options({name: "value", "kafka.security.protocol": "plaintext"}), ["subscribe"], {})


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("subscrbe", "x", "option subscrbe: there is no such option; did you mean subscribe?"),
        ("zzz", "x", "option zzz: there is no such option; leave it out"),
        (
            "kafka.max.poll.record",
            "1",
            "option kafka.max.poll.record: Kafka's clients have no such setting; did you mean kafka.max.poll.records?",
        ),
        ("kafka.group.id", "x", "option kafka.group.id='x': not here"),
        ("kafka.value.deserializer", "x", "option kafka.value.deserializer='x': values are always binary"),
    ],
)
def test_what_is_refused_is_told_why(name: str, value: str, message: str) -> None:
    with pytest.raises(BadOption) as refused:
        check_names(Options({name: value}), ["subscribe"], {"kafka.group.id": "not here"})
    assert str(refused.value).startswith(message)
    assert "secret" not in str(refused.value)
