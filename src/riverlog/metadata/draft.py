"""The next view of the metadata in the making: takes records, and becomes an image when one is asked for.

Each record changes a few fields in place; what the image before it consists of is copied once, piece by piece, when a
record first touches it. So a batch of a hundred thousand records costs what it changes, not a view for each of them.
"""

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Generic, assert_never
from uuid import UUID

from riverlog.metadata.image import (
    PARTITIONS_PER_CHUNK,
    STATES_SHARED_MAX,
    BrokerImage,
    ConfigResource,
    ConfigResourceType,
    MetadataImage,
    PartitionState,
    TopicImage,
    folded,
)
from riverlog.metadata.limits import TOPICS_OPEN_MAX
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
from riverlog.metadata.shared_map import GONE, Gone, Key, SharedMap, Value
from riverlog.model.endpoints import Endpoint
from riverlog.model.ids import LeaderEpoch, NodeId, ProducerId, TopicId
from riverlog.model.internal_topics import INTERNAL_TOPICS


class TopicDraft:
    """A topic whose partitions change."""

    __slots__ = ("_chunks", "_open", "count", "id", "name")

    def __init__(self, topic: TopicImage) -> None:
        self.name, self.id, self.count = topic.name, topic.id, topic.partition_count
        self._chunks = list(topic.chunks)
        self._open: dict[int, list[PartitionState]] = {}
        """The partitions that are being changed, by the number of their chunk."""

    def put(self, record: PartitionRecord) -> None:
        """Set a partition, or add it behind the last one."""
        index = record.partition_id
        assert 0 <= index <= self.count, f"{self.name} has {self.count} partitions, not {index}"
        state = _state(
            tuple(record.replicas),
            tuple(record.isr),
            record.leader,
            record.leader_epoch,
            record.partition_epoch,
            tuple(record.directories),
        )
        chunk, row = self._row(index)
        if index == self.count:
            chunk.append(state)
            self.count += 1
        else:
            chunk[row] = state

    def change(self, record: PartitionChangeRecord) -> None:
        """Change what the record names of a partition."""
        index = record.partition_id
        if not 0 <= index < self.count:
            raise IndexError(index)
        chunk, row = self._row(index)
        replicas, isr, leader, leader_epoch, partition_epoch, directories = chunk[row]
        leads_anew = record.leader != LEADER_UNCHANGED
        chunk[row] = _state(
            replicas if record.replicas is None else tuple(record.replicas),
            isr if record.isr is None else tuple(record.isr),
            record.leader if leads_anew else leader,
            leader_epoch + 1 if leads_anew else leader_epoch,
            partition_epoch + 1,
            directories if record.directories is None else tuple(record.directories),
        )

    def image(self) -> TopicImage:
        """Return the topic as it is now."""
        for number, states in self._open.items():
            self._chunks[number] = tuple(states)
        self._open.clear()
        return TopicImage(self.name, self.id, self.count, tuple(self._chunks))

    def _row(self, index: int) -> tuple[list[PartitionState], int]:
        number, row = divmod(index, PARTITIONS_PER_CHUNK)
        chunk = self._open.get(number)
        if chunk is None:
            if number == len(self._chunks):
                self._chunks.append(())
            chunk = self._open[number] = list(self._chunks[number])
        return chunk, row


class _MapDraft(Generic[Key, Value]):
    """A map whose entries change."""

    __slots__ = ("_base", "_changes")

    def __init__(self, base: SharedMap[Key, Value]) -> None:
        self._base: SharedMap[Key, Value] = base
        self._changes: dict[Key, Value | Gone] = {}

    def get(self, key: Key) -> Value | None:
        changed = self._changes.get(key)
        if changed is None:
            return self._base.get(key)
        return None if isinstance(changed, Gone) else changed

    def put(self, key: Key, value: Value) -> None:
        self._changes[key] = value

    def remove(self, key: Key) -> None:
        self._changes[key] = GONE

    def image(self) -> SharedMap[Key, Value]:
        return self._base.merged(self._changes) if self._changes else self._base


class MetadataDraft:
    """An image and the records since."""

    __slots__ = (
        "_brokers",
        "_changed",
        "_configs",
        "_features",
        "_folded",
        "_image",
        "_lost",
        "_names",
        "_next_producer_id",
        "_topics",
    )

    def __init__(self, image: MetadataImage) -> None:
        self._image = image
        self._changed = False
        self._topics: dict[str, TopicDraft | Gone] = {}
        self._names = _MapDraft(image.topic_names)
        self._folded = _MapDraft(image.folded_names)
        self._configs = _MapDraft(image.configs)
        self._brokers = image.brokers
        self._features = image.features
        self._next_producer_id = image.next_producer_id
        self._lost = image.lost_topics

    def image(self) -> MetadataImage:
        """Return what all records so far come to."""
        if self._changed:
            topics: dict[str, TopicImage | Gone] = {
                name: topic.image() if isinstance(topic, TopicDraft) else GONE for name, topic in self._topics.items()
            }
            image = MetadataImage(
                self._image.topics.merged(topics),
                self._names.image(),
                self._folded.image(),
                self._brokers,
                self._configs.image(),
                self._features,
                self._next_producer_id,
                self._lost,
            )
            MetadataDraft.__init__(self, image)
        return self._image

    def apply_all(self, records: Iterable[MetadataRecord]) -> "MetadataDraft":
        """Take several records; return this draft."""
        for record in records:
            self.apply(record)
        return self

    def apply(self, record: MetadataRecord) -> None:
        """Take one more record."""
        self._changed = True
        match record:
            case PartitionRecord():
                self._topic(record.topic_id, record).put(record)
            case PartitionChangeRecord():
                self._topic(record.topic_id, record).change(record)
            case TopicRecord():
                self._create(record)
            case RemoveTopicRecord():
                self._remove(record)
            case ConfigRecord():
                self._configure(record)
            case RegisterBrokerRecord():
                broker = _broker(record)
                self._brokers = {**self._brokers, broker.id: broker}
            case FeatureLevelRecord():
                self._features = {**self._features, record.name: record.feature_level}
            case ProducerIdsRecord():
                assert record.next_producer_id >= self._next_producer_id, "producer ids are never given out twice"
                self._next_producer_id = ProducerId(record.next_producer_id)
            case UnregisterBrokerRecord():
                self._brokers = {id_: each for id_, each in self._brokers.items() if id_ != record.broker_id}
            case BrokerRegistrationChangeRecord():
                broker = _changed(self._brokers[NodeId(record.broker_id)], record)
                self._brokers = {**self._brokers, broker.id: broker}
            case NoOpRecord() | RegisterControllerRecord() | ClearElrRecord():
                pass
            case _:
                assert_never(record)

    def _topic(self, topic_id: UUID, record: MetadataRecord) -> TopicDraft:
        """Return a topic to be changed."""
        name = self._names.get(topic_id.bytes)
        assert name is not None, f"{record} is of an unknown topic"
        draft = self._topics.get(name)
        if isinstance(draft, TopicDraft):
            return draft
        topic = self._image.topics.get(name)
        assert topic is not None and draft is None, f"{name} has an id, and is not there"
        return self._open(TopicDraft(topic))

    def _open(self, topic: TopicDraft) -> TopicDraft:
        """Keep a topic that changes; what changed before is put away where it has become much."""
        if len(self._topics) >= TOPICS_OPEN_MAX:
            self._changed = True
            self.image()
        self._topics[topic.name] = topic
        return topic

    def _create(self, record: TopicRecord) -> None:
        name, known = record.name, self._topics.get(record.name)
        exists = name in self._image.topics if known is None else known is not GONE
        assert not exists, f"{record} creates a topic that exists"
        self._open(TopicDraft(TopicImage(name, TopicId(record.topic_id))))
        self._names.put(record.topic_id.bytes, name)
        self._folded.put(folded(name), name)
        if name in self._lost:
            self._lost = {each: id_ for each, id_ in self._lost.items() if each != name}

    def _remove(self, record: RemoveTopicRecord) -> None:
        name = self._names.get(record.topic_id.bytes)
        assert name is not None, f"{record} removes an unknown topic"
        self._topics[name] = GONE
        self._names.remove(record.topic_id.bytes)
        self._folded.remove(folded(name))
        self._configs.remove(ConfigResource(ConfigResourceType.TOPIC, name).key)
        if name in INTERNAL_TOPICS:
            self._lost = {**self._lost, name: TopicId(record.topic_id)}

    def _configure(self, record: ConfigRecord) -> None:
        key = ConfigResource(ConfigResourceType(record.resource_type), record.resource_name).key
        values = {name: value for name, value in (self._configs.get(key) or {}).items() if name != record.name}
        if record.value is not None:
            values[record.name] = record.value
        if values:
            self._configs.put(key, MappingProxyType(values))
        else:
            self._configs.remove(key)


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


def _changed(broker: BrokerImage, record: BrokerRegistrationChangeRecord) -> BrokerImage:
    return replace(
        broker,
        fenced=record.fenced > 0 or (broker.fenced and record.fenced == 0),
        log_dirs=record.log_dirs or broker.log_dirs,
    )


@lru_cache(maxsize=STATES_SHARED_MAX)
def _state(
    replicas: tuple[int, ...],
    isr: tuple[int, ...],
    leader: int,
    leader_epoch: int,
    partition_epoch: int,
    directories: tuple[UUID, ...],
) -> PartitionState:
    """Return one object for all equal partitions: there are few of them, and perhaps millions of partitions."""
    return (
        _one_object(replicas),
        _one_object(isr),
        NodeId(leader),
        LeaderEpoch(leader_epoch),
        partition_epoch,
        _one_object(directories),
    )


@lru_cache(maxsize=STATES_SHARED_MAX)
def _one_object(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return one object for all equal lists."""
    return values


def after(image: MetadataImage, records: Iterable[MetadataRecord]) -> MetadataImage:
    """Return the view after some more records."""
    return MetadataDraft(image).apply_all(records).image()
