"""The index of partitions by broker says at every moment what a walk over all of them says."""

from random import Random
from uuid import UUID

import pytest

from riverlog.metadata.broker_index import BrokerIndex, each_partition
from riverlog.metadata.draft import MetadataDraft
from riverlog.metadata.image import MetadataImage
from riverlog.metadata.records import (
    ClearElrRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from riverlog.model.ids import NO_NODE, NodeId


def life(seed: int) -> list[MetadataRecord]:
    """Return what may happen to the partitions of some topics."""
    random, made, counts = Random(seed), list[MetadataRecord](), dict[int, int]()
    while len(made) < 300:
        number = random.randrange(8)
        topic_id = UUID(int=number + 1)
        if number not in counts:
            counts[number] = 0
            made.append(TopicRecord(f"t{number}", topic_id))
        ids = tuple(random.sample(range(5), 3))
        match random.randrange(12):
            case 0:
                made.append(RemoveTopicRecord(topic_id))
                del counts[number]
            case 1:
                made.append(ClearElrRecord(random.choice(("", f"t{number}"))))
            case 2 | 3 | 4 | 5:
                made.append(PartitionRecord(counts[number], topic_id, ids, ids[:2], leader=ids[0]))
                counts[number] += 1
            case _ if counts[number]:
                made.append(
                    PartitionChangeRecord(
                        random.randrange(counts[number]),
                        topic_id,
                        isr=random.choice((None, ids[:1], ids)),
                        leader=random.choice((-2, NO_NODE, ids[0])),
                        replicas=random.choice((None, ids)),
                        adding_replicas=random.choice((None, (), ids[:1])),
                        eligible_leader_replicas=random.choice((None, (), ids[1:])),
                    )
                )
    return made


def walked(image: MetadataImage) -> BrokerIndex:
    """Return what a plain walk over all partitions says."""
    index = BrokerIndex()

    def note(partitions: dict[str, int], name: str, number: int) -> None:
        partitions[name] = partitions.get(name, 0) + (1 << number)

    for topic in image.all_topics():
        for partition in topic.partitions:
            for node_id in partition.isr:
                note(index.in_sync.setdefault(node_id, {}), topic.name, partition.index)
            for node_id in partition.rare.eligible_leader_replicas:
                note(index.eligible.setdefault(node_id, {}), topic.name, partition.index)
            if partition.leader == NO_NODE:
                note(index.leaderless, topic.name, partition.index)
            else:
                index.led[partition.leader] = index.led.get(partition.leader, 0) + 1
                if partition.leader != partition.replicas[0]:
                    note(index.unpreferred, topic.name, partition.index)
            if partition.is_reassigning:
                note(index.reassigning, topic.name, partition.index)
    return index


@pytest.mark.parametrize("seed", range(20))
def test_each_record_keeps_it_up_to_date(seed: int) -> None:
    draft = MetadataDraft(MetadataImage())
    draft.index = BrokerIndex.of(draft.image())
    for record in life(seed):
        draft.apply(record)
        assert draft.index == walked(draft.image())
    assert BrokerIndex.of(draft.image()) == draft.index


@pytest.mark.parametrize("seed", range(20))
def test_it_follows_from_one_image_to_any_other(seed: int) -> None:
    random, draft = Random(seed), MetadataDraft(MetadataImage())
    images = [draft.image()]
    for record in life(seed):
        draft.apply(record)
        if random.random() < 0.1:
            images.append(draft.image())
    index, at = BrokerIndex(), images[0]
    for _ in range(30):
        to = random.choice(images)
        index.follow(at, to)
        at = to
        assert index == BrokerIndex.of(at)


def test_partitions_are_found_one_by_one() -> None:
    numbers = [0, 1, 63, 1023, 1024, 5000]
    bits = sum(1 << each for each in numbers)
    assert list(each_partition([("a", bits), ("b", 1)])) == [*(("a", each) for each in numbers), ("b", 0)]


def test_who_leads_nothing_is_known() -> None:
    draft = MetadataDraft(MetadataImage())
    draft.index = BrokerIndex()
    draft.apply_all([TopicRecord("t", UUID(int=1)), PartitionRecord(0, UUID(int=1), (1, 2), (1, 2), leader=1)])
    assert draft.index.leads(NodeId(1))
    assert not draft.index.leads(NodeId(2))
