"""The next view of the metadata in the making: takes records, and becomes an image when one is asked for.

Each record changes a few fields in place; what the image before it consists of is copied once, piece by piece, when a
record first touches it. So a batch of a hundred thousand records costs what it changes, not a view for each of them.
"""

from collections.abc import Iterable
from types import MappingProxyType
from typing import TYPE_CHECKING, Generic, assert_never
from uuid import UUID

from riverlog.metadata.image import (
    ConfigResource,
    ConfigResourceType,
    MetadataImage,
    TopicImage,
    config_key,
    folded,
)
from riverlog.metadata.limits import TOPICS_OPEN_MAX
from riverlog.metadata.node_records import broker_after, broker_of, controller_of
from riverlog.metadata.records import (
    AccessRecord,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ConfigRecord,
    FeatureLevelRecord,
    FenceBrokerRecord,
    MetadataRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    ZkMigrationStateRecord,
)
from riverlog.metadata.shared_map import GONE, Gone, Key, SharedMap, Value
from riverlog.metadata.topic_draft import TopicDraft, eligible_somewhere
from riverlog.model.ids import NodeId, ProducerId, TopicId
from riverlog.model.internal_topics import INTERNAL_TOPICS

if TYPE_CHECKING:
    from riverlog.metadata.broker_index import BrokerIndex  # a node that is alone has none


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
        "_access",
        "_brokers",
        "_changed",
        "_configs",
        "_controllers",
        "_features",
        "_folded",
        "_image",
        "_lost",
        "_names",
        "_next_producer_id",
        "_topics",
        "index",
    )

    def __init__(self, image: MetadataImage) -> None:
        self.index: BrokerIndex | None = None
        """What each broker has of the partitions, changed with them where it is set."""
        self._begin(image)

    def _begin(self, image: MetadataImage) -> None:
        self._image = image
        self._changed = False
        self._topics: dict[str, TopicDraft | Gone] = {}
        self._names = _MapDraft(image.topic_names)
        self._folded = _MapDraft(image.folded_names)
        self._configs = _MapDraft(image.configs)
        self._access = _MapDraft(image.access)
        self._brokers = image.brokers
        self._controllers = image.controllers
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
                self._controllers,
                self._access.image(),
            )
            self._begin(image)
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
                topic = self._topic(record.topic_id, record)
                before, after = topic.put(record)
                if self.index is not None:
                    self.index.change(topic.name, record.partition_id, before, after)
            case PartitionChangeRecord():
                topic = self._topic(record.topic_id, record)
                before, after = topic.change(record)
                if self.index is not None:
                    self.index.change(topic.name, record.partition_id, before, after)
            case TopicRecord():
                self._create(record)
            case RemoveTopicRecord():
                self._remove(record)
            case ConfigRecord():
                self._configure(record)
            case RegisterBrokerRecord():
                self._brokers = {**self._brokers, NodeId(record.broker_id): broker_of(record)}
            case FeatureLevelRecord():
                self._features = {**self._features, record.name: record.feature_level}
            case ProducerIdsRecord():
                assert record.next_producer_id >= self._next_producer_id, "producer ids are never given out twice"
                self._next_producer_id = ProducerId(record.next_producer_id)
            case UnregisterBrokerRecord():
                self._brokers = {id_: each for id_, each in self._brokers.items() if id_ != record.broker_id}
            case BrokerRegistrationChangeRecord():
                self._change_broker(record)
            case FenceBrokerRecord():
                self._change_broker(BrokerRegistrationChangeRecord(record.id, record.epoch, fenced=1))
            case UnfenceBrokerRecord():
                self._change_broker(BrokerRegistrationChangeRecord(record.id, record.epoch, fenced=-1))
            case RegisterControllerRecord():
                self._controllers = {**self._controllers, NodeId(record.controller_id): controller_of(record)}
            case ClearElrRecord():
                self._clear_eligible(record)
            case NoOpRecord() | ZkMigrationStateRecord():
                pass
            case AccessRecord():
                self._note_access(record)
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
            self.image()
        self._changed = True
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
        if self.index is not None:
            self.index.remove(self._topic(record.topic_id, record).image())
        self._topics[name] = GONE
        self._names.remove(record.topic_id.bytes)
        self._folded.remove(folded(name))
        self._configs.remove(ConfigResource(ConfigResourceType.TOPIC, name).key)
        if name in INTERNAL_TOPICS:
            self._lost = {**self._lost, name: TopicId(record.topic_id)}

    def _configure(self, record: ConfigRecord) -> None:
        key = config_key(record.resource_type, record.resource_name)
        values = {name: value for name, value in (self._configs.get(key) or {}).items() if name != record.name}
        if record.value is not None:
            values[record.name] = record.value
        if values:
            self._configs.put(key, MappingProxyType(values))
        else:
            self._configs.remove(key)

    def _change_broker(self, record: BrokerRegistrationChangeRecord) -> None:
        broker = broker_after(self._brokers[NodeId(record.broker_id)], record)
        self._brokers = {**self._brokers, broker.id: broker}

    def _clear_eligible(self, record: ClearElrRecord) -> None:
        """Forget the eligible leaders of one topic, or of all."""
        image = self.image()
        named = [image.topic(record.topic_name)] if record.topic_name else image.all_topics()
        for topic in [each for each in named if each is not None and eligible_somewhere(each)]:
            for number, (before, after) in self._topic(topic.id, record).clear_eligible():
                if self.index is not None:
                    self.index.change(topic.name, number, before, after)

    def _note_access(self, record: AccessRecord) -> None:
        from riverlog.metadata.access_records import access_key, lasting  # most logs have none of these

        key, kept = access_key(record), lasting(record)
        if kept is None:
            self._access.remove(key)
        else:
            self._access.put(key, kept)


def after(image: MetadataImage, records: Iterable[MetadataRecord]) -> MetadataImage:
    """Return the view after some more records."""
    return MetadataDraft(image).apply_all(records).image()
