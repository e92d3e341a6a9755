"""What holds for the leaders of a topic."""

from uuid import UUID

from riverlog.metadata.draft import after
from riverlog.metadata.image import LOST_DIRECTORY, MetadataImage, PartitionImage
from riverlog.metadata.leader_rules import PresentBrokers, TopicRules
from riverlog.metadata.records import BrokerRegistrationChangeRecord, ConfigRecord, FeatureLevelRecord
from riverlog.model.ids import LeaderEpoch, NodeId
from riverlog.model.settings import SettingLayers
from tests.unit.metadata.cluster import cluster, with_topic

ONE, TWO = NodeId(1), NodeId(2)
HERE, AWAY = UUID(int=1001), UUID(int=1002)


def rules(image: MetadataImage, **static: str) -> tuple[int, bool, bool]:
    topic = image.topic("orders")
    assert topic is not None
    settings = {name.replace("_", "."): value for name, value in static.items()}
    return tuple(TopicRules(image, SettingLayers(static=settings)).of(topic))  # type: ignore[return-value]


def test_the_strongest_setting_counts() -> None:
    image = with_topic(cluster(None, None, None), "orders")
    assert rules(image) == (2, False, False)
    assert rules(image, min_insync_replicas="1", unclean_leader_election_enable="true") == (1, True, False)
    image = after(image, [ConfigRecord(4, "", "min.insync.replicas", "3")])
    assert rules(image, min_insync_replicas="1") == (3, False, False)
    image = after(image, [ConfigRecord(2, "orders", "min.insync.replicas", "1")])
    assert rules(image) == (1, False, False)
    image = after(image, [ConfigRecord(2, "orders", "min.insync.replicas", "7")])
    assert rules(image) == (7, False, False)
    image = after(image, [FeatureLevelRecord("eligible.leader.replicas.version", 1)])
    assert rules(image) == (7, False, True)


def partition(*directories: UUID) -> PartitionImage:
    return PartitionImage(0, (ONE, TWO)[: len(directories) or 2], (ONE,), ONE, LeaderEpoch(0), 0, directories)


def test_who_is_there_may_lead() -> None:
    image = cluster(None, None)
    present = PresentBrokers(image)
    assert present.can_lead(ONE, partition(HERE, AWAY))
    assert not present.can_lead(NodeId(3), partition(HERE, AWAY))
    assert not PresentBrokers(image, leaving=[ONE]).is_there(ONE)
    fenced = after(image, [BrokerRegistrationChangeRecord(1, 0, fenced=1)])
    assert not PresentBrokers(fenced).can_lead(ONE, partition(HERE, AWAY))
    assert PresentBrokers(fenced, arriving=[ONE]).can_lead(ONE, partition(HERE, AWAY))
    stops = after(image, [BrokerRegistrationChangeRecord(1, 0, in_controlled_shutdown=1)])
    assert not PresentBrokers(stops).can_lead(ONE, partition(HERE, AWAY))


def test_who_lacks_the_directory_may_not() -> None:
    present = PresentBrokers(cluster(None, None))
    assert present.can_lead(ONE, partition(UUID(int=0), AWAY)), "nobody has said which one it is"
    assert present.can_lead(ONE, partition())
    assert not present.can_lead(ONE, partition(LOST_DIRECTORY, AWAY))
    assert not present.can_lead(ONE, partition(UUID(int=7777), AWAY))
    lost = PresentBrokers(
        after(cluster(None), [BrokerRegistrationChangeRecord(1, 0, log_dirs=(HERE, AWAY))]), lost={ONE: [HERE]}
    )
    assert not lost.can_lead(ONE, partition(HERE))
    assert lost.can_lead(ONE, partition(AWAY))
