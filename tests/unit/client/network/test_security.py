"""Kafka's settings of security: what they become, and what is said of those that cannot be had."""

from pathlib import Path

import pytest
import trustme

from riverlog.client.network.security import BadSecurity, Login, Security, Tls

JAAS = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="alice" password="a \\"b\\";=c";'
CA = trustme.CA()
NO_PEM = str(Path(__file__).with_name("__init__.py"))
AUTHORITY = CA.cert_pem.bytes().decode()


@pytest.mark.parametrize("settings", [{}, {"security.protocol": "PLAINTEXT"}, {"acks": "all"}])
def test_nothing_is_asked_for(settings: dict[str, str]) -> None:
    assert Security.from_settings(settings) is None


def test_a_login_is_read_from_jaas_or_from_two_settings() -> None:
    common = {"security.protocol": "sasl_plaintext", "sasl.mechanism": "scram-sha-256"}
    assert Security.from_settings({**common, "sasl.jaas.config": JAAS}) == Security(
        login=Login("SCRAM-SHA-256", "alice", 'a "b";=c')
    )
    assert Security.from_settings({**common, "sasl.username": "bob", "sasl.password": "p"}) == Security(
        login=Login("SCRAM-SHA-256", "bob", "p")
    )


def test_certificates_are_read_from_files_or_from_the_settings(tmp_path: Path) -> None:
    own = CA.issue_cert("client")
    certificate, key = own.cert_chain_pems[0].bytes().decode(), own.private_key_pem.bytes().decode()
    (tmp_path / "ca.pem").write_text(AUTHORITY)
    (tmp_path / "own.pem").write_text(certificate + key)
    in_files = Security.from_settings(
        {
            "security.protocol": "SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(tmp_path / "ca.pem"),
            "ssl.keystore.location": str(tmp_path / "own.pem"),
            "ssl.endpoint.identification.algorithm": "",
        }
    )
    assert in_files == Security(tls=Tls(AUTHORITY, certificate + key, checks_name=False))
    in_settings = Security.from_settings(
        {
            "security.protocol": "SSL",
            "ssl.ca.pem": AUTHORITY,
            "ssl.keystore.certificate.chain": certificate,
            "ssl.keystore.key": key,
        }
    )
    assert in_settings == Security(tls=Tls(AUTHORITY, certificate, key))
    for each in (in_files, in_settings):
        assert each is not None
        assert each.tls is not None
        each.tls.context()


def test_secrets_are_not_shown() -> None:
    shown = repr(Security(Tls(key="KEY", key_password="KP"), Login("PLAIN", "alice", "PW")))
    assert "alice" in shown
    assert not [secret for secret in ("KEY", "KP'", "PW") if secret in shown]


@pytest.mark.parametrize(
    ("settings", "name", "reason"),
    [
        ({"security.protocol": "TLS"}, "security.protocol", "write PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL"),
        ({"security.protocol": "SASL_SSL"}, "sasl.mechanism", "GSSAPI cannot be spoken here; PLAIN, SCRAM-SHA-256"),
        (
            {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"},
            "sasl.jaas.config",
            "no username and password are given",
        ),
        (
            {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.jaas.config": 'x required username="a'},
            "sasl.jaas.config",
            "it cannot be read: No closing quotation",
        ),
        ({"ssl.protocol": "TLSv1.3"}, "ssl.protocol", "this client has no such setting"),
        ({"ssl.truststore.password": "x"}, "ssl.truststore.password", "a trust store in PEM has no password"),
        (
            {"security.protocol": "SSL", "ssl.truststore.type": "JKS"},
            "ssl.truststore.type",
            "JKS cannot be read here; convert it to PEM",
        ),
        (
            {"security.protocol": "SSL", "ssl.ca.location": "/not/there"},
            "ssl.ca.location",
            "/not/there cannot be read: No such file or directory",
        ),
        ({"security.protocol": "SSL", "ssl.ca.location": NO_PEM}, "ssl.ca.location", "is not in PEM"),
    ],
)
def test_what_cannot_be_had_is_refused_with_a_reason(settings: dict[str, str], name: str, reason: str) -> None:
    with pytest.raises(BadSecurity) as refused:
        Security.from_settings(settings)
    assert refused.value.name == name
    assert reason in refused.value.reason


@pytest.mark.parametrize(
    ("tls", "reason"),
    [
        (Tls(authority="-----BEGIN nothing"), "ssl.truststore: no certificate of an authority can be read from it"),
        (Tls(certificate="-----BEGIN nothing"), "ssl.keystore: no certificate with its key can be read from it"),
    ],
)
def test_certificates_that_are_none_are_refused(tls: Tls, reason: str) -> None:
    with pytest.raises(BadSecurity, match=reason):
        tls.context()
