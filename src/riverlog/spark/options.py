"""Options as both directions understand them: names in any case, a cluster's address, and what the client is told.

An option that begins with `kafka.` is a setting of Kafka's clients. Those that this client has are used, those that
have no meaning for it are ignored, and those that ask for what it cannot do are refused. An unknown name is refused
with the nearest one that is known.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from riverlog.model.addresses import parse_addresses

if TYPE_CHECKING:
    from riverlog.client.network.security import Security

KAFKA: Final = "kafka."
BOOTSTRAP_OPTIONS: Final = ("kafka.bootstrap.servers", "bootstrap")
BOOTSTRAP_VARIABLE: Final = "RIVERLOG_BOOTSTRAP_SERVERS"
BOOTSTRAP: Final = "127.0.0.1:9092"


class BadOption(ValueError):
    """An option cannot be what it is; the message says why and what to write instead."""

    def __init__(self, name: str, value: str | None, reason: str) -> None:
        super().__init__(f"option {name}: {reason}" if value is None else f"option {name}={value!r}: {reason}")


class ClientOptions(NamedTuple):
    """Where the cluster is, and settings that every part of the client takes."""

    bootstrap: str
    client: dict[str, Any]


class Options:
    """What a program has set, with case that does not matter."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._given = {name.lower(): value for name, value in given.items()}

    def names(self) -> Iterable[str]:
        """Return the names that are set, in small letters."""
        return self._given.keys()

    def text(self, name: str) -> str | None:
        """Return an option as it is, without space around it; None where it is not set."""
        value = self._given.get(name.lower())
        return None if value is None else value.strip()

    def flag(self, name: str, *, default: bool) -> bool:
        """Return an option that is true or false."""
        value = self.text(name)
        if value is None:
            return default
        if value.lower() not in ("true", "false"):
            raise BadOption(name, value, "write true or false")
        return value.lower() == "true"

    def number(self, name: str, *, least: int = 1) -> int | None:
        """Return an option that is a whole number; None where it is not set."""
        value = self.text(name)
        if value is None:
            return None
        try:
            number = int(value)
        except ValueError:
            raise BadOption(name, value, "write a whole number") from None
        if number < least:
            raise BadOption(name, value, f"write a number that is not smaller than {least}")
        return number

    def choice(self, name: str, choices: Iterable[str], *, default: str) -> str:
        """Return an option that is one of a few words."""
        known = tuple(choices)
        value = self.text(name)
        if value is None:
            return default
        if value.lower() not in known:
            raise BadOption(name, value, f"write {', '.join(known[:-1])} or {known[-1]}")
        return value.lower()


def cluster_options(options: Options) -> ClientOptions:
    """Find the cluster: what the program says, RIVERLOG_BOOTSTRAP_SERVERS, or this machine."""
    given = [(name, value) for name in BOOTSTRAP_OPTIONS if (value := options.text(name)) is not None]
    if len({value for _, value in given}) > 1:
        raise BadOption(given[1][0], given[1][1], f"{given[0][0]}={given[0][1]!r} says something else; leave one out")
    bootstrap = given[0][1] if given else os.environ.get(BOOTSTRAP_VARIABLE) or BOOTSTRAP
    _check_addresses(given[0][0] if given else BOOTSTRAP_VARIABLE, bootstrap)
    client: dict[str, Any] = {}
    for name, (argument, read) in _CLIENT.items():
        value = read(options, KAFKA + name)
        if value is not None:
            client[argument] = value
    if (security := _security(options)) is not None:
        client["security"] = security
    return ClientOptions(bootstrap, client)


def _security(options: Options) -> "Security | None":
    """Read how the cluster is to be reached; the password of a login is in no message."""
    settings = {
        name.removeprefix(KAFKA): options.text(name) or "" for name in options.names() if name.startswith(KAFKA)
    }
    if not any(name.startswith(_SECURITY) for name in settings):
        return None  # as mostly; and steps that ask no cluster load no client
    from riverlog.client.network.security import BadSecurity, Security

    try:
        security = Security.from_settings(settings)
        if security is not None and security.tls is not None:
            security.tls.context()  # what is wrong with a certificate is told here, and not by every task
    except BadSecurity as problem:
        raise BadOption(KAFKA + problem.name, None, problem.reason) from None
    return security


def check_names(options: Options, known: Iterable[str], refused: Mapping[str, str]) -> None:
    """Refuse what nobody knows and what cannot be had; `known` and `refused` are those of one direction.

    Spark's own additions are the caller's to name. Names of Kafka's clients begin with `kafka.` there, too.
    """
    by_name = {name.lower(): name for name in (*known, *BOOTSTRAP_OPTIONS, *(KAFKA + name for name in _CLIENT))}
    refusals = {name.lower(): (name, reason) for name, reason in (*refused.items(), *_REFUSED.items())}
    for name in options.names():
        if name in by_name:
            continue
        if name in refusals:
            raise BadOption(*_named(refusals[name], options.text(name)))
        if name.startswith(KAFKA):
            _check_setting(name.removeprefix(KAFKA), by_name)
        else:
            raise BadOption(name, None, _unknown("there is no such option", name, by_name))


def _named(refusal: tuple[str, str], value: str | None) -> tuple[str, str | None, str]:
    return refusal[0], value, refusal[1]


def _check_setting(name: str, known: Mapping[str, str]) -> None:
    """Pass over what has no meaning here; refuse what this client cannot do, and names that Kafka does not know."""
    if name.startswith(_SECURITY):
        return  # read, or refused, where the connection is
    if name not in MEANINGLESS:
        known = {**known, **{KAFKA + other: KAFKA + other for other in MEANINGLESS}}
        raise BadOption(KAFKA + name, None, _unknown("Kafka's clients have no such setting", KAFKA + name, known))


def _unknown(problem: str, name: str, known: Mapping[str, str]) -> str:
    nearest = get_close_matches(name, known, n=1, cutoff=0.6)
    return f"{problem}; did you mean {known[nearest[0]]}?" if nearest else f"{problem}; leave it out"


def _check_addresses(name: str, bootstrap: str) -> None:
    try:
        parse_addresses(bootstrap)
    except ValueError as problem:
        raise BadOption(name, bootstrap, str(problem)) from None


_CLIENT: Final[dict[str, tuple[str, Callable[[Options, str], Any]]]] = {
    "client.id": ("client_id", Options.text),
    "request.timeout.ms": ("request_timeout_ms", Options.number),
    "retry.backoff.ms": ("retry_backoff_ms", Options.number),
}
"""Settings of Kafka's clients that every part of this client has, with its own names for them."""

_SECURITY: Final = ("security.", "ssl.", "sasl.")

_REFUSED: Final = {
    "kafka.key.deserializer": "keys are always binary; cast the column instead",
    "kafka.value.deserializer": "values are always binary; cast the column, or set value.format=json",
    "kafka.key.serializer": "keys are always binary or text; cast the column instead",
    "kafka.value.serializer": "values are always binary or text; cast the column instead",
    "kafka.interceptor.classes": "there are no interceptors here; leave it out",
}

MEANINGLESS: Final = frozenset(
    {
        "acks", "allow.auto.create.topics", "auto.commit.interval.ms", "auto.include.jmx.reporter", "batch.size",
        "buffer.memory", "check.crcs", "client.dns.lookup", "client.rack", "compression.gzip.level",
        "compression.lz4.level", "compression.type", "compression.zstd.level", "connections.max.idle.ms",
        "default.api.timeout.ms", "delivery.timeout.ms", "enable.idempotence", "enable.metrics.push",
        "exclude.internal.topics", "fetch.max.bytes", "fetch.max.wait.ms", "fetch.min.bytes", "group.id",
        "group.instance.id", "group.protocol", "group.remote.assignor", "heartbeat.interval.ms", "isolation.level",
        "linger.ms", "max.block.ms", "max.in.flight.requests.per.connection", "max.partition.fetch.bytes",
        "max.poll.interval.ms", "max.poll.records", "max.request.size", "metadata.max.age.ms", "metadata.max.idle.ms",
        "metadata.recovery.rebootstrap.trigger.ms", "metadata.recovery.strategy", "metric.reporters",
        "metrics.num.samples", "metrics.recording.level", "metrics.sample.window.ms",
        "partition.assignment.strategy", "partitioner.adaptive.partitioning.enable",
        "partitioner.availability.timeout.ms", "partitioner.class", "partitioner.ignore.keys",
        "receive.buffer.bytes", "reconnect.backoff.max.ms", "reconnect.backoff.ms", "retries",
        "retry.backoff.max.ms", "send.buffer.bytes", "session.timeout.ms", "socket.connection.setup.timeout.max.ms",
        "socket.connection.setup.timeout.ms", "transaction.timeout.ms", "transactional.id",
    }
)  # fmt: skip
"""Settings of Kafka's clients that mean nothing to this one, or only to one direction, which then knows them."""
