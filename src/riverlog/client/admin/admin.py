"""The admin: topics, their settings, groups, transactions, and what the cluster says about itself.

    async with Admin("127.0.0.1:9092") as admin:
        await admin.create_topic("orders", partitions=3)

Every call either does what it says or raises KafkaError with the cluster's own reason. Where one call is about
several things and some of them fail, the others are done all the same; PartlyFailed names each failure.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Final, Self, TypeVar

from riverlog.client.admin.groups import GroupAdmin
from riverlog.client.admin.quorum import QuorumCalls
from riverlog.client.admin.transactions import TransactionAdmin
from riverlog.client.arguments import (
    check_whole,
    checked_int32,
    checked_int64,
    checked_partition,
    checked_setting,
    checked_text,
    checked_texts,
)
from riverlog.client.errors import KafkaError, PartlyFailed, TimedOut, Unreachable, check, error_code, failure
from riverlog.client.lifetime import Startable
from riverlog.client.network.cluster import Broker, Cluster, Topic, topic_from
from riverlog.client.network.security import Security
from riverlog.client.offsets import FoundOffset, IsolationLevel, OffsetQuestion, list_offsets
from riverlog.client.ports import Ports
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NodeId, Offset, TopicId, TopicPartition
from riverlog.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from riverlog.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from riverlog.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from riverlog.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from riverlog.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from riverlog.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)
from riverlog.wire.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from riverlog.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    ConfigOperation,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from riverlog.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

T = TypeVar("T")

ALL_BROKERS: Final = -1
"""Settings that were made for all brokers at once, where one broker could be named."""


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to be created; -1 leaves a number to the cluster's defaults."""

    name: str
    partitions: int = -1
    replication_factor: int = -1
    configs: Mapping[str, str] = field(default_factory=dict)
    assignments: Sequence[Sequence[int]] = ()
    """The replicas of each partition, leader first; given instead of the two numbers."""


@dataclass(frozen=True, slots=True)
class CreatedTopic:
    """A topic that was created; numbers are -1 where an old broker does not tell."""

    name: str
    topic_id: TopicId
    partitions: int
    replication_factor: int


class ConfigSource(IntEnum):
    """Where a setting's value comes from."""

    UNKNOWN = 0
    TOPIC = 1
    BROKER_DYNAMIC = 2
    CLUSTER_DYNAMIC = 3
    BROKER_STATIC = 4
    DEFAULT = 5
    GROUP = 8


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """One setting as it is in force; a sensitive one has no value."""

    name: str
    value: str | None
    source: ConfigSource
    read_only: bool = False
    sensitive: bool = False
    documentation: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class ClusterDescription:
    """Who is in the cluster and who controls it."""

    cluster_id: str
    controller: NodeId
    brokers: tuple[Broker, ...]
    fenced: frozenset[NodeId] = frozenset()
    """Those of the brokers that have no session with the controller."""


@dataclass(frozen=True, slots=True)
class LogDirectoryDescription:
    """One log directory of one node, with the bytes that each partition takes there; sizes are -1 where unknown."""

    node_id: NodeId
    path: str
    partitions: dict[TopicPartition, int] = field(repr=False)
    total_bytes: int = -1
    usable_bytes: int = -1
    error: ErrorCode = ErrorCode.NONE

    @property
    def is_full(self) -> bool:
        """Return whether no record has room there any more."""
        return self.usable_bytes == 0


class Admin(GroupAdmin, TransactionAdmin, QuorumCalls, Startable):
    """Asks the cluster for changes. Use it as an async context manager, or call `start` and `close`."""

    def __init__(
        self,
        bootstrap: str | Sequence[str],
        *,
        timeout_ms: int = 30_000,
        client_id: str = "riverlog-admin",
        retry_backoff_ms: int = 100,
        security: Security | None = None,
        ports: Ports | None = None,
    ) -> None:
        self._timeout_ms = checked_int32("timeout_ms", timeout_ms)
        self._asker = self._cluster = Cluster(
            bootstrap,
            ports=ports,
            client_id=client_id,
            request_timeout_ms=timeout_ms,
            retry_backoff_ms=retry_backoff_ms,
            security=security,
        )

    async def start(self) -> Self:
        """Reach the cluster; raise Unreachable where that fails, and then it may be tried again."""
        async with self._cluster.starting():
            return self

    async def close(self) -> None:
        await self._cluster.close()

    def unanswered(self) -> tuple[float, KafkaError | None]:
        """Return for how many seconds the cluster has owed an answer, and the last failure if any."""
        since = self._cluster.waiting_since()
        seconds = 0.0 if since is None else asyncio.get_running_loop().time() - since
        return max(0.0, seconds), self._cluster.last_problem

    def __repr__(self) -> str:
        return f"<Admin for {', '.join(map(str, self._cluster.bootstrap))}>"

    # Topics -----------------------------------------------------------------------------------------------

    async def create_topic(
        self,
        name: str,
        *,
        partitions: int = -1,
        replication_factor: int = -1,
        configs: Mapping[str, str] | None = None,
        validate_only: bool = False,
    ) -> CreatedTopic:
        """Create one topic; with `validate_only` only say whether it could be."""
        topic = NewTopic(name, partitions, replication_factor, configs or {})
        return (await self.create_topics([topic], validate_only=validate_only))[0]

    async def create_topics(self, topics: Iterable[NewTopic], *, validate_only: bool = False) -> list[CreatedTopic]:
        """Create several topics, in one request."""
        request = CreateTopicsRequest(
            topics=[_creatable(topic) for topic in topics], timeout_ms=self._timeout_ms, validate_only=validate_only
        )

        is_unknown = False  # what became of an earlier attempt

        async def attempt() -> list[CreatedTopic]:
            nonlocal is_unknown
            try:
                response: CreateTopicsResponse = await self._cluster.ask_controller(request)
            except (Unreachable, TimedOut):
                is_unknown = True
                raise
            failures = {
                entry.name: (entry.error_code, _perhaps_own(entry) if is_unknown else entry.error_message)
                for entry in response.topics
            }
            is_unknown |= any(entry.error_code == ErrorCode.REQUEST_TIMED_OUT for entry in response.topics)
            _raise_failures(failures, "topic {!r}")
            return [
                CreatedTopic(entry.name, TopicId(entry.topic_id), entry.num_partitions, entry.replication_factor)
                for entry in response.topics
            ]

        return await self._until_done(attempt)

    async def delete_topics(self, names: str | Iterable[str]) -> None:
        """Delete topics with all their records."""
        wanted = checked_texts("a topic's name", names)
        request = DeleteTopicsRequest(
            topics=[DeleteTopicState(name=name) for name in wanted], topic_names=wanted, timeout_ms=self._timeout_ms
        )

        async def attempt() -> None:
            response: DeleteTopicsResponse = await self._cluster.ask_controller(request)
            _raise_failures(
                {entry.name or "?": (entry.error_code, entry.error_message) for entry in response.responses},
                "topic {!r}",
            )

        await self._until_done(attempt)

    async def list_topics(self, *, internal: bool = False) -> list[Topic]:
        """Return all topics by name; those that the cluster keeps for itself only with `internal`."""
        topics = await self._until_done(lambda: self._describe(None))
        return [topic for topic in topics if internal or not topic.is_internal]

    async def describe_topics(self, names: str | Iterable[str]) -> list[Topic]:
        """Return these topics, in this order."""
        wanted = checked_texts("a topic's name", names)
        topics = {topic.name: topic for topic in await self._until_done(lambda: self._describe(wanted))}
        return [topics[name] for name in wanted]

    async def create_partitions(self, name: str, total: int, *, validate_only: bool = False) -> None:
        """Grow a topic to `total` partitions; records stay where they are, keys may move to new partitions."""
        grown = CreatePartitionsTopic(
            name=checked_text("a topic's name", name),
            count=checked_int32("total", total, least=-_INT32_MAX),
            assignments=None,
        )
        request = CreatePartitionsRequest(
            topics=[grown],
            timeout_ms=self._timeout_ms,
            validate_only=validate_only,
        )

        async def attempt() -> None:
            response: CreatePartitionsResponse = await self._cluster.ask_controller(request)
            _raise_failures(
                {entry.name: (entry.error_code, entry.error_message) for entry in response.results}, "topic {!r}"
            )

        await self._until_done(attempt)

    # Settings ---------------------------------------------------------------------------------------------

    async def describe_configs(
        self, *, topic: str | None = None, broker: int | None = None, names: Iterable[str] | None = None
    ) -> dict[str, ConfigEntry]:
        """Return the settings of a topic, of a broker, or of ALL_BROKERS, with where each value comes from."""
        kind, resource = _resource(topic, broker)
        request = DescribeConfigsRequest(
            resources=[
                DescribeConfigsResource(
                    resource_type=kind,
                    resource_name=resource,
                    configuration_keys=None if names is None else checked_texts("a setting's name", names),
                )
            ],
            include_documentation=True,
        )

        async def attempt() -> dict[str, ConfigEntry]:
            response: DescribeConfigsResponse = await self._ask_owner(broker, request)
            for result in response.results:
                check(result.error_code, f"settings of {_named(kind, resource)}", result.error_message)
            return {entry.name: _config_entry(entry) for result in response.results for entry in result.configs}

        return await self._until_done(attempt)

    async def alter_configs(
        self,
        configs: Mapping[str, str | None],
        *,
        topic: str | None = None,
        broker: int | None = None,
        validate_only: bool = False,
    ) -> None:
        """Change these settings of a topic, a broker or ALL_BROKERS; None takes a setting back to its default."""
        kind, resource = _resource(topic, broker)
        request = IncrementalAlterConfigsRequest(
            resources=[
                AlterConfigsResource(
                    resource_type=kind,
                    resource_name=resource,
                    configs=[
                        AlterableConfig(
                            name=checked_text("a setting's name", name),
                            config_operation=ConfigOperation.DELETE if value is None else ConfigOperation.SET,
                            value=None if value is None else checked_setting(name, value),
                        )
                        for name, value in configs.items()
                    ],
                )
            ],
            validate_only=validate_only,
        )

        async def attempt() -> None:
            response: IncrementalAlterConfigsResponse = await self._ask_owner(broker, request)
            for result in response.responses:
                check(result.error_code, f"settings of {_named(kind, resource)}", result.error_message)

        await self._until_done(attempt)

    # The cluster ------------------------------------------------------------------------------------------

    async def describe_cluster(self, *, fenced: bool = False) -> ClusterDescription:
        """Return who is in the cluster; with `fenced` also the brokers that have no session, and lead nothing."""
        request = DescribeClusterRequest(include_fenced_brokers=fenced)

        async def attempt() -> ClusterDescription:
            response: DescribeClusterResponse = await self._cluster.ask_any(request)
            check(response.error_code, "the cluster", response.error_message)
            brokers = sorted(
                (Broker(NodeId(entry.broker_id), entry.host, entry.port, entry.rack) for entry in response.brokers),
                key=lambda broker: broker.node_id,
            )
            without_session = frozenset(NodeId(entry.broker_id) for entry in response.brokers if entry.is_fenced)
            controller = NodeId(response.controller_id)
            return ClusterDescription(response.cluster_id, controller, tuple(brokers), without_session)

        return await self._until_done(attempt)

    async def describe_log_dirs(self, broker: int | None = None) -> list[LogDirectoryDescription]:
        """Return the log directories of one broker, or of all, with the size of each partition in them."""
        if broker is not None:
            checked_int32("broker", broker)

        async def attempt() -> list[LogDirectoryDescription]:
            await self._cluster.refresh()
            nodes = list(self._cluster.brokers) if broker is None else [NodeId(broker)]
            return [directory for node in nodes for directory in await self._log_dirs_of(node)]

        return await self._until_done(attempt)

    async def delete_records(self, before: Mapping[TopicPartition, int]) -> dict[TopicPartition, Offset]:
        """Delete all records before an offset (-1: all there are); give each partition's new first offset."""
        wanted = {
            checked_partition(partition): checked_int64("an offset", offset, least=-1)
            for partition, offset in before.items()
        }
        for topic in {partition.topic for partition in wanted}:
            await self._cluster.topic(topic)

        async def attempt() -> dict[TopicPartition, Offset]:
            await self._cluster.refresh()
            by_leader: dict[NodeId, dict[str, list[DeleteRecordsPartition]]] = {}
            for partition, offset in wanted.items():
                leader = self._cluster.leader_of(partition)
                if leader is None:
                    raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"{partition} has no leader")
                topics = by_leader.setdefault(leader, {})
                topics.setdefault(partition.topic, []).append(
                    DeleteRecordsPartition(partition_index=partition.partition, offset=offset)
                )
            low: dict[TopicPartition, Offset] = {}
            outcome: dict[str, tuple[int, str | None]] = {}
            for leader, topics in by_leader.items():
                response: DeleteRecordsResponse = await self._cluster.ask(
                    leader,
                    DeleteRecordsRequest(
                        topics=[DeleteRecordsTopic(name=name, partitions=parts) for name, parts in topics.items()],
                        timeout_ms=self._timeout_ms,
                    ),
                )
                for topic in response.topics:
                    for entry in topic.partitions:
                        partition = TopicPartition(topic.name, entry.partition_index)
                        low[partition] = Offset(entry.low_watermark)
                        outcome[str(partition)] = (entry.error_code, None)
            _raise_failures(outcome, "records of {}")
            return low

        return await self._until_done(attempt)

    async def list_offsets(
        self,
        questions: Mapping[TopicPartition, OffsetQuestion],
        *,
        isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    ) -> dict[TopicPartition, FoundOffset]:
        """Return offsets: "earliest", "latest", "max_timestamp", or the first at or after a time in milliseconds."""
        return await list_offsets(self._cluster, questions, isolation=isolation, seconds=self._timeout_ms / 1000)

    # Inside -----------------------------------------------------------------------------------------------

    async def _until_done(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """Try again where the cluster is only not ready: its controller moved, or a connection broke."""
        tries = 0
        while True:
            try:
                return await attempt()
            except KafkaError as error:
                tries += 1
                if not error.retriable or error.code in _FINAL or tries == _ATTEMPTS_MAX:
                    raise
            await asyncio.sleep(self._cluster.backoff(tries))
            try:
                await self._cluster.refresh()
            except KafkaError:
                pass  # the next attempt will say what is wrong

    async def _describe(self, names: Sequence[str] | None) -> list[Topic]:
        request = MetadataRequest(
            topics=None if names is None else [MetadataRequestTopic(name=name) for name in names],
            allow_auto_topic_creation=False,
        )
        response: MetadataResponse = await self._cluster.ask_any(request)
        if names is not None:
            _raise_failures({entry.name or "?": (entry.error_code, None) for entry in response.topics}, "topic {!r}")
        entries = (entry for entry in response.topics if entry.error_code == ErrorCode.NONE)
        return sorted((topic_from(entry) for entry in entries), key=lambda topic: topic.name)

    async def _ask_owner(self, broker: int | None, request: object) -> Any:
        """Ask the broker whose settings these are; any knows those of topics."""
        if broker is None or broker == ALL_BROKERS:
            return await self._cluster.ask_any(request)
        return await self._cluster.ask(NodeId(broker), request)

    async def _log_dirs_of(self, node: NodeId) -> list[LogDirectoryDescription]:
        response: DescribeLogDirsResponse = await self._cluster.ask(node, DescribeLogDirsRequest(topics=None))
        check(response.error_code, f"log directories of node {node}")
        return [
            LogDirectoryDescription(
                node_id=node,
                path=result.log_dir,
                partitions={
                    TopicPartition(topic.name, partition.partition_index): partition.partition_size
                    for topic in result.topics
                    for partition in topic.partitions
                },
                total_bytes=result.total_bytes,
                usable_bytes=result.usable_bytes,
                error=error_code(result.error_code),
            )
            for result in response.results
        ]


_ATTEMPTS_MAX: Final = 5
_FINAL: Final = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.CORRUPT_MESSAGE})
"""Errors that may pass for those who write and read, but are the answer here."""

_INT16_MAX: Final = 2**15 - 1
_INT32_MAX: Final = 2**31 - 1
_TOPIC_RESOURCE: Final = 2
_BROKER_RESOURCE: Final = 4


def _creatable(topic: NewTopic) -> CreatableTopic:
    partitions = checked_int32("partitions", topic.partitions, least=-_INT32_MAX)
    check_whole("replication_factor", topic.replication_factor, least=-_INT16_MAX, most=_INT16_MAX)
    return CreatableTopic(
        name=checked_text("a topic's name", topic.name),
        num_partitions=-1 if topic.assignments else partitions,
        replication_factor=-1 if topic.assignments else topic.replication_factor,
        assignments=[
            CreatableReplicaAssignment(
                partition_index=index, broker_ids=[checked_int32("a replica", replica) for replica in replicas]
            )
            for index, replicas in enumerate(topic.assignments)
        ],
        configs=[
            CreatableTopicConfig(
                name=checked_text("a setting's name", name),
                value=checked_setting(name, value),
            )
            for name, value in topic.configs.items()
        ],
    )


def _config_entry(entry: DescribeConfigsResourceResult) -> ConfigEntry:
    known = entry.config_source in ConfigSource.__members__.values()
    return ConfigEntry(
        name=entry.name,
        value=entry.value,
        source=ConfigSource(entry.config_source) if known else ConfigSource.UNKNOWN,
        read_only=entry.read_only,
        sensitive=entry.is_sensitive,
        documentation=entry.documentation,
    )


def _resource(topic: str | None, broker: int | None) -> tuple[int, str]:
    if (topic is None) == (broker is None):
        raise ValueError("name either a topic or a broker")
    if topic is not None:
        return _TOPIC_RESOURCE, checked_text("a topic's name", topic)
    number = checked_int32("broker", broker, least=ALL_BROKERS)
    return _BROKER_RESOURCE, "" if number == ALL_BROKERS else str(number)


def _named(kind: int, resource: str) -> str:
    if kind == _TOPIC_RESOURCE:
        return f"topic {resource!r}"
    return f"broker {resource}" if resource else "all brokers"


def _perhaps_own(entry: CreatableTopicResult) -> str | None:
    """Return why a topic was not created, after an attempt of which nobody knows what became."""
    if entry.error_code != ErrorCode.TOPIC_ALREADY_EXISTS:
        return entry.error_message
    return "It exists; an earlier attempt of this call, whose outcome is not known, may have created it."


def _raise_failures(outcomes: Mapping[str, tuple[int, str | None]], subject: str) -> None:
    """Raise the one failure as it is, or several together; `subject` says in words what was named."""
    failures = {
        name: failure(code, subject.format(name), message)
        for name, (code, message) in outcomes.items()
        if code != ErrorCode.NONE
    }
    if len(failures) == 1 and len(outcomes) == 1:
        raise next(iter(failures.values()))
    if failures:
        raise PartlyFailed(failures, len(outcomes))
