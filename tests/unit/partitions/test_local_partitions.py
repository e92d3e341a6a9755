"""The partitions of a node, followed through everything that changes them."""

from random import Random

from riverlog.controller.view import MetadataView
from riverlog.metadata.draft import after
from riverlog.metadata.image import MetadataImage
from riverlog.metadata.records import (
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from riverlog.model.ids import NodeId
from riverlog.model.resolution import configure
from riverlog.partitions.local_partitions import LocalPartitions
from tests.unit.metadata.cluster import topic_id

HERE = NodeId(1)


def names(local: LocalPartitions) -> list[tuple[str, int]]:
    return [(topic.name, facts.index) for topic, facts in local]


def in_image(image: MetadataImage) -> list[tuple[str, int]]:
    """Find the same by going through everything."""
    return [
        (topic.name, facts.index)
        for topic in image.all_topics()
        for facts in topic.partitions
        if HERE in facts.replicas
    ]


def partition(number: int, index: int, *replicas: int) -> PartitionRecord:
    return PartitionRecord(
        partition_id=index, topic_id=topic_id(number), replicas=replicas, isr=replicas, leader=replicas[0]
    )


def test_whatever_changes_the_same_partitions_are_found_as_in_the_whole_image() -> None:
    random = Random(5)
    view = MetadataView(configure(profile="dev").settings)
    begin: list[MetadataRecord] = [TopicRecord("first", topic_id(1))]
    begin += [partition(1, index, random.randint(1, 3)) for index in range(200)]
    view.begin(after(MetadataImage(), begin))
    local = LocalPartitions(HERE, view)
    local.start()
    assert names(local) == in_image(view.image)
    there = {1: 200}
    for number in range(2, 120):
        records: list[MetadataRecord] = []
        match random.randrange(4):
            case 0:
                there[number] = random.randint(1, 150)
                records.append(TopicRecord(f"t{number % 7}-{number}", topic_id(number)))
                records += [partition(number, index, random.randint(1, 3), 4) for index in range(there[number])]
            case 1:
                chosen = random.choice(list(there))
                records = [partition(chosen, there[chosen], random.randint(1, 3))]
                there[chosen] += 1
            case 2:
                chosen = random.choice(list(there))
                records = [
                    PartitionChangeRecord(
                        partition_id=random.randrange(there[chosen]),
                        topic_id=topic_id(chosen),
                        replicas=(random.randint(1, 3), 4),
                    )
                    for _ in range(20)
                ]
            case _ if len(there) > 1:
                chosen = random.choice(list(there))
                del there[chosen]
                records = [RemoveTopicRecord(topic_id=topic_id(chosen))]
        view.publish(after(view.image, records), records)
        assert names(local) == in_image(view.image)
        for topic in view.image.all_topics():
            wanted = [-1, 0, 3, topic.partition_count - 1, topic.partition_count, 10_000]
            found = [facts.index for facts in local.of(topic, wanted)]
            assert found == [index for index in wanted if (topic.name, index) in names(local)]


def test_a_topic_of_the_same_name_is_another_one() -> None:
    view = MetadataView(configure(profile="dev").settings)
    view.begin(after(MetadataImage(), [TopicRecord("t", topic_id(1)), partition(1, 0, 1), partition(1, 1, 1)]))
    local = LocalPartitions(HERE, view)
    local.start()
    records = [RemoveTopicRecord(topic_id(1)), TopicRecord("t", topic_id(2)), partition(2, 0, 2), partition(2, 1, 1)]
    view.publish(after(view.image, records), records)
    assert names(local) == [("t", 1)]
