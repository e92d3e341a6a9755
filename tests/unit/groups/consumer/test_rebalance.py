"""The steps of consumer groups that heartbeats alone do not show."""

from riverlog.groups.consumer.group import LEFT_FOR_A_WHILE, ConsumerMember, ConsumerMemberState
from riverlog.groups.consumer.rebalance import left_for_a_while
from tests.support.consumers import ConsumerCoordinator, at_once
from tests.support.shapes import topic_id

ORDERS = topic_id("orders")


def test_one_who_left_for_a_while_may_have_read_nothing_yet() -> None:
    member = ConsumerMember(
        "m", epoch=3, state=ConsumerMemberState.UNREVOKED, assigned={ORDERS: {0: 2}}, revoking={ORDERS: {1: 1}}
    )
    away = left_for_a_while(member, LEFT_FOR_A_WHILE)
    assert (away.epoch, away.state, away.assigned, away.revoking) == (
        -2,
        ConsumerMemberState.STABLE,
        {ORDERS: {0: 0}},
        {},
    )


def test_an_assignment_that_has_to_wait_is_not_forgotten_at_a_fail_over() -> None:
    coordinator = ConsumerCoordinator(at_once(group_consumer_assignment_interval_ms=200))
    alice, bob = coordinator.consumer("a"), coordinator.consumer("b")
    alice.beat()
    bob.beat()
    assert coordinator.group.phase == "Assigning"
    coordinator.fail_over()
    coordinator.settle(alice, bob)
    assert (alice.reads, bob.reads) == ({"orders": [0, 1]}, {"orders": [2, 3]})
