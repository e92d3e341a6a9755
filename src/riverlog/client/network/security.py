"""How a client reaches brokers that encrypt, or ask who is there: Kafka's settings for it, and what they become.

    Security.from_settings({"security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-256", …})

The names are those of Kafka's clients, and of librdkafka where Python programs know them from there. Certificates and
keys are PEM: in files, or in the settings themselves.
"""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
PREFIXES: Final = ("security.", "ssl.", "sasl.")


class BadSecurity(ValueError):
    """A setting cannot be what it is: its name, and why."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name}: {reason}")
        self.name = name
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Tls:
    """How the connection is encrypted. Texts are PEM; without an authority those of the system are trusted."""

    authority: str | None = None
    certificate: str | None = None
    key: str | None = field(default=None, repr=False)
    key_password: str | None = field(default=None, repr=False)
    checks_name: bool = True

    def context(self) -> ssl.SSLContext:
        """Prepare it; BadSecurity where a certificate or key cannot be used."""
        try:
            context = ssl.create_default_context(cadata=self.authority)
        except (ssl.SSLError, ValueError) as error:
            raise BadSecurity(
                "ssl.truststore", f"no certificate of an authority can be read from it: {error}"
            ) from None
        context.check_hostname = self.checks_name
        if self.certificate is not None:
            self._identify(context, self.certificate)
        return context

    def _identify(self, context: ssl.SSLContext, certificate: str) -> None:
        """Show a certificate to the server. Python reads one from files only."""
        from tempfile import NamedTemporaryFile

        with NamedTemporaryFile("w", suffix=".pem") as pem:  # readable by this user alone
            pem.write(f"{certificate}\n{self.key or ''}\n")
            pem.flush()
            try:
                context.load_cert_chain(pem.name, password=lambda: self.key_password or "")
            except (ssl.SSLError, OSError) as error:
                raise BadSecurity(
                    "ssl.keystore", f"no certificate with its key can be read from it: {error.strerror or error}"
                ) from None


@dataclass(frozen=True, slots=True)
class Login:
    """Who the client says it is, and how."""

    mechanism: str
    username: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Security:
    """Both, or one of them."""

    tls: Tls | None = None
    login: Login | None = None

    @classmethod
    def from_settings(cls, settings: Mapping[str, str]) -> "Security | None":
        """Read the settings that begin with `security.`, `ssl.` or `sasl.`; None where they ask for nothing."""
        given = {name: value for name, value in settings.items() if name.startswith(PREFIXES)}
        for name in given:
            if name not in _KNOWN:
                raise BadSecurity(name, _REFUSED.get(name, "this client has no such setting; leave it out"))
        protocol = given.get("security.protocol", PROTOCOLS[0]).upper()
        if protocol not in PROTOCOLS:
            raise BadSecurity("security.protocol", f"write {', '.join(PROTOCOLS[:-1])} or {PROTOCOLS[-1]}")
        tls = _tls(given) if protocol.endswith("SSL") else None
        login = _login(given) if protocol.startswith("SASL") else None
        return cls(tls, login) if tls or login else None


def _tls(given: Mapping[str, str]) -> Tls:
    for store in ("ssl.truststore.type", "ssl.keystore.type"):
        if given.get(store, "PEM").upper() != "PEM":
            raise BadSecurity(store, f"{given[store]} cannot be read here; convert it to PEM (keytool, openssl pkcs12)")
    authority = _pem(given, "ssl.truststore.certificates", "ssl.ca.pem", "ssl.truststore.location", "ssl.ca.location")
    certificate = _pem(
        given,
        "ssl.keystore.certificate.chain",
        "ssl.certificate.pem",
        "ssl.keystore.location",
        "ssl.certificate.location",
    )
    algorithm = given.get("ssl.endpoint.identification.algorithm", "https")
    return Tls(
        authority=authority,
        certificate=certificate,
        key=_pem(given, "ssl.keystore.key", "ssl.key.pem", "ssl.key.location"),
        key_password=given.get("ssl.key.password"),
        checks_name=algorithm.lower() not in ("", "none"),
    )


def _pem(given: Mapping[str, str], *names: str) -> str | None:
    """Return the first of these that is set: a text as it is, or what is in the file that it names."""
    for name in names:
        if name not in given:
            continue
        if not name.endswith(".location"):
            return given[name]
        try:
            text = Path(given[name]).read_text()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is no text"
            raise BadSecurity(name, f"{given[name]} cannot be read: {reason}; name a file in PEM") from None
        if "-----BEGIN" not in text:
            raise BadSecurity(name, f"{given[name]} is not in PEM; convert it (keytool, openssl pkcs12)")
        return text
    return None


def _login(given: Mapping[str, str]) -> Login:
    mechanism = given.get("sasl.mechanism", given.get("sasl.mechanisms", "GSSAPI")).upper()
    if mechanism not in MECHANISMS:
        raise BadSecurity(
            "sasl.mechanism",
            f"{mechanism} cannot be spoken here; {', '.join(MECHANISMS[:-1])} and {MECHANISMS[-1]} can",
        )
    stated = _jaas(given["sasl.jaas.config"]) if "sasl.jaas.config" in given else {}
    username = given.get("sasl.username", stated.get("username"))
    password = given.get("sasl.password", stated.get("password"))
    if not username or password is None:
        raise BadSecurity(
            "sasl.jaas.config",
            'no username and password are given; write \'… required username="…" password="…";\', '
            "or sasl.username and sasl.password",
        )
    return Login(mechanism, username, password)


def _jaas(text: str) -> dict[str, str]:
    """Read the options of a login module: `org.….ScramLoginModule required username="…" password="…";`."""
    import shlex

    try:
        words = shlex.split(text.strip().removesuffix(";"), posix=True)
    except ValueError as error:
        raise BadSecurity("sasl.jaas.config", f"it cannot be read: {error}") from None
    return dict(word.split("=", 1) for word in words[1:] if "=" in word)


_KNOWN: Final = frozenset(
    {
        "security.protocol", "sasl.jaas.config", "sasl.mechanism", "sasl.mechanisms", "sasl.password", "sasl.username",
        "ssl.ca.location", "ssl.ca.pem", "ssl.certificate.location", "ssl.certificate.pem",
        "ssl.endpoint.identification.algorithm", "ssl.key.location", "ssl.key.password", "ssl.key.pem",
        "ssl.keystore.certificate.chain", "ssl.keystore.key", "ssl.keystore.location", "ssl.keystore.type",
        "ssl.truststore.certificates", "ssl.truststore.location", "ssl.truststore.type",
    }
)  # fmt: skip
_REFUSED: Final = {
    "ssl.truststore.password": "a trust store in PEM has no password; convert the store and leave it out",
    "ssl.keystore.password": "a key store in PEM has none; convert the store, and give the key's as ssl.key.password",
}
