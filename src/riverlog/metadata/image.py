"""What the cluster's metadata comes to: a view that never changes under its holder.

A draft (`draft.py`) makes the view that more records come to; it shares with this one whatever did not change.
Partitions whose replicas, leader and epochs are equal are one object, and so are equal lists: so millions of them fit.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

from riverlog.metadata.features import ELIGIBLE_LEADERS
from riverlog.metadata.shared_map import SharedMap
from riverlog.model.ids import Address, LeaderEpoch, NodeId, ProducerId, TopicId
from riverlog.model.internal_topics import INTERNAL_TOPICS

if TYPE_CHECKING:
    from riverlog.metadata.records import AccessRecord

ReplicaIds = tuple[NodeId, ...]

FIRST_PRODUCER_ID: Final = ProducerId(0)
PARTITIONS_PER_CHUNK: Final = 64

STATES_SHARED_MAX: Final = 65_536
"""Beyond so many different partitions or lists, equal ones are no longer found; they only cost more memory."""

UNASSIGNED_DIRECTORY: Final = UUID(int=0)
"""A replica's log directory as long as nobody has said which one it is (KIP-858)."""

LOST_DIRECTORY: Final = UUID(int=1)
"""A replica's log directory where that is one which its broker does not have at the moment (KIP-858)."""

_NOTHING_SET: Final[Mapping[str, str]] = MappingProxyType({})


class ConfigResourceType(IntEnum):
    """What can have settings, with Kafka's codes."""

    TOPIC = 2
    BROKER = 4
    GROUP = 32


class ConfigResource(NamedTuple):
    """A topic, a group, a broker by its number, or all brokers, which is the broker without a name."""

    type: ConfigResourceType
    name: str

    @property
    def key(self) -> str:
        return config_key(self.type, self.name)


def config_key(type_: int, name: str) -> str:
    """Return under which key the settings of a resource are kept, of a type that means nothing here too."""
    return f"{int(type_)}/{name}"


class LeaderRecoveryState(IntEnum):
    """Whether a leader has all that was committed (KIP-704): one from outside the in-sync replicas may not."""

    RECOVERED = 0
    RECOVERING = 1


class RareState(NamedTuple):
    """What few partitions have: a reassignment under way, or too few replicas in sync (KIP-455, KIP-966)."""

    adding_replicas: ReplicaIds = ()
    removing_replicas: ReplicaIds = ()
    eligible_leader_replicas: ReplicaIds = ()
    """Replicas out of sync that have all that was committed, since nothing was committed without them."""
    last_known_elr: ReplicaIds = ()
    """Who led last, where nobody leads."""
    leader_recovery_state: LeaderRecoveryState = LeaderRecoveryState.RECOVERED


NOTHING_RARE: Final = RareState()


class PartitionImage(NamedTuple):
    """A partition: who has it, who leads it. The partition epoch grows with every change."""

    index: int  # type: ignore[assignment]  # nobody looks for values in a partition
    replicas: ReplicaIds
    isr: ReplicaIds
    leader: NodeId
    leader_epoch: LeaderEpoch
    partition_epoch: int
    directories: tuple[UUID, ...]
    rare: RareState = NOTHING_RARE

    @property
    def is_reassigning(self) -> bool:
        return bool(self.rare.adding_replicas or self.rare.removing_replicas)


PartitionState = (
    tuple[ReplicaIds, ReplicaIds, NodeId, LeaderEpoch, int, tuple[UUID, ...]]
    | tuple[ReplicaIds, ReplicaIds, NodeId, LeaderEpoch, int, tuple[UUID, ...], RareState]
)
"""A partition without its index: the other fields of PartitionImage, in their order, the rare state only where there is
one. Equal ones are one object."""


@dataclass(frozen=True, slots=True)
class TopicImage:
    """A topic and its partitions, which are numbered from 0 without a gap."""

    name: str
    id: TopicId
    partition_count: int = 0
    chunks: tuple[tuple[PartitionState, ...], ...] = ()
    """A few partitions each, so that changing one copies a few."""

    @property
    def partitions(self) -> Iterator[PartitionImage]:
        """Return the partitions in their order."""
        return (self.partition(index) for index in range(self.partition_count))

    @property
    def replication_factor(self) -> int:
        return len(self.partition(0).replicas)

    @property
    def is_internal(self) -> bool:
        """Return whether the cluster keeps this topic for itself."""
        return self.name in INTERNAL_TOPICS

    def partition(self, index: int) -> PartitionImage:
        """Return one partition; IndexError where there is none."""
        return PartitionImage(index, *self.state(index))

    def state(self, index: int) -> PartitionState:
        """Return one partition without its index; IndexError where there is none."""
        if not 0 <= index < self.partition_count:
            raise IndexError(index)
        chunk, row = divmod(index, PARTITIONS_PER_CHUNK)
        return self.chunks[chunk][row]


class RegisteredEndpoint(NamedTuple):
    """A listener of a registered node, and where it is. The security protocol has Kafka's number, 0 is PLAINTEXT."""

    listener: str
    host: str
    port: int
    security_protocol: int = 0

    @property
    def address(self) -> Address:
        return Address(self.host, self.port)


@dataclass(frozen=True, slots=True)
class BrokerImage:
    """A broker, where it can be reached, and in which incarnation."""

    id: NodeId
    epoch: int
    incarnation_id: UUID
    endpoints: tuple[RegisteredEndpoint, ...]
    features: Mapping[str, tuple[int, int]]
    """The levels of each feature that the broker can run with."""
    rack: str | None
    fenced: bool
    log_dirs: tuple[UUID, ...]
    in_controlled_shutdown: bool = False
    """Whether the broker is about to stop and leads nothing new."""
    cordoned_log_dirs: tuple[UUID, ...] | None = None
    """The log directories that are to get no new replicas; None where the broker has not said."""

    @property
    def is_active(self) -> bool:
        """Return whether the broker may lead partitions and be in sync."""
        return not (self.fenced or self.in_controlled_shutdown)

    def endpoint(self, listener: str) -> RegisteredEndpoint | None:
        """Return the broker's address on a listener."""
        return next((endpoint for endpoint in self.endpoints if endpoint.listener == listener), None)


@dataclass(frozen=True, slots=True)
class ControllerImage:
    """A controller, where it can be reached, and in which incarnation."""

    id: NodeId
    incarnation_id: UUID
    endpoints: tuple[RegisteredEndpoint, ...]
    features: Mapping[str, tuple[int, int]]
    """The levels of each feature that the controller can run with."""


@dataclass(frozen=True, slots=True)
class MetadataImage:
    """All metadata at one moment."""

    topics: SharedMap[str, TopicImage] = field(default_factory=SharedMap)
    topic_names: SharedMap[bytes, str] = field(default_factory=SharedMap)
    """Names by the bytes of topic ids."""
    folded_names: SharedMap[str, str] = field(default_factory=SharedMap)
    """Names by their form in metrics, where "." and "_" are the same; no two topics share one."""
    brokers: Mapping[NodeId, BrokerImage] = field(default_factory=dict)
    configs: SharedMap[str, Mapping[str, str]] = field(default_factory=SharedMap)
    features: Mapping[str, int] = field(default_factory=dict)
    next_producer_id: ProducerId = FIRST_PRODUCER_ID
    lost_topics: Mapping[str, TopicId] = field(default_factory=dict)
    """Internal topics that were deleted and are not there again, with the ids that they had."""
    controllers: Mapping[NodeId, ControllerImage] = field(default_factory=dict)
    access: SharedMap[str, "AccessRecord"] = field(default_factory=SharedMap)
    """ACLs, credentials, quotas and tokens by what they are about, as their records say it."""

    @property
    def keeps_eligible(self) -> bool:
        """Return whether replicas that leave a small in-sync set stay eligible in this cluster (KIP-966)."""
        return self.features.get(ELIGIBLE_LEADERS, 0) > 0

    def topic(self, name: str) -> TopicImage | None:
        return self.topics.get(name)

    def topic_by_id(self, topic_id: UUID) -> TopicImage | None:
        name = self.topic_names.get(topic_id.bytes)
        return None if name is None else self.topics.get(name)

    def all_topics(self) -> Iterable[TopicImage]:
        """Return every topic, sorted by name."""
        return (topic for _name, topic in self.topics.items())

    def config(self, resource: ConfigResource) -> Mapping[str, str]:
        """Return what was set for a resource."""
        return self.configs.get(resource.key) or _NOTHING_SET

    def topic_overrides(self, topic: str) -> Mapping[str, str]:
        """Return what was set for a topic."""
        return self.config(ConfigResource(ConfigResourceType.TOPIC, topic))

    def group_overrides(self, group_id: str) -> Mapping[str, str]:
        """Return what was set for a group."""
        return self.config(ConfigResource(ConfigResourceType.GROUP, group_id))

    def configured(self, type_: ConfigResourceType) -> Iterable[str]:
        """Name the resources of a type for which something was set."""
        front = ConfigResource(type_, "").key
        return (key.removeprefix(front) for key, _values in self.configs.items() if key.startswith(front))


def folded(name: str) -> str:
    """Return the form of a topic's name in which "." and "_" are the same, as in names of metrics."""
    return name.replace(".", "_")
