"""Where replicas go."""

from collections import Counter
from dataclasses import replace
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st

from riverlog.metadata.draft import after
from riverlog.metadata.placement import BrokerLoad, open_directories, place, usable_brokers
from riverlog.metadata.records import BrokerRegistrationChangeRecord, PartitionRecord
from riverlog.model.ids import NodeId
from tests.unit.metadata.cluster import cluster


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 7), st.integers(1, 7), st.integers(1, 40), st.integers(0, 3))
def test_replicas_are_different_brokers_and_leaders_are_even(brokers, factor, partitions, racks):
    image = cluster(*(f"rack-{number % racks}" if racks else None for number in range(brokers)))
    factor = min(factor, brokers)
    placed = place(image, BrokerLoad(), partitions=partitions, replication_factor=factor)
    assert len(placed) == partitions
    assert all(len(set(replicas)) == factor for replicas in placed)
    led = Counter(replicas[0] for replicas in placed)
    assert max(led.values()) - min(led.get(number, 0) for number in image.brokers) <= 1


def test_the_two_copies_stand_in_two_racks():
    placed = place(cluster("a", "a", "b", "b"), BrokerLoad(), partitions=4, replication_factor=2)
    assert all({(each - 1) // 2 for each in replicas} == {0, 1} for replicas in placed)


def test_brokers_that_lead_least_come_first():
    image = cluster(None, None, None)
    load = BrokerLoad({NodeId(1): 1, NodeId(2): 1})
    assert place(image, load, partitions=1, replication_factor=1) == [(3,)]


def test_followers_differ_from_round_to_round():
    placed = place(cluster(None, None, None), BrokerLoad(), partitions=6, replication_factor=2)
    assert len(set(placed)) == 6


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=7), st.integers(1, 4))
def test_no_rack_has_two_replicas_while_another_has_none(racks, factor):
    image = cluster(*racks)
    factor = min(factor, len(racks))
    for replicas in place(image, BrokerLoad(), partitions=2 * len(racks), replication_factor=factor):
        assert len({image.brokers[each].rack for each in replicas}) == min(factor, len(set(racks)))


def test_what_is_placed_counts_for_what_is_placed_next():
    image, load, leaders = cluster(None, None, None), BrokerLoad(), Counter()
    for _ in range(6):
        [replicas] = place(image, load, partitions=1, replication_factor=2)
        load.add([PartitionRecord(replicas=replicas, leader=replicas[0])])
        leaders[replicas[0]] += 1
    assert leaders == {1: 2, 2: 2, 3: 2}


def test_nothing_is_placed_on_who_goes_or_takes_nothing():
    image = cluster(None, None, None, None, None)
    image = after(
        image,
        [
            BrokerRegistrationChangeRecord(1, 0, fenced=1),
            BrokerRegistrationChangeRecord(2, 0, in_controlled_shutdown=1),
            BrokerRegistrationChangeRecord(3, 0, cordoned_log_dirs=(UUID(int=1003),)),
        ],
    )
    load = BrokerLoad(leaving=frozenset([NodeId(4)]))
    assert [broker.id for broker in usable_brokers(image, load)] == [5]


def test_a_cordoned_directory_gets_nothing_new():
    broker = cluster(None).brokers[NodeId(1)]
    first, second = UUID(int=1), UUID(int=2)
    assert open_directories(replace(broker, log_dirs=(first, second), cordoned_log_dirs=(first,))) == (second,)
    assert open_directories(replace(broker, log_dirs=(), cordoned_log_dirs=())) == ()
    assert open_directories(replace(broker, log_dirs=(first,), cordoned_log_dirs=(first,))) is None


def test_what_one_broker_led_is_spread_over_the_others():
    image, load, followers = cluster(*[None] * 6), BrokerLoad(), Counter()
    for _ in range(120):
        [replicas] = place(image, load, partitions=1, replication_factor=3)
        load.add([PartitionRecord(replicas=replicas, leader=replicas[0])])
        if replicas[0] == 1:
            followers[replicas[1]] += 1
    assert set(followers) == {2, 3, 4, 5, 6}
    assert max(followers.values()) <= 2 * min(followers.values())
