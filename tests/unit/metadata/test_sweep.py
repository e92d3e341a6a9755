"""Walks over partitions, a slice at a time."""

from riverlog.metadata.broker_index import BrokerIndex
from riverlog.metadata.draft import after
from riverlog.metadata.records import BrokerRegistrationChangeRecord, PartitionChangeRecord
from riverlog.metadata.sweep import Sweep, Sweeps, all_of
from riverlog.model.ids import NodeId
from riverlog.model.settings import SettingLayers
from tests.unit.metadata.cluster import cluster, topic_id, with_topic

ONE = NodeId(1)
FENCED = BrokerRegistrationChangeRecord(1, 0, fenced=1)


def test_the_end_is_written_behind_the_last_partition() -> None:
    image = with_topic(cluster(None, None, None), "orders", partitions=5)
    sweeps = Sweeps(SettingLayers())
    sweeps.add(Sweep(all_of(BrokerIndex.of(image).in_sync.get(ONE)), leaving=ONE, end=FENCED))
    written = []
    while sweeps:
        assert sweeps.leaves(ONE)
        records = sweeps.step(image, 2)
        image = after(image, records)
        written.append(records)
    assert [len(each) for each in written] == [2, 2, 2]
    assert written[-1][-1] == FENCED
    assert not sweeps.leaves(ONE)
    assert sweeps.step(image, 2) == []


def test_an_end_that_says_nothing_any_more_is_left_out() -> None:
    image = after(cluster(None, None), [FENCED])
    for end in (FENCED, BrokerRegistrationChangeRecord(1, 7, fenced=1), BrokerRegistrationChangeRecord(9, 0, fenced=1)):
        sweeps = Sweeps(SettingLayers())
        sweeps.add(Sweep(all_of(None), leaving=ONE, end=end))
        assert sweeps.step(image, 2) == []
        assert not sweeps


def test_nobody_counts_on_two_who_leave() -> None:
    image = with_topic(cluster(None, None, None), "orders", partitions=1)
    index, sweeps = BrokerIndex.of(image), Sweeps(SettingLayers())
    for node_id in (ONE, NodeId(2)):
        sweeps.add(Sweep(all_of(index.in_sync.get(node_id)), leaving=node_id))
    [change, *_] = sweeps.step(image, 10)
    assert isinstance(change, PartitionChangeRecord)
    assert (change.leader, change.isr) == (3, (2, 3))
    sweeps.drop(NodeId(2))
    assert not sweeps


def test_equal_partitions_of_topics_with_other_rules_are_decided_each_by_its_own() -> None:
    image = with_topic(with_topic(cluster(None, None), "a"), "b", number=2, unclean_leader_election_enable="true")
    out_of_sync = [PartitionChangeRecord(0, topic_id(number), isr=(1,)) for number in (1, 2)]
    image = after(image, out_of_sync)
    sweeps = Sweeps(SettingLayers())
    sweeps.add(Sweep(all_of(BrokerIndex.of(image).in_sync.get(ONE)), leaving=ONE))
    strict, loose = sweeps.step(image, 10)
    assert strict == PartitionChangeRecord(0, topic_id(1), leader=-1)
    assert loose == PartitionChangeRecord(0, topic_id(2), leader=2, isr=(2,), leader_recovery_state=1)
