"""Brokers joining the cluster."""

from dataclasses import replace
from uuid import UUID

from riverlog.metadata.commands.only_broker import (
    ReportDirectories,
    known_directories,
    register_only_broker,
    report_directories,
)
from riverlog.metadata.draft import after
from riverlog.metadata.features import SUPPORTED_FEATURES
from riverlog.metadata.image import LOST_DIRECTORY, UNASSIGNED_DIRECTORY, MetadataImage
from riverlog.metadata.records import FeatureLevelRecord, PartitionChangeRecord, RegisterBrokerRecord
from riverlog.model.ids import NodeId
from tests.unit.metadata.cluster import cluster, registration, with_topic


def test_a_metadata_log_begins_with_its_version():
    records, reply = register_only_broker(MetadataImage(), registration(1))
    *features, registered = records
    assert [each.name for each in features if isinstance(each, FeatureLevelRecord)] == list(SUPPORTED_FEATURES)
    assert next(iter(SUPPORTED_FEATURES)) == "metadata.version"
    assert isinstance(registered, RegisterBrokerRecord)
    assert reply.epoch == 0


def test_every_start_is_a_new_epoch():
    image = cluster(None)
    records, reply = register_only_broker(image, registration(1))
    assert reply.epoch == 1
    assert [type(record) for record in records] == [RegisterBrokerRecord]


def test_after_a_crash_what_the_broker_leads_begins_a_new_leader_epoch():
    image = with_topic(cluster(None, None), "orders", partitions=4)
    records, _ = register_only_broker(image, registration(1, clean=False))
    changes = [record for record in records if isinstance(record, PartitionChangeRecord)]
    assert [change.partition_id for change in changes] == [0, 2]
    topic = after(image, records).topic("orders")
    assert topic is not None
    assert [each.leader_epoch for each in topic.partitions] == [1, 0, 1, 0]


def test_what_nobody_leads_is_led_by_the_one_in_sync() -> None:
    """At its own stop Apache Kafka leaves partitions without a leader; the node that comes back takes them."""
    image = with_topic(cluster(None, None), "orders", partitions=2)
    topic = image.topic("orders")
    assert topic is not None
    image = after(image, [PartitionChangeRecord(partition_id=0, topic_id=topic.id, leader=-1)])
    records, _ = register_only_broker(image, registration(1, clean=True))
    changes = [record for record in records if isinstance(record, PartitionChangeRecord)]
    assert [(change.partition_id, change.leader) for change in changes] == [(0, 1)]


def test_a_lone_replica_is_eligible_however_empty_its_in_sync_set() -> None:
    """Apache Kafka 4.3 leaves a partition so when its only broker stops."""
    image = with_topic(cluster(None), "orders", partitions=1)
    topic = image.topic("orders")
    assert topic is not None
    image = after(
        image,
        [PartitionChangeRecord(partition_id=0, topic_id=topic.id, leader=-1, isr=(), eligible_leader_replicas=(1,))],
    )
    records, _ = register_only_broker(image, registration(1, clean=True))
    topic = after(image, records).topic("orders")
    assert topic is not None
    partition = topic.partition(0)
    assert (partition.leader, partition.isr) == (1, (1,))


FIRST, SECOND = UUID(int=0xA), UUID(int=0xB)


def directories_after(image: MetadataImage, *log_dirs: UUID, found: dict[int, UUID] | None = None) -> MetadataImage:
    topic = image.topic("orders")
    assert topic is not None
    command = replace(
        registration(1),
        log_dirs=log_dirs,
        found={(topic.id, index): directory for index, directory in (found or {}).items()},
    )
    return after(image, register_only_broker(image, command)[0])


def directories(image: MetadataImage) -> list[UUID]:
    topic = image.topic("orders")
    assert topic is not None
    return [each.directories[0] for each in topic.partitions]


def an_unassigned_topic(*log_dirs: UUID) -> MetadataImage:
    """A topic as it was made before its partitions had directories, on a broker with these."""
    image = with_topic(cluster(None), "orders", partitions=4)
    topic = image.topic("orders")
    assert topic is not None
    for index in range(4):
        change = PartitionChangeRecord(partition_id=index, topic_id=topic.id, directories=(UNASSIGNED_DIRECTORY,))
        image = after(image, [change])
    return after(image, [RegisterBrokerRecord(broker_id=1, fenced=False, log_dirs=log_dirs)])


def test_partitions_without_a_directory_get_one_when_all_are_there() -> None:
    image = directories_after(an_unassigned_topic(FIRST, SECOND), FIRST, SECOND, found={3: FIRST})
    assert directories(image)[3] == FIRST
    assert set(directories(image)[:3]) == {FIRST, SECOND}
    assert known_directories(image, NodeId(1)) == {FIRST, SECOND}


def test_partitions_that_may_lie_in_a_directory_that_is_away_are_lost_until_they_are_found() -> None:
    image = directories_after(an_unassigned_topic(FIRST, SECOND), FIRST, found={0: FIRST})
    assert directories(image) == [FIRST, *[LOST_DIRECTORY] * 3]
    image = directories_after(image, FIRST)
    assert directories(image) == [FIRST, *[LOST_DIRECTORY] * 3], "also when nobody remembers the other directory"
    image = directories_after(image, FIRST, SECOND, found={2: SECOND})
    assert directories(image) == [FIRST, LOST_DIRECTORY, SECOND, LOST_DIRECTORY]


def test_nothing_new_is_placed_in_a_directory_that_is_offline() -> None:
    image = an_unassigned_topic(FIRST, SECOND)
    records, _ = report_directories(image, ReportDirectories(NodeId(1), (SECOND,)))
    assert after(image, records).brokers[NodeId(1)].log_dirs == (SECOND,)
    assert report_directories(image, ReportDirectories(NodeId(1), ())) == ([], None)
