"""The uniform assignor, by example."""

from uuid import UUID

from riverlog.groups.consumer.assignors.subscriber import NO_PARTITIONS, Partitions, Subscriber
from riverlog.groups.consumer.assignors.uniform import assign_uniform

ORDERS, PAYMENTS, RETURNS = (UUID(int=number) for number in (1, 2, 3))


def some(*indexes: int) -> frozenset[int]:
    return frozenset(indexes)


def member(name: str, *topics: UUID, has: Partitions = NO_PARTITIONS) -> Subscriber:
    return Subscriber(name, frozenset(topics), has)


def test_partitions_are_dealt_out_in_turn():
    assigned = assign_uniform([member("a", ORDERS, PAYMENTS), member("b", ORDERS, PAYMENTS)], {ORDERS: 2, PAYMENTS: 2})
    assert assigned == {"a": {ORDERS: some(0), PAYMENTS: some(0)}, "b": {ORDERS: some(1), PAYMENTS: some(1)}}


def test_a_new_member_gets_its_share_and_nothing_else_moves():
    first = member("a", ORDERS, has={ORDERS: some(0, 1, 2)})
    second = member("b", ORDERS, has={ORDERS: some(3, 4, 5)})
    assigned = assign_uniform([first, second, member("c", ORDERS)], {ORDERS: 6})
    assert assigned == {"a": {ORDERS: some(0, 1)}, "b": {ORDERS: some(3, 4)}, "c": {ORDERS: some(2, 5)}}


def test_what_a_departed_member_had_goes_to_those_with_least():
    assigned = assign_uniform([member("a", ORDERS, has={ORDERS: some(0, 1)}), member("b", ORDERS)], {ORDERS: 4})
    assert assigned == {"a": {ORDERS: some(0, 1)}, "b": {ORDERS: some(2, 3)}}


def test_more_members_than_partitions_leaves_some_without():
    assert assign_uniform([member("a", ORDERS), member("b", ORDERS)], {ORDERS: 1}) == {"a": {ORDERS: some(0)}, "b": {}}


def test_a_member_that_reads_more_topics_leaves_the_shared_one_to_others():
    assigned = assign_uniform([member("a", ORDERS, PAYMENTS), member("b", PAYMENTS)], {ORDERS: 4, PAYMENTS: 4})
    assert assigned == {"a": {ORDERS: some(0, 1, 2, 3)}, "b": {PAYMENTS: some(0, 1, 2, 3)}}


def test_what_is_no_longer_subscribed_or_no_longer_there_is_given_up():
    holder = member("a", ORDERS, has={ORDERS: some(0, 7), RETURNS: some(0)})
    assert assign_uniform([holder], {ORDERS: 1}) == {"a": {ORDERS: some(0)}}


def test_a_partition_that_two_members_claim_stays_with_one():
    both = [member("a", ORDERS, has={ORDERS: some(0)}), member("b", ORDERS, has={ORDERS: some(0, 1)})]
    assert assign_uniform(both, {ORDERS: 2}) == {"a": {ORDERS: some(0)}, "b": {ORDERS: some(1)}}


def test_nobody_gets_nothing():
    assert assign_uniform([], {}) == {}
    assert assign_uniform([member("a")], {}) == {"a": {}}
