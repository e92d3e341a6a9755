"""What a handler is given and what it gives back.

A handler does its ordered work at once and returns the response, or `Later(awaitable)`: the part that may
overlap with the requests behind it. A handler that must wait before it can act is `async def` and holds its
connection's line until it is done. None means that the client asked for no answer.
"""

from asyncio import Semaphore as Turns
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Generic, Protocol, TypeAlias, TypeVar
from uuid import UUID

from riverlog.broker.requests.memory import RequestMemory
from riverlog.broker.requests.routes import Routes
from riverlog.controller.controller import Controller
from riverlog.controller.metadata_requests import MetadataRequests
from riverlog.controller.producer_ids import ProducerIds
from riverlog.controller.view import MetadataView
from riverlog.coordination.groups import GroupCoordinator
from riverlog.coordination.marker_writer import MarkerWriter
from riverlog.coordination.offsets import TransactionalOffsets
from riverlog.coordination.transactions import TransactionCoordinator
from riverlog.metadata.features import Levels
from riverlog.metadata.image import MetadataImage
from riverlog.model.access import CLUSTER, Authorizer, Operation, Principal, ResourceType, operations_allowed
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import NO_EPOCH, NodeId, TopicId
from riverlog.model.ports import Buffer, Clock, FileRange, Random
from riverlog.observe.stats import RequestStats
from riverlog.partitions.assignment import DirectoryAssignment
from riverlog.partitions.directory_checkpoints import DirectoryCheckpoints
from riverlog.partitions.local_partitions import LocalPartitions
from riverlog.partitions.partition import Partition
from riverlog.partitions.registry import PartitionRegistry
from riverlog.partitions.replicas import Replicas
from riverlog.wire.apis import Api

Parts = list[Buffer | FileRange]
"""A whole response, as it is sent."""

Response = TypeVar("Response")
Promised = TypeVar("Promised", covariant=True)


@dataclass(frozen=True, slots=True)
class Later(Generic[Promised]):
    """A response still to come; requests behind this one go on meanwhile, their answers wait in line."""

    response: Awaitable[Promised]
    answer_bytes_max: int = 0
    """The memory that the response may take when it comes, where that is much."""
    holds_line: bool = False
    """Requests behind this one wait for it: it is so large that its ordered work is done in turns."""


class ResponseOwner(Protocol):
    """Who sends responses in the order of their requests: a connection."""

    def response_ready(self) -> None:
        """Send a response that was pending, at the end of the turn."""
        ...

    def fail(self, bug: BaseException) -> None:
        """End, since a bug leaves a request without a response."""
        ...


class PendingResponse:
    """One response in its connection's queue; `parts` is None until it is ready."""

    __slots__ = ("handled", "owner", "parts", "ready", "received", "request_bytes", "started", "stats")

    stats: RequestStats
    request_bytes: int
    received: float
    """When the request arrived, when its work began, when that was done, and when the response was ready to be sent."""
    started: float
    handled: float
    ready: float

    answer_bytes_max = 0
    """The memory that a response still to come may take, where that is much."""

    def __init__(self, parts: Parts | None = None) -> None:
        self.parts = parts
        self.owner: ResponseOwner | None = None
        """Who waits for it; None before that, and after the connection has ended."""

    def abandon(self) -> None:
        """Forget who waits: the connection has ended."""
        self.owner = None


def memory_of(parts: Parts) -> int:
    """Count the bytes of a response that are in memory; those of files are not."""
    return sum(len(part) for part in parts if not isinstance(part, FileRange))


class Hangup(Exception):
    """A handler's wish to end the connection: the only word that reaches a client who asked for no answer."""


class Forwarder(Protocol):
    """The way of a client's request to the active controller."""

    def __call__(self, frame: memoryview, principal: Principal) -> Awaitable[bytes]:
        """Return the response to a request, both with their headers; Hangup where there is none."""
        ...


HandlerResult: TypeAlias = Response | Later[Response] | PendingResponse | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerServices:
    """What handlers may reach of a node that keeps the cluster's metadata, whatever else it is."""

    node_id: NodeId
    cluster_id: str
    metadata: MetadataView
    controller: Controller
    authorizer: Authorizer
    clock: Clock
    random: Random
    served: tuple[Api, ...]
    features: Mapping[str, Levels]
    """The levels of features that this node can run with."""
    secret: str = field(repr=False)
    """What only the node's own parts know."""
    forward: Forwarder | None = None
    """The way of clients' requests to the active controller, where that may be another node."""
    portions: Turns = field(default_factory=partial(Turns, 1))
    """Who does a portion of a large request: one at a time, or all others would wait for as many as there are."""

    def new_topic_id(self) -> TopicId:
        """Return a new random topic id."""
        return TopicId(UUID(int=self.random.getrandbits(128), version=4))


@dataclass(frozen=True, slots=True, kw_only=True)
class Services(ControllerServices):
    """What handlers may reach of a broker."""

    requests: MetadataRequests
    """What the broker itself asks of the controller."""
    producer_ids: ProducerIds
    registry: PartitionRegistry
    local_partitions: LocalPartitions
    assignment: DirectoryAssignment
    checkpoints: DirectoryCheckpoints
    replicas: Replicas
    groups: GroupCoordinator
    transactions: TransactionCoordinator
    marker_writer: MarkerWriter
    transactional_offsets: TransactionalOffsets


@dataclass(slots=True)
class Client:
    """Who is at the other end of a connection, and through which listener they came."""

    principal: Principal
    listener: str
    memory: RequestMemory
    port: int = 0
    """The peer's own, which tells its connections apart."""
    takes_credits: bool = False
    """Whether each answer tells the client its window; set when it introduces itself."""
    broker: tuple[NodeId, int] | None = None
    """The broker whose heartbeats come this way, and the epoch of its registration."""
    routes: Routes = field(default_factory=Routes)
    """The requests that it repeats."""


class Context:
    """One request's surroundings."""

    __slots__ = ("client", "client_id", "correlation_id", "now_ms", "services", "stats", "version")

    def __init__(
        self,
        services: Services,
        client: Client,
        *,
        client_id: str | None,
        correlation_id: int,
        version: int,
        stats: RequestStats,
    ) -> None:
        self.services = services
        self.client = client
        self.client_id = client_id
        self.correlation_id = correlation_id
        self.version = version
        self.stats = stats
        self.now_ms = services.clock.wall_ms()

    @property
    def image(self) -> MetadataImage:
        """Return the newest view of the cluster's metadata; it never changes under its holder."""
        return self.services.metadata.image

    def allows(self, operation: Operation, resource: ResourceType, name: str) -> bool:
        """Ask whether the client may do this."""
        return self.services.authorizer.allows(self.client.principal, operation, resource, name)

    def allows_on_topic(self, operation: Operation, topic: str) -> bool:
        return self.services.authorizer.allows(self.client.principal, operation, ResourceType.TOPIC, topic)

    def allows_on_cluster(self, operation: Operation) -> bool:
        return self.services.authorizer.allows(self.client.principal, operation, ResourceType.CLUSTER, CLUSTER)

    def name_of(self, topic_id: UUID) -> str:
        """Return the name of the topic with this id; Refusal where there is none."""
        found = self.image.topic_by_id(topic_id)
        if found is None:
            raise Refusal(ErrorCode.UNKNOWN_TOPIC_ID, f"no topic has the id {topic_id}")
        return found.name

    def partition(self, operation: Operation, topic: str, index: int, epoch: int = NO_EPOCH) -> Partition:
        """Return a partition that this node leads in this epoch, and that the client may use so; Refusal says why
        not."""
        if not self.allows_on_topic(operation, topic):
            verb = "write to" if operation is Operation.WRITE else operation.name.lower()
            raise Refusal(ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"not allowed to {verb} {topic}")
        partition = self.services.replicas.get(topic, index, epoch)
        if partition is None:
            raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {index} of {topic}")
        return partition

    def operations_allowed(self, resource: ResourceType, name: str) -> int:
        """Return the bit field of what the client may do with a resource."""
        return operations_allowed(self.services.authorizer, self.client.principal, resource, name)
