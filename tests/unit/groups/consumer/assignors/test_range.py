"""The range assignor, by example."""

from uuid import UUID

from riverlog.groups.consumer.assignors.range import assign_range
from riverlog.groups.consumer.assignors.subscriber import NO_PARTITIONS, Subscriber

ORDERS, PAYMENTS = (UUID(int=number) for number in (1, 2))


def some(*indexes: int) -> frozenset[int]:
    return frozenset(indexes)


def member(name: str, *topics: UUID, instance: str | None = None) -> Subscriber:
    return Subscriber(name, frozenset(topics), NO_PARTITIONS, instance)


def test_each_topic_is_cut_into_runs_and_equal_topics_alike():
    assigned = assign_range([member("b", ORDERS, PAYMENTS), member("a", ORDERS, PAYMENTS)], {ORDERS: 3, PAYMENTS: 3})
    assert assigned == {"a": {ORDERS: some(0, 1), PAYMENTS: some(0, 1)}, "b": {ORDERS: some(2), PAYMENTS: some(2)}}


def test_static_members_come_first_in_the_order_of_their_instances():
    members = [member("a", ORDERS), member("z", ORDERS, instance="1"), member("y", ORDERS, instance="2")]
    assert assign_range(members, {ORDERS: 3}) == {
        "z": {ORDERS: some(0)},
        "y": {ORDERS: some(1)},
        "a": {ORDERS: some(2)},
    }


def test_members_beyond_the_partitions_get_none():
    assert assign_range([member("a", ORDERS), member("b", ORDERS)], {ORDERS: 1}) == {"a": {ORDERS: some(0)}, "b": {}}


def test_only_subscribers_of_a_topic_share_it():
    assigned = assign_range([member("a", ORDERS), member("b", ORDERS, PAYMENTS)], {ORDERS: 2, PAYMENTS: 2})
    assert assigned == {"a": {ORDERS: some(0)}, "b": {ORDERS: some(1), PAYMENTS: some(0, 1)}}
