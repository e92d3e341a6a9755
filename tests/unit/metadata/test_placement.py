"""Where replicas go."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from riverlog.metadata.placement import place
from tests.unit.metadata.cluster import cluster, with_topic


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 7), st.integers(1, 7), st.integers(1, 40), st.integers(0, 3))
def test_replicas_are_different_brokers_and_leaders_are_even(brokers, factor, partitions, racks):
    image = cluster(*(f"rack-{number % racks}" if racks else None for number in range(brokers)))
    factor = min(factor, brokers)
    placed = place(image, partitions=partitions, replication_factor=factor)
    assert len(placed) == partitions
    assert all(len(set(replicas)) == factor for replicas in placed)
    led = Counter(replicas[0] for replicas in placed)
    assert max(led.values()) - min(led.get(number, 0) for number in image.brokers) <= 1


def test_the_two_copies_stand_in_two_racks():
    placed = place(cluster("a", "a", "b", "b"), partitions=4, replication_factor=2)
    assert all({(each - 1) // 2 for each in replicas} == {0, 1} for replicas in placed)


def test_brokers_that_lead_least_come_first():
    image = with_topic(cluster(None, None, None), "orders", partitions=2)
    assert place(image, partitions=1, replication_factor=1) == [(3,)]


def test_followers_differ_from_round_to_round():
    placed = place(cluster(None, None, None), partitions=6, replication_factor=2)
    assert len(set(placed)) == 6
