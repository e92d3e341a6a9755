"""What the cluster's metadata comes to: a view that never changes under its holder.

`after` gives the view that one more record makes; it shares with this one whatever did not change. Partitions are
kept as columns, and equal lists of replicas are one object, so that millions of partitions fit.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final, NamedTuple, assert_never
from uuid import UUID

from riverlog.metadata.records import (
    LEADER_UNCHANGED,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnregisterBrokerRecord,
)
from riverlog.metadata.shared_map import SharedMap
from riverlog.model.endpoints import Endpoint
from riverlog.model.ids import LeaderEpoch, NodeId, ProducerId, TopicId
from riverlog.model.internal_topics import INTERNAL_TOPICS

ReplicaIds = tuple[NodeId, ...]

FIRST_PRODUCER_ID: Final = ProducerId(0)
PARTITIONS_PER_CHUNK: Final = 64

REPLICA_LISTS_SHARED_MAX: Final = 65_536
"""Beyond so many different lists of replicas, equal ones are no longer found; they only cost more memory."""

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
        return f"{self.type}/{self.name}"


class PartitionImage(NamedTuple):
    """A partition: who has it, who leads it. The partition epoch grows with every change."""

    index: int  # type: ignore[assignment]  # nobody looks for values in a partition
    replicas: ReplicaIds
    isr: ReplicaIds
    leader: NodeId
    leader_epoch: LeaderEpoch
    partition_epoch: int
    directories: tuple[UUID, ...]


PartitionColumns = tuple[tuple[object, ...], ...]
"""Some partitions, field by field, in the order of PartitionImage without its index."""


@dataclass(frozen=True, slots=True)
class TopicImage:
    """A topic and its partitions, which are numbered from 0 without a gap."""

    name: str
    id: TopicId
    partition_count: int = 0
    _chunks: tuple[PartitionColumns, ...] = ()
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
        if not 0 <= index < self.partition_count:
            raise IndexError(index)
        chunk, row = divmod(index, PARTITIONS_PER_CHUNK)
        values: Any = [column[row] for column in self._chunks[chunk]]
        return PartitionImage(index, *values)

    def with_partition(self, partition: PartitionImage) -> "TopicImage":
        """Return the topic with this partition changed, or added behind the last one."""
        index = partition.index
        assert 0 <= index <= self.partition_count, f"{self.name} has {self.partition_count} partitions, not {index}"
        chunk, row = divmod(index, PARTITIONS_PER_CHUNK)
        columns = self._chunks[chunk] if chunk < len(self._chunks) else ((),) * (len(partition) - 1)
        changed = tuple(
            (*column[:row], value, *column[row + 1 :]) for column, value in zip(columns, partition[1:], strict=True)
        )
        chunks = (*self._chunks[:chunk], changed, *self._chunks[chunk + 1 :])
        return TopicImage(self.name, self.id, max(self.partition_count, index + 1), chunks)


@dataclass(frozen=True, slots=True)
class BrokerImage:
    """A broker, where it can be reached, and in which incarnation."""

    id: NodeId
    epoch: int
    incarnation_id: UUID
    endpoints: tuple[Endpoint, ...]
    features: Mapping[str, tuple[int, int]]
    """The levels of each feature that the broker can run with."""
    rack: str | None
    fenced: bool
    log_dirs: tuple[UUID, ...]

    def endpoint(self, listener: str) -> Endpoint | None:
        """Return the broker's address on a listener."""
        return next((endpoint for endpoint in self.endpoints if endpoint.listener == listener), None)


@dataclass(frozen=True, slots=True)
class MetadataImage:
    """All metadata at one moment."""

    topics: SharedMap[TopicImage] = field(default_factory=SharedMap)
    topic_names: SharedMap[str] = field(default_factory=SharedMap)
    """Names by topic id in hexadecimal."""
    folded_names: SharedMap[str] = field(default_factory=SharedMap)
    """Names by their form in metrics, where "." and "_" are the same; no two topics share one."""
    brokers: Mapping[NodeId, BrokerImage] = field(default_factory=dict)
    configs: SharedMap[Mapping[str, str]] = field(default_factory=SharedMap)
    features: Mapping[str, int] = field(default_factory=dict)
    next_producer_id: ProducerId = FIRST_PRODUCER_ID
    lost_topics: Mapping[str, TopicId] = field(default_factory=dict)
    """Internal topics that were deleted and are not there again, with the ids that they had."""

    @property
    def features_epoch(self) -> int:
        """Return a number that grows with every feature's level: clients keep the newest levels they have seen."""
        return sum(self.features.values())

    def topic(self, name: str) -> TopicImage | None:
        return self.topics.get(name)

    def topic_by_id(self, topic_id: UUID) -> TopicImage | None:
        name = self.topic_names.get(topic_id.hex)
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

    def after_all(self, records: Iterable[MetadataRecord]) -> "MetadataImage":
        """Return the view after several records."""
        image = self
        for record in records:
            image = image.after(record)
        return image

    def after(self, record: MetadataRecord) -> "MetadataImage":
        """Return the view after one more record."""
        match record:
            case PartitionRecord():
                return self._with_partition(record.topic_id, _partition(record))
            case PartitionChangeRecord():
                topic = self.topic_by_id(record.topic_id)
                assert topic is not None, f"{record} changes a partition of an unknown topic"
                return self._with_partition(record.topic_id, _changed(topic.partition(record.partition_id), record))
            case TopicRecord():
                assert record.name not in self.topics, f"{record} creates a topic that exists"
                return replace(
                    self,
                    topics=self.topics.with_entry(record.name, TopicImage(record.name, TopicId(record.topic_id))),
                    topic_names=self.topic_names.with_entry(record.topic_id.hex, record.name),
                    folded_names=self.folded_names.with_entry(folded(record.name), record.name),
                    lost_topics={name: id_ for name, id_ in self.lost_topics.items() if name != record.name},
                )
            case RemoveTopicRecord():
                name = self.topic_names.get(record.topic_id.hex)
                assert name is not None, f"{record} removes an unknown topic"
                return replace(
                    self,
                    topics=self.topics.without(name),
                    topic_names=self.topic_names.without(record.topic_id.hex),
                    folded_names=self.folded_names.without(folded(name)),
                    configs=self.configs.without(ConfigResource(ConfigResourceType.TOPIC, name).key),
                    lost_topics={**self.lost_topics, name: TopicId(record.topic_id)}
                    if name in INTERNAL_TOPICS
                    else self.lost_topics,
                )
            case ConfigRecord():
                return replace(self, configs=self._configs_after(record))
            case RegisterBrokerRecord():
                broker = _broker(record)
                return replace(self, brokers={**self.brokers, broker.id: broker})
            case FeatureLevelRecord():
                return replace(self, features={**self.features, record.name: record.feature_level})
            case ProducerIdsRecord():
                assert record.next_producer_id >= self.next_producer_id, "producer ids are never given out twice"
                return replace(self, next_producer_id=ProducerId(record.next_producer_id))
            case UnregisterBrokerRecord():
                return replace(
                    self, brokers={id_: each for id_, each in self.brokers.items() if id_ != record.broker_id}
                )
            case BrokerRegistrationChangeRecord():
                return self._with_change(record)
            case NoOpRecord() | RegisterControllerRecord() | ClearElrRecord():
                return self
            case _:
                assert_never(record)

    def _with_change(self, record: BrokerRegistrationChangeRecord) -> "MetadataImage":
        broker = self.brokers[NodeId(record.broker_id)]
        broker = replace(
            broker,
            fenced=record.fenced > 0 or (broker.fenced and record.fenced == 0),
            log_dirs=record.log_dirs or broker.log_dirs,
        )
        return replace(self, brokers={**self.brokers, broker.id: broker})

    def _with_partition(self, topic_id: UUID, partition: PartitionImage) -> "MetadataImage":
        topic = self.topic_by_id(topic_id)
        assert topic is not None, f"partition {partition.index} belongs to the unknown topic {topic_id}"
        topics = self.topics.with_entry(topic.name, topic.with_partition(partition))
        # The commonest change by far, so without the detour through `replace`.
        return MetadataImage(
            topics,
            self.topic_names,
            self.folded_names,
            self.brokers,
            self.configs,
            self.features,
            self.next_producer_id,
            self.lost_topics,
        )

    def _configs_after(self, record: ConfigRecord) -> SharedMap[Mapping[str, str]]:
        resource = ConfigResource(ConfigResourceType(record.resource_type), record.resource_name)
        values = {name: value for name, value in self.config(resource).items() if name != record.name}
        if record.value is not None:
            values[record.name] = record.value
        if not values:
            return self.configs.without(resource.key)
        return self.configs.with_entry(resource.key, MappingProxyType(values))


def folded(name: str) -> str:
    """Return the form of a topic's name in which "." and "_" are the same, as in names of metrics."""
    return name.replace(".", "_")


def _partition(record: PartitionRecord) -> PartitionImage:
    return PartitionImage(
        index=record.partition_id,
        replicas=_shared(record.replicas),
        isr=_shared(record.isr),
        leader=NodeId(record.leader),
        leader_epoch=LeaderEpoch(record.leader_epoch),
        partition_epoch=record.partition_epoch,
        directories=tuple(record.directories),
    )


def _changed(partition: PartitionImage, record: PartitionChangeRecord) -> PartitionImage:
    changed = partition._replace(partition_epoch=partition.partition_epoch + 1)
    if record.isr is not None:
        changed = changed._replace(isr=_shared(record.isr))
    if record.replicas is not None:
        changed = changed._replace(replicas=_shared(record.replicas))
    if record.directories is not None:
        changed = changed._replace(directories=tuple(record.directories))
    if record.leader != LEADER_UNCHANGED:
        epoch = LeaderEpoch(partition.leader_epoch + 1)
        changed = changed._replace(leader=NodeId(record.leader), leader_epoch=epoch)
    return changed


def _broker(record: RegisterBrokerRecord) -> BrokerImage:
    return BrokerImage(
        id=NodeId(record.broker_id),
        epoch=record.broker_epoch,
        incarnation_id=record.incarnation_id,
        endpoints=tuple(Endpoint(each.name, each.host, each.port) for each in record.end_points),
        features={each.name: (each.min_supported_version, each.max_supported_version) for each in record.features},
        rack=record.rack,
        fenced=record.fenced,
        log_dirs=tuple(record.log_dirs),
    )


def _shared(replicas: Iterable[int]) -> ReplicaIds:
    return _one_object(tuple(NodeId(replica) for replica in replicas))


@lru_cache(maxsize=REPLICA_LISTS_SHARED_MAX)
def _one_object(replicas: ReplicaIds) -> ReplicaIds:
    """Return one object for all equal lists of replicas: there are few of them and perhaps millions of partitions."""
    return replicas
