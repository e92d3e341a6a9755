"""A draft comes to the same view however often one is taken from it on the way."""

from random import Random
from uuid import UUID

import pytest

from riverlog.metadata.draft import MetadataDraft, after
from riverlog.metadata.image import PARTITIONS_PER_CHUNK, MetadataImage
from riverlog.metadata.limits import TOPICS_OPEN_MAX
from riverlog.metadata.records import (
    ConfigRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from riverlog.model.internal_topics import OFFSETS_TOPIC


def life(seed: int, records: int = 400) -> list[MetadataRecord]:
    """Return what may happen to topics: they come, grow, change, are configured and go, and come again."""
    random = Random(seed)
    made: list[MetadataRecord] = [RegisterBrokerRecord(broker_id=1, fenced=False)]
    topics: dict[str, tuple[UUID, int]] = {}
    names = ["a.b", "orders", OFFSETS_TOPIC, *(f"t{number}" for number in range(60))]
    while len(made) < records:
        name = random.choice(names)
        if name not in topics:
            topics[name] = UUID(int=random.getrandbits(128)), 0
            made.append(TopicRecord(name=name, topic_id=topics[name][0]))
        id_, count = topics[name]
        match random.randrange(6):
            case 0 | 1:
                for _ in range(random.choice((1, 3, PARTITIONS_PER_CHUNK))):
                    made.append(PartitionRecord(partition_id=count, topic_id=id_, replicas=(1,), isr=(1,), leader=1))
                    count += 1
                topics[name] = id_, count
            case 2 | 3 if count:
                leader = random.choice((-2, -1, 1))
                isr = random.choice((None, (1,), (1, 2)))
                made.append(
                    PartitionChangeRecord(
                        partition_id=random.randrange(count), topic_id=id_, leader=leader, isr=isr, replicas=isr
                    )
                )
            case 4:
                value = random.choice((None, "5"))
                made.append(ConfigRecord(resource_type=2, resource_name=name, name="retention.ms", value=value))
            case 5:
                made.append(RemoveTopicRecord(topic_id=id_))
                del topics[name]
    return made


@pytest.mark.parametrize("seed", range(20))
def test_views_on_the_way_change_nothing(seed: int) -> None:
    records = life(seed)
    at_once = after(MetadataImage(), records)
    random, draft, views = Random(seed), MetadataDraft(MetadataImage()), list[tuple[int, MetadataImage]]()
    for position, record in enumerate(records, 1):
        draft.apply(record)
        if random.random() < 0.2:
            views.append((position, draft.image()))
    assert draft.image() == at_once
    assert draft.image() is draft.image(), "nothing is made anew where nothing happened"
    for position, view in views[:: max(1, len(views) // 5)]:
        assert view == after(MetadataImage(), records[:position]), "a view does not change under its holder"


def test_the_topic_for_which_others_are_put_away_is_in_the_next_view() -> None:
    """The draft keeps so many topics in pieces, and puts them together when one more comes."""
    draft = MetadataDraft(MetadataImage())
    ids = [UUID(int=number) for number in range(1, TOPICS_OPEN_MAX + 2)]
    draft.apply_all(TopicRecord(name=f"t{id_.int}", topic_id=id_) for id_ in ids)
    assert draft.image().topic_by_id(ids[-1]) is not None


def test_what_makes_no_sense_is_refused_and_changes_nothing() -> None:
    image = after(MetadataImage(), life(3))
    [topic, *_] = [each for each in image.all_topics() if each.partition_count]
    draft = MetadataDraft(image)
    wrong: list[MetadataRecord] = [
        TopicRecord(name=topic.name, topic_id=UUID(int=5)),
        RemoveTopicRecord(topic_id=UUID(int=5)),
        PartitionRecord(partition_id=topic.partition_count + 1, topic_id=topic.id),
        PartitionChangeRecord(partition_id=0, topic_id=UUID(int=5)),
    ]
    for record in wrong:
        with pytest.raises(AssertionError):
            draft.apply(record)
    with pytest.raises(IndexError):
        draft.apply(PartitionChangeRecord(partition_id=topic.partition_count, topic_id=topic.id))
    assert draft.image() == image
