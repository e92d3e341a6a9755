"""What some committed records changed, for those who follow the cluster's metadata."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple
from uuid import UUID

from riverlog.metadata.image import PARTITIONS_PER_CHUNK, ConfigResourceType, MetadataImage, TopicImage
from riverlog.metadata.records import (
    ClearElrRecord,
    ConfigRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)


class MovedPartitions(NamedTuple):
    """Partitions of a topic that were there before, and have another leader, leader epoch or other replicas now."""

    topic: TopicImage
    indexes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class MetadataDelta:
    """The view now, and what is different in it. A topic stands in at most one of the first three."""

    image: MetadataImage
    created: tuple[TopicImage, ...] = ()
    changed: tuple[TopicImage, ...] = ()
    """Topics whose partitions are not as before, be it that replicas are in sync which were not."""
    grown: tuple[TopicImage, ...] = ()
    """Those of them that have more partitions than before."""
    moved: tuple[MovedPartitions, ...] = ()
    """Those of their partitions that are led by another broker, in another epoch, or have other replicas."""
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
    pairs = [(before.topic_by_id(topic_id), after.topic_by_id(topic_id)) for topic_id in touched]
    return replace(
        _of_topics(after, pairs),
        configured=tuple(topic for name in configured if (topic := _kept(name, before, after)) is not None),
        nodes_configured=nodes_configured,
        groups_configured=groups_configured,
    )


def delta_between(before: MetadataImage, after: MetadataImage) -> MetadataDelta:
    """Return what is different between two images, of which nobody knows the records between."""
    pairs: list[_Pair] = []
    for _name, was, now in before.topics.differences(after.topics):
        if was is None or now is None or was.id != now.id:
            pairs += [(was, None), (None, now)]
        elif was != now:
            pairs.append((was, now))
    named = dict.fromkeys(key.partition("/")[2] for key, _, _ in before.configs.differences(after.configs))
    return replace(
        _of_topics(after, pairs),
        configured=tuple(
            topic
            for name in named
            if (topic := _kept(name, before, after)) is not None
            if before.topic_overrides(name) != after.topic_overrides(name)
        ),
        nodes_configured=True,
        groups_configured=True,
    )


_Pair = tuple[TopicImage | None, TopicImage | None]
"""A topic as it was and as it is, None where it was or is not there."""


def _of_topics(image: MetadataImage, pairs: Iterable[_Pair]) -> MetadataDelta:
    """Return the changes of topics by kind."""
    pairs = list(pairs)
    kept = [(was, now) for was, now in pairs if was is not None and now is not None]
    moved = (MovedPartitions(now, tuple(_moved(was, now))) for was, now in kept)
    return MetadataDelta(
        image,
        created=tuple(now for was, now in pairs if was is None and now is not None),
        changed=tuple(now for _was, now in kept),
        grown=tuple(now for was, now in kept if now.partition_count > was.partition_count),
        moved=tuple(each for each in moved if each.indexes),
        deleted=tuple(was for was, now in pairs if was is not None and now is None),
    )


def _moved(before: TopicImage, after: TopicImage) -> Iterator[int]:
    """Find the partitions of a topic that moved; what the two images share is passed over."""
    for chunk, (old, new) in enumerate(zip(before.chunks, after.chunks, strict=False)):
        if old is not new:
            for row, (was, now) in enumerate(zip(old, new, strict=False)):
                if was is not now and (was[0], was[2], was[3]) != (now[0], now[2], now[3]):
                    yield chunk * PARTITIONS_PER_CHUNK + row


def _differs(topic: TopicImage, before: MetadataImage) -> bool:
    was = before.topic_by_id(topic.id)
    return was is not None and was is not topic and was != topic


def _kept(name: str, before: MetadataImage, after: MetadataImage) -> TopicImage | None:
    was, now = before.topic(name), after.topic(name)
    return now if was is not None and now is not None and was.id == now.id else None
