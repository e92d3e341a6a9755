"""What some committed records changed, for those who follow the cluster's metadata."""

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from riverlog.metadata.image import ConfigResourceType, MetadataImage, TopicImage
from riverlog.metadata.records import (
    ClearElrRecord,
    ConfigRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)


@dataclass(frozen=True, slots=True)
class MetadataDelta:
    """The view now, and what is different in it. A topic stands in at most one of the first three."""

    image: MetadataImage
    created: tuple[TopicImage, ...] = ()
    changed: tuple[TopicImage, ...] = ()
    """Topics with more partitions or with other leaders or replicas than before."""
    deleted: tuple[TopicImage, ...] = ()
    """Topics that are gone, as they were."""
    configured: tuple[TopicImage, ...] = ()
    """Topics that were there before and now have other settings of their own."""
    nodes_configured: bool = False
    """Whether settings of nodes changed: the topics' may have changed with them."""
    groups_configured: bool = False
    """Whether settings of groups changed."""


def delta_of(before: MetadataImage, after: MetadataImage, records: Iterable[MetadataRecord]) -> MetadataDelta:
    """Return what the records, which lead from one image to the other, changed."""
    touched: dict[UUID, None] = {}
    configured: dict[str, None] = {}
    nodes_configured = groups_configured = False
    for record in records:
        match record:
            case TopicRecord() | PartitionRecord() | PartitionChangeRecord() | RemoveTopicRecord():
                touched[record.topic_id] = None
            case ClearElrRecord():
                named = [after.topic(record.topic_name)] if record.topic_name else after.all_topics()
                touched.update((topic.id, None) for topic in named if topic is not None and _differs(topic, before))
            case ConfigRecord() if record.resource_type == ConfigResourceType.TOPIC:
                configured[record.resource_name] = None
            case ConfigRecord() if record.resource_type == ConfigResourceType.GROUP:
                groups_configured = True
            case ConfigRecord() if record.resource_type == ConfigResourceType.BROKER:
                nodes_configured = True
            case _:
                pass
    were = {topic_id: before.topic_by_id(topic_id) for topic_id in touched}
    are = {topic_id: after.topic_by_id(topic_id) for topic_id in touched}
    return MetadataDelta(
        image=after,
        created=tuple(topic for topic_id, topic in are.items() if topic is not None and were[topic_id] is None),
        changed=tuple(topic for topic_id, topic in are.items() if topic is not None and were[topic_id] is not None),
        deleted=tuple(topic for topic_id, topic in were.items() if topic is not None and are[topic_id] is None),
        configured=tuple(topic for name in configured if (topic := _kept(name, before, after)) is not None),
        nodes_configured=nodes_configured,
        groups_configured=groups_configured,
    )


def delta_between(before: MetadataImage, after: MetadataImage) -> MetadataDelta:
    """Return what is different between two images, of which nobody knows the records between."""
    were = {topic.id: topic for topic in before.all_topics()}
    are = {topic.id: topic for topic in after.all_topics()}
    both = [topic for topic_id, topic in are.items() if topic_id in were]
    return MetadataDelta(
        image=after,
        created=tuple(topic for topic_id, topic in are.items() if topic_id not in were),
        changed=tuple(topic for topic in both if topic != were[topic.id]),
        deleted=tuple(topic for topic_id, topic in were.items() if topic_id not in are),
        configured=tuple(
            topic for topic in both if before.topic_overrides(topic.name) != after.topic_overrides(topic.name)
        ),
        nodes_configured=True,
        groups_configured=True,
    )


def _differs(topic: TopicImage, before: MetadataImage) -> bool:
    was = before.topic_by_id(topic.id)
    return was is not None and was is not topic and was != topic


def _kept(name: str, before: MetadataImage, after: MetadataImage) -> TopicImage | None:
    was, now = before.topic(name), after.topic(name)
    return now if was is not None and now is not None and was.id == now.id else None
