"""Trying a cluster's addresses one by one, as a client would, and noting what each step came to.

A client connects twice: to a bootstrap address, and then to the address that the brokers advertise. The second is
where most trouble lies (containers, other machines, tunnels), so both are tried, step by step. Every step that
fails carries the advice that goes with it.
"""

import asyncio
import ipaddress
import socket
import time
from collections.abc import Awaitable, Mapping, Sequence
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Final, NamedTuple, TypeVar

from riverlog import __version__
from riverlog.cli.internal_topics import COMPACT, KEPT, unfit
from riverlog.cli.terminal.render import plural, size_text
from riverlog.client.errors import KafkaError, Unreachable, error_code
from riverlog.client.network.cluster import Topic, topic_from
from riverlog.client.network.connection import Connection
from riverlog.client.network.security import Security
from riverlog.client.network.tls import TlsNetwork
from riverlog.model.checkpoint_topic import CLEANUP_POLICY
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NO_NODE, Address
from riverlog.model.internal_topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, WAS_DELETED
from riverlog.model.ports import Connecting
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from riverlog.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from riverlog.wire.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from riverlog.wire.messages.metadata import MetadataRequest, MetadataResponse
from riverlog.world.network import TcpNetwork

T = TypeVar("T")

METRICS_PORT: Final = 9644
HTTP_HEAD_BYTES_MAX: Final = 8 * 1024
CLOCK_SECONDS_MAX: Final = 2.0
"""A broker's time comes from the Date of an HTTP answer, in whole seconds: a smaller difference says nothing."""
SLOW_SECONDS: Final = 1.0
NAMES_SHOWN_MAX: Final = 5


class CheckResult(NamedTuple):
    """One thing that was tried. `advice` is there where something is wrong or deserves a look."""

    subject: str
    step: str
    ok: bool | None
    """None where it could not be found out."""
    milliseconds: float | None
    found: str
    advice: str | None = None


class AddressReply(NamedTuple):
    """What one address said."""

    metadata: MetadataResponse
    log_dirs: DescribeLogDirsResponse | None = None
    configs: DescribeConfigsResponse | None = None
    """The settings of internal topics."""


class Examination:
    """Tries everything once; `steps` holds the results in order."""

    def __init__(self, seconds: float, security: Security | None = None) -> None:
        self.steps: list[CheckResult] = []
        self._seconds = seconds
        self._network: Connecting = TcpNetwork()
        if security is not None and security.tls is not None:
            self._network = TlsNetwork(self._network, security.tls.context())
        self._login = None if security is None else security.login

    async def examine(self, bootstrap: Sequence[Address]) -> None:
        """Try the bootstrap addresses, then what they advertise, then look at what they say."""
        answers: dict[Address, AddressReply] = {}
        for address in bootstrap:
            answer = await self._try(address, f"bootstrap {address}", asked=None)
            if answer is not None:
                answers[address] = answer
        if not answers:
            return
        asked, first = next(iter(answers.items()))
        metadata = first.metadata
        for broker in metadata.brokers:
            advertised = Address(broker.host, broker.port)
            subject = f"broker {broker.node_id} at {advertised}"
            answer = answers.get(advertised)
            if answer is not None:
                self._note(subject, "advertised", "the bootstrap address itself")
            else:
                answer = await self._try(advertised, subject, asked=asked)
            if answer is not None and answer.log_dirs is not None:
                self.judge_log_dirs(subject, answer.log_dirs)
            await self._compare_clocks(advertised.host, subject)
        self.judge_cluster({address: answer.metadata for address, answer in answers.items()})
        topics = [topic_from(topic) for topic in metadata.topics if not topic.error_code]
        self.judge_partitions(topics)
        if first.configs is not None:
            self.judge_internal_topics({topic.name: topic for topic in topics}, first.configs)

    async def _try(self, address: Address, subject: str, *, asked: Address | None) -> AddressReply | None:
        """Resolve, connect and ask one address; `asked` is the broker that advertised it, if one did."""
        loop = asyncio.get_running_loop()
        try:
            resolving = loop.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
            found, took = await self._timed(resolving)
        except (OSError, TimeoutError) as error:
            self._fail(
                subject, "resolve", _words(error, "the name service did not answer"), resolve_advice(address, asked)
            )
            return None
        self._note(subject, "resolve", ", ".join(sorted({str(each[4][0]) for each in found})), took)
        opening = Connection.open(
            self._network,
            address,
            client_id="riverlog-doctor",
            connect_seconds=self._seconds,
            request_seconds=self._seconds,
            login=self._login,
        )
        try:
            connection, took = await self._timed(opening)
        except (KafkaError, TimeoutError) as error:
            unreachable = isinstance(error, Unreachable | TimeoutError)
            advice = (
                connect_advice(address, asked) if unreachable else f"Something listens at {address}, but is it Kafka?"
            )
            self._fail(subject, "connect", _words(error, f"no answer within {self._seconds:g} s"), advice)
            return None
        self._note(subject, "connect", "connected, versions agreed on", took)
        try:
            return await self._ask(connection, subject)
        except (KafkaError, TimeoutError) as error:
            advice = "It takes connections but does not answer: look at the broker's log and load."
            self._fail(subject, "ask", _words(error, f"no answer within {self._seconds:g} s"), advice)
            return None
        finally:
            connection.close()

    async def _ask(self, connection: Connection, subject: str) -> AddressReply:
        versions: ApiVersionsResponse
        greeting = ApiVersionsRequest(client_software_name="riverlog", client_software_version=__version__)
        versions, took = await self._timed(connection.request(greeting))
        self._note(subject, "ApiVersions", plural(len(versions.api_keys), "API"), took)
        metadata: MetadataResponse
        metadata, took = await self._timed(
            connection.request(MetadataRequest(topics=None, allow_auto_topic_creation=False))
        )
        brokers, topics = plural(len(metadata.brokers), "broker"), plural(len(metadata.topics), "topic")
        self._note(subject, "Metadata", f"cluster {metadata.cluster_id}, {brokers}, {topics}", took)
        log_dirs = configs = None
        if connection.offers(ApiKey.DESCRIBE_LOG_DIRS):
            log_dirs, _ = await self._timed(connection.request(DescribeLogDirsRequest(topics=[])))
        if connection.offers(ApiKey.DESCRIBE_CONFIGS):
            wanted = [
                DescribeConfigsResource(resource_type=_TOPIC, resource_name=name, configuration_keys=[CLEANUP_POLICY])
                for name in sorted(KEPT)
            ]
            configs, _ = await self._timed(connection.request(DescribeConfigsRequest(resources=wanted)))
        return AddressReply(metadata, log_dirs, configs)

    async def _compare_clocks(self, host: str, subject: str) -> None:
        """Compare with the Date of an HTTP answer: no Kafka request tells a broker's time."""
        try:
            broker_time, _ = await self._timed(_http_date(host, METRICS_PORT))
        except (OSError, TimeoutError, ValueError, EOFError):
            found = f"not known: nothing tells the time at {host}:{METRICS_PORT}"
            self.steps.append(CheckResult(subject, "clock", None, None, found))
            return
        difference = broker_time.timestamp() - time.time()
        if abs(difference) <= CLOCK_SECONDS_MAX:
            self._note(subject, "clock", "agrees with this machine's")
            return
        self._fail(
            subject,
            "clock",
            f"{abs(difference):.0f} s {'ahead of' if difference > 0 else 'behind'} this machine's",
            "Timestamps, retention and seeks by time will surprise: run NTP or chrony on both machines.",
        )

    def judge_cluster(self, answers: dict[Address, MetadataResponse]) -> None:
        """Look at what the brokers say about the cluster as a whole."""
        ids = {answer.cluster_id for answer in answers.values()}
        if len(ids) > 1:
            said = ", ".join(f"{address}: {answer.cluster_id}" for address, answer in answers.items())
            self._fail("cluster", "identity", said, "The bootstrap addresses belong to different clusters: name one.")
        metadata = next(iter(answers.values()))
        if metadata.controller_id == NO_NODE:
            self._fail(
                "cluster",
                "controller",
                "there is none",
                "Topics cannot be created or changed: look at the logs of the controllers.",
            )
        else:
            self._note("cluster", "controller", f"node {metadata.controller_id}")

    def judge_partitions(self, topics: Sequence[Topic]) -> None:
        """Look for partitions that cannot be used, or that have fewer copies than they should."""
        partitions = [(topic.name, partition) for topic in topics for partition in topic.partitions]
        leaderless = [f"{name}-{each.index}" for name, each in partitions if each.leader == NO_NODE]
        behind = [f"{name}-{each.index}" for name, each in partitions if len(each.in_sync) < len(each.replicas)]
        if leaderless:
            self._fail(
                "cluster",
                "leaders",
                f"{plural(len(leaderless), 'partition')} without one: {_some(leaderless)}",
                "They can be neither written nor read: start the brokers that hold their replicas.",
            )
        if behind:
            self._fail(
                "cluster",
                "replicas",
                f"{plural(len(behind), 'partition')} with replicas out of sync: {_some(behind)}",
                "Records there have fewer copies than asked for: look for stopped or slow brokers.",
            )
        if not leaderless and not behind:
            self._note("cluster", "partitions", f"{plural(len(partitions), 'partition')}, all led and in sync")

    def judge_log_dirs(self, subject: str, described: DescribeLogDirsResponse) -> None:
        """Look for log directories of a broker that take no more records."""
        if described.error_code:
            return  # not for everybody to know
        sound = True
        for each in described.results:
            if each.error_code:
                reason = error_code(each.error_code).title
                self._fail(subject, "disk", f"{each.log_dir} is offline: {reason}", _OFFLINE_ADVICE)
                sound = False
                continue
            if each.damaged:
                count = plural(len(each.damaged), "partition")
                found = f"{each.log_dir} holds {count} with damage: {_some(each.damaged)}"
                self._fail(subject, "damage", found, _damage_advice(each.damaged))
            if each.usable_bytes == 0:
                self._fail(subject, "disk", f"{each.log_dir} is full: it takes no more records", _FULL_ADVICE)
                sound = False
        if sound:
            free = [each.usable_bytes for each in described.results if each.usable_bytes > 0]
            least = " where there is least" if len(free) > 1 else ""
            room = f", {size_text(min(free))} free{least}" if free else ""
            self._note(subject, "disk", f"{plural(len(described.results), 'log directory', 'log directories')}{room}")

    def judge_internal_topics(self, topics: Mapping[str, Topic], configs: DescribeConfigsResponse) -> None:
        """Look for internal topics that were deleted, or that lose what is kept in them."""
        missing = []
        for described in configs.results:
            name = described.resource_name
            topic = topics.get(name)
            if WAS_DELETED in (described.error_message or ""):
                self._fail("cluster", "internal", f"{name} was deleted", _deleted_advice(name))
            elif topic is None:
                missing.append(name)
            elif described.error_code == ErrorCode.NONE:
                policy = next((each.value for each in described.configs if each.name == CLEANUP_POLICY), None)
                if (problem := unfit(name, len(topic.partitions), policy)) is not None:
                    self._fail("cluster", "internal", problem, _unfit_advice(name))
                else:
                    self._note("cluster", "internal", f"{name} keeps {KEPT[name]}")
        if missing:
            self._note("cluster", "internal", f"not there, and made when first needed: {', '.join(missing)}")

    async def _timed(self, work: Awaitable[T]) -> tuple[T, float]:
        began = time.perf_counter()
        async with asyncio.timeout(2 * self._seconds):  # a connection and its first answer may take one each
            result = await work
        return result, time.perf_counter() - began

    def _note(self, subject: str, step: str, found: str, seconds: float | None = None) -> None:
        slow = seconds is not None and seconds > SLOW_SECONDS
        advice = "That is slow: look at the network between, or at the load of either side." if slow else None
        self.steps.append(CheckResult(subject, step, True, _milliseconds(seconds), found, advice))

    def _fail(self, subject: str, step: str, found: str, advice: str) -> None:
        self.steps.append(CheckResult(subject, step, False, None, found, advice))


_TOPIC: Final = 2
_OFFLINE_ADVICE: Final = "Partitions there can be neither written nor read: repair the disk and restart the broker."
_FULL_ADVICE: Final = "Free some room on that disk or shorten retention; a riverlog node then takes records again."


def _damage_advice(names: Sequence[str]) -> str:
    advice = "Some records there are not served: the broker's log names them. Restore the files from a copy"
    if any(name.startswith(f"{TRANSACTIONS_TOPIC}-") for name in names):
        return f"{advice}; until then, transactional ids that belong there cannot be used."
    if any(name.startswith(f"{OFFSETS_TOPIC}-") for name in names):
        return f"{advice}; groups that belong there may have gone back to older commits."
    return f"{advice}, or let consumers seek past them."


def _deleted_advice(name: str) -> str:
    return f"With it went {KEPT[name]}. It is made again when it is first needed, empty."


def _unfit_advice(name: str) -> str:
    change = f"`riverlog topics alter {name} --config {CLEANUP_POLICY}={COMPACT} --internal`"
    return f"It loses {KEPT[name]} sooner or later. {change} mends the setting."


async def _http_date(host: str, port: int) -> datetime:
    """Ask a riverlog node's health page when it is."""
    reader, writer = await asyncio.open_connection(host, port, limit=HTTP_HEAD_BYTES_MAX)
    try:
        writer.write(f"GET /health HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
    finally:
        writer.close()
    for line in head.decode("latin-1").split("\r\n"):
        name, _, value = line.partition(":")
        if name.lower() == "date":
            return parsedate_to_datetime(value.strip())
    raise ValueError("the answer has no date")


def resolve_advice(address: Address, asked: Address | None) -> str:
    """Advise about a name that cannot be resolved."""
    if asked is None:
        return f"Check the spelling of '{address.host}', or use the broker's IP address."
    return (
        f"The broker at {asked} tells clients to connect to '{address.host}', a name that this machine does not know: "
        f"set advertised.listeners on the broker to a name or address that clients can resolve."
    )


def connect_advice(address: Address, asked: Address | None) -> str:
    """Advise about an address where nobody answers."""
    if asked is None:
        return f"Is a broker running there? `riverlog dev --port {address.port}` starts one on this machine."
    own = " That is this machine itself." if _is_loopback(address.host) and not _is_loopback(asked.host) else ""
    return (
        f"The broker at {asked} tells clients to connect to {address}, which does not answer.{own} Set "
        f"advertised.listeners on the broker to an address that clients can reach, or open the port."
    )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _words(error: Exception, otherwise: str) -> str:
    if isinstance(error, KafkaError):
        return error.message
    if isinstance(error, TimeoutError):
        return otherwise
    return str(error.args[-1]) if error.args else otherwise


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:NAMES_SHOWN_MAX])
    return shown if len(names) <= NAMES_SHOWN_MAX else f"{shown} and {len(names) - NAMES_SHOWN_MAX:,} more"


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1000, 2)
