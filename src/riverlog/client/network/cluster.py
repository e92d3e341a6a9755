"""The cluster as a client sees it: who is there, who leads what, and a way to ask each of them.

Metadata is a cache of what some broker last said. Whoever is told that it is wrong calls `refresh_soon`; an older
leader epoch never replaces a newer one. Connections are opened on first use, one per broker and lane: a long-polling
Fetch must not hold up what is asked beside it.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from riverlog.client.arguments import checked_text
from riverlog.client.errors import Closed, KafkaError, Unreachable, check, error_code, failure
from riverlog.client.limits import UNKNOWN_TOPIC_ATTEMPTS_MAX
from riverlog.client.network.connection import Connection
from riverlog.client.network.security import Security
from riverlog.client.network.tls import TlsNetwork
from riverlog.client.ports import Ports, real_ports
from riverlog.model.addresses import parse_addresses
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NO_NODE, NO_TOPIC_ID, Address, NodeId, TopicId, TopicPartition
from riverlog.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)

CONTROL_LANE: Final = "control"


@dataclass(frozen=True, slots=True)
class Broker:
    """A member of the cluster and where it listens."""

    node_id: NodeId
    host: str
    port: int
    rack: str | None = None

    @property
    def address(self) -> Address:
        return Address(self.host, self.port)


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition: its leader (-1 while there is none), replicas, and those in sync."""

    index: int
    leader: NodeId
    leader_epoch: int
    replicas: tuple[NodeId, ...]
    in_sync: tuple[NodeId, ...]
    offline: tuple[NodeId, ...] = ()


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic with its partitions in order."""

    name: str
    topic_id: TopicId
    partitions: tuple[Partition, ...]
    is_internal: bool = False
    available: tuple[int, ...] = field(default=(), repr=False)
    """The partitions that have a leader."""


class Cluster:
    """Bootstraps, remembers metadata, and hands out connections."""

    def __init__(
        self,
        bootstrap: str | Sequence[str],
        *,
        ports: Ports | None = None,
        client_id: str = "riverlog",
        request_timeout_ms: int = 30_000,
        connect_timeout_ms: int = 10_000,
        retry_backoff_ms: int = 100,
        retry_backoff_max_ms: int = 1_000,
        metadata_age_max_ms: int = 300_000,
        create_topics: bool = False,
        security: Security | None = None,
    ) -> None:
        self.bootstrap = parse_addresses(bootstrap)
        self.ports = ports or real_ports()
        if security is not None and security.tls is not None:
            self.ports = self.ports._replace(network=TlsNetwork(self.ports.network, security.tls.context()))
        self._login = None if security is None else security.login
        self.client_id = checked_text("client_id", client_id)
        self.request_seconds = request_timeout_ms / 1000
        self.cluster_id: str | None = None
        self.controller: NodeId = NO_NODE
        self.brokers: dict[NodeId, Broker] = {}
        self.topics: dict[str, Topic] = {}
        self.topic_names: dict[TopicId, str] = {}
        self.on_update: Callable[[], None] = _nothing
        """Called after each refresh, for those who wait for a leader."""
        self.unanswered_since: float | None = None
        """Since when something has been asked in vain, by the loop's clock; None once somebody answers."""
        self.last_problem: KafkaError | None = None
        """Why it was in vain."""
        self._connect_seconds = connect_timeout_ms / 1000
        self._backoff_seconds = retry_backoff_ms / 1000
        self._backoff_seconds_max = retry_backoff_max_ms / 1000
        self._age_seconds_max = metadata_age_max_ms / 1000
        self._create_topics = create_topics
        self._interest: set[str] = set()
        self._interest_in_all = False
        self._topic_errors: dict[str, ErrorCode] = {}
        self._connections: dict[tuple[Address, str], Connection] = {}
        self._connecting: dict[tuple[Address, str], asyncio.Task[Connection]] = {}
        self._connecting_since: dict[tuple[Address, str], float] = {}
        self._refreshing: asyncio.Task[None] | None = None
        self._refreshed_at = float("-inf")
        self._aging: asyncio.TimerHandle | None = None
        self._refresh_failures = 0
        self._closed = False

    async def start(self) -> None:
        """Reach some broker and learn who is there; raise Unreachable with each address that was tried."""
        await self.refresh()

    @asynccontextmanager
    async def starting(self) -> AsyncIterator[None]:
        """Start; where that fails, or what somebody begins meanwhile, disconnect again, and all may be tried anew."""
        try:
            await self.start()
            yield
        except BaseException:
            await self.disconnect()
            raise

    async def close(self) -> None:
        """Close every connection, for good; what is unanswered fails."""
        self._closed = True
        await self.disconnect()

    async def disconnect(self) -> None:
        """Release every connection; whoever asks again opens another."""
        if self._aging is not None:
            self._aging.cancel()
        tasks = [*self._connecting.values(), *([self._refreshing] if self._refreshing else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    # Metadata ---------------------------------------------------------------------------------------------

    def leader_of(self, partition: TopicPartition) -> NodeId | None:
        """Return the leader's id, or None while it is not known or there is none."""
        topic = self.topics.get(partition.topic)
        if topic is None or partition.partition >= len(topic.partitions):
            return None
        leader = topic.partitions[partition.partition].leader
        return leader if leader in self.brokers else None

    async def topic(self, name: str, *, seconds: float = 60.0) -> Topic:
        """Return the topic, asking for it where it is not known yet; raise KafkaError where there is none."""
        found = self.topics.get(name)
        if found is not None:
            return found
        checked_text("a topic's name", name)
        self._interest.add(name)
        deadline = asyncio.get_running_loop().time() + seconds
        attempt = 0
        while True:
            problem: KafkaError
            try:
                await self.refresh()
            except KafkaError as error:
                problem = error
            else:
                found = self.topics.get(name)
                if found is not None:
                    return found
                code = self._topic_errors.get(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                problem = failure(code, f"topic {name!r}", _topic_problem(name, code))
            attempt += 1
            unknown = problem.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            pause = self.backoff(attempt)
            too_often = unknown and attempt >= (UNKNOWN_TOPIC_ATTEMPTS_MAX if self._create_topics else 2)
            if not problem.retriable or too_often or asyncio.get_running_loop().time() + pause > deadline:
                self._interest.discard(name)
                raise problem
            await asyncio.sleep(pause)

    def watch(self, topics: Iterable[str]) -> None:
        """Include these topics in every refresh from now on."""
        self._interest.update(topics)

    def watch_all(self) -> None:
        """Include every topic that there is in every refresh from now on."""
        self._interest_in_all = True

    async def refresh(self) -> None:
        """Ask some broker for the metadata of all topics of interest; concurrent callers share one request."""
        if self._refreshing is None:
            self._refreshing = asyncio.create_task(self._refresh())
            self._refreshing.add_done_callback(self._refresh_done)
        await asyncio.shield(self._refreshing)

    def refresh_soon(self) -> None:
        """Refresh in the background, not more often than the back-off allows; `on_update` tells when it is done."""
        if self._refreshing is not None or self._closed:
            return
        self._refreshing = asyncio.create_task(self._refresh_later())
        self._refreshing.add_done_callback(self._refresh_done)

    def asked_in_vain(self, problem: KafkaError) -> None:
        """Remember that nobody could answer, and why, until somebody does."""
        self.unanswered_since = self.unanswered_since or asyncio.get_running_loop().time()
        self.last_problem = problem

    def answered(self) -> None:
        """Remember that somebody answers."""
        self.unanswered_since = self.last_problem = None

    def waiting_since(self) -> float | None:
        """Return since when something that is answered at once has not been, or has been asked in vain."""
        asked = [each.waiting_since for (_, lane), each in self._connections.items() if lane == CONTROL_LANE]
        since = [at for at in (self.unanswered_since, *self._connecting_since.values(), *asked) if at is not None]
        return min(since, default=None)

    def backoff(self, attempt: int) -> float:
        """Return the seconds to wait before the next attempt, the first being 1: doubling, with a fifth of chance."""
        seconds = min(self._backoff_seconds_max, self._backoff_seconds * 2.0 ** (min(attempt, 30) - 1))
        return seconds * (0.8 + 0.4 * self.ports.random.random())

    async def _refresh_later(self) -> None:
        loop = asyncio.get_running_loop()
        earliest = self._refreshed_at + self.backoff(self._refresh_failures + 1)
        await asyncio.sleep(max(0.0, earliest - loop.time()))
        await self._refresh()

    async def _refresh(self) -> None:
        loop = asyncio.get_running_loop()
        named = [MetadataRequestTopic(name=name) for name in sorted(self._interest)]
        request = MetadataRequest(
            topics=None if self._interest_in_all else named,
            allow_auto_topic_creation=self._create_topics,
        )
        try:
            response: MetadataResponse = await self.ask_any(request)
        except KafkaError as error:
            self._refresh_failures += 1
            self.asked_in_vain(error)
            raise
        finally:
            self._refreshed_at = loop.time()
        self._refresh_failures = 0
        self.answered()
        self._learn(response)
        if self._aging is not None:
            self._aging.cancel()
        self._aging = loop.call_later(self._age_seconds_max, self.refresh_soon)

    def _refresh_done(self, task: asyncio.Task[None]) -> None:
        self._refreshing = None
        if not task.cancelled():
            task.exception()  # told to those who awaited it; in the background the next attempt will tell
            self.on_update()

    def _learn(self, response: MetadataResponse) -> None:
        check(response.error_code, "the cluster's metadata")
        self.cluster_id = response.cluster_id
        self.controller = NodeId(response.controller_id)
        self.brokers = {
            NodeId(broker.node_id): Broker(NodeId(broker.node_id), broker.host, broker.port, broker.rack)
            for broker in response.brokers
        }
        if self._interest_in_all:
            for gone in self.topics.keys() - {entry.name for entry in response.topics}:
                self._forget(gone)
        for entry in response.topics:
            if entry.name is None:
                continue
            if entry.error_code != ErrorCode.NONE:
                self._topic_errors[entry.name] = error_code(entry.error_code)
                self._forget(entry.name)
                continue
            self._topic_errors.pop(entry.name, None)
            topic = _newest(topic_from(entry), self.topics.get(entry.name))
            self._forget(entry.name)
            self.topics[topic.name] = topic
            if topic.topic_id != NO_TOPIC_ID:
                self.topic_names[topic.topic_id] = topic.name

    def _forget(self, name: str) -> None:
        known = self.topics.pop(name, None)
        if known is not None:
            self.topic_names.pop(known.topic_id, None)

    # Connections ------------------------------------------------------------------------------------------

    async def ask(self, node: NodeId, message: object, *, seconds: float | None = None) -> Any:
        """Ask one broker of the cluster."""
        return await (await self.connection(node)).request(message, seconds=seconds)

    async def ask_any(self, message: object, *, seconds: float | None = None) -> Any:
        """Ask any broker that can be reached: the ones in use first, then the known ones, then the bootstrap's."""
        reasons: list[str] = []
        for address in self._addresses():
            try:
                return await (await self._connect(address, CONTROL_LANE)).request(message, seconds=seconds)
            except Unreachable as error:
                reasons.append(error.message)
        raise Unreachable.all_of(reasons)

    async def ask_controller(self, message: object, *, seconds: float | None = None) -> Any:
        """Ask the controller, or any broker where there is none to be asked by clients."""
        if self.controller in self.brokers:
            return await self.ask(self.controller, message, seconds=seconds)
        return await self.ask_any(message, seconds=seconds)

    async def connection(self, node: NodeId, lane: str = CONTROL_LANE) -> Connection:
        """Return a connection to this broker, opening it if need be."""
        broker = self.brokers.get(node)
        if broker is None:
            raise Unreachable(f"node {node} is not in the cluster's metadata")
        return await self._connect(broker.address, lane)

    def open_connection(self, node: NodeId, lane: str) -> Connection | None:
        """Return the connection to this broker if it is open."""
        broker = self.brokers.get(node)
        found = None if broker is None else self._connections.get((broker.address, lane))
        return None if found is None or found.closed else found

    def _addresses(self) -> list[Address]:
        in_use = [address for (address, _), connection in self._connections.items() if not connection.closed]
        known = [broker.address for broker in self.brokers.values()]
        return list(dict.fromkeys([*in_use, *known, *self.bootstrap]))

    async def _connect(self, address: Address, lane: str) -> Connection:
        if self._closed:
            raise Closed("client")
        key = (address, lane)
        found = self._connections.get(key)
        if found is not None and not found.closed:
            return found
        opening = self._connecting.get(key)
        if opening is None:
            opening = asyncio.create_task(self._open(key))
            self._connecting[key] = opening
            self._connecting_since[key] = asyncio.get_running_loop().time()
            opening.add_done_callback(lambda task: self._opened(key, task))
        return await asyncio.shield(opening)

    async def _open(self, key: tuple[Address, str]) -> Connection:
        connection = await Connection.open(
            self.ports.network,
            key[0],
            client_id=self.client_id,
            connect_seconds=self._connect_seconds,
            request_seconds=self.request_seconds,
            login=self._login,
        )
        self._connections[key] = connection
        self.answered()
        return connection

    def _opened(self, key: tuple[Address, str], task: asyncio.Task[Connection]) -> None:
        self._connecting.pop(key, None)
        self._connecting_since.pop(key, None)
        if not task.cancelled():
            task.exception()  # told to those who wait for it

    def __repr__(self) -> str:
        return f"<Cluster {self.cluster_id or '?'} at {', '.join(map(str, self.bootstrap))}>"


class KeptCluster(Cluster):
    """A cluster for one user after another. Each of them starts and closes it, and it stays connected in between."""

    async def start(self) -> None:
        """Ask who is there, unless that is known and somebody is connected."""
        if all(connection.closed for connection in self._connections.values()):
            await self.refresh()

    async def close(self) -> None:
        """Be there for the next one."""
        self.on_update = _nothing

    async def let_go(self) -> None:
        """Close every connection, for good."""
        await super().close()


def topic_from(entry: MetadataResponseTopic) -> Topic:
    """Read a topic of a Metadata response; partitions come in any order there."""
    partitions = tuple(
        Partition(
            index=partition.partition_index,
            leader=NodeId(partition.leader_id),
            leader_epoch=partition.leader_epoch,
            replicas=tuple(map(NodeId, partition.replica_nodes)),
            in_sync=tuple(map(NodeId, partition.isr_nodes)),
            offline=tuple(map(NodeId, partition.offline_replicas)),
        )
        for partition in sorted(entry.partitions, key=lambda partition: partition.partition_index)
    )
    return Topic(
        name=entry.name or "",
        topic_id=TopicId(entry.topic_id),
        partitions=partitions,
        is_internal=entry.is_internal,
        available=tuple(partition.index for partition in partitions if partition.leader != NO_NODE),
    )


def _newest(fresh: Topic, known: Topic | None) -> Topic:
    """Keep what is known of a partition where the answer is older (KIP-320): brokers learn at different times."""
    if known is None or known.topic_id != fresh.topic_id:
        return fresh
    partitions = tuple(
        known.partitions[index]
        if index < len(known.partitions) and known.partitions[index].leader_epoch > partition.leader_epoch >= 0
        else partition
        for index, partition in enumerate(fresh.partitions)
    )
    available = tuple(partition.index for partition in partitions if partition.leader != NO_NODE)
    return Topic(fresh.name, fresh.topic_id, partitions, fresh.is_internal, available)


def _topic_problem(name: str, code: ErrorCode) -> str | None:
    if code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return f"the cluster has no such topic. Create it: await admin.create_topic({name!r}, partitions=3)"
    return None


def _nothing() -> None:
    pass
