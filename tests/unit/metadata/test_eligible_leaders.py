"""Another number of replicas that must be in sync."""

from riverlog.metadata.eligible_leaders import forgotten_eligible
from riverlog.metadata.records import ClearElrRecord, ConfigRecord, PartitionChangeRecord
from tests.unit.metadata.active_cluster import ActiveCluster


def test_only_where_there_is_a_leader_eligible_ones_are_forgotten() -> None:
    cluster = ActiveCluster(None, None, None)
    cluster.create("led", 1, (1, 2))
    mixed = cluster.create("mixed", 2, (2, 3), (1, 2))
    cluster.create("other", 1, (1, 2))
    for number in (3, 2):
        cluster.beat(number, want_fence=True)
    image, index = cluster.machine.image, cluster.machine.index
    of_led = ConfigRecord(2, "led", "min.insync.replicas", "1")
    assert forgotten_eligible(image, index, [of_led]) == [ClearElrRecord("led")]
    assert forgotten_eligible(image, index, [ConfigRecord(2, "led", "retention.ms", "1")]) == []
    assert forgotten_eligible(image, index, [ConfigRecord(4, "", "min.insync.replicas", "1")]) == [
        ClearElrRecord("led"),
        PartitionChangeRecord(1, mixed, eligible_leader_replicas=()),
        ClearElrRecord("other"),
    ]


def test_a_cluster_without_them_forgets_nothing() -> None:
    cluster = ActiveCluster(None, eligible=False)
    record = ConfigRecord(4, "", "min.insync.replicas", "1")
    assert forgotten_eligible(cluster.machine.image, cluster.machine.index, [record]) == []
