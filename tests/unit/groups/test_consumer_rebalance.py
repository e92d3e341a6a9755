"""The steps of consumer groups that heartbeats alone do not show."""

import pytest

from riverlog.groups.consumer_group import LEFT_FOR_A_WHILE, Member, MemberState
from riverlog.groups.consumer_rebalance import left_for_a_while
from riverlog.model.limits import (
    HURRIED_HEARTBEAT_MS,
    HURRIED_HEARTBEATS_MAX,
    HURRIED_HEARTBEATS_PER_SECOND_MAX,
    UNHURRIED_HEARTBEAT_MS,
)
from tests.support.consumers import ConsumerCoordinator, at_once
from tests.support.shapes import topic_id

ORDERS = topic_id("orders")


@pytest.mark.parametrize("count", [1, 100, 400])
def test_a_group_in_a_hurry_sends_a_bounded_number_of_heartbeats(count: int) -> None:
    coordinator = ConsumerCoordinator(orders=1)
    for number in range(count):
        member = coordinator.consumer(f"m{number}")
        member.beat()
    assert member.interval_ms == max(HURRIED_HEARTBEAT_MS, 2 * count)
    assert count * 1000 / member.interval_ms <= HURRIED_HEARTBEATS_PER_SECOND_MAX


def test_a_member_is_not_hurried_for_ever() -> None:
    coordinator = ConsumerCoordinator()
    alice, bob = coordinator.consumer("a"), coordinator.consumer("b")
    alice.beat()
    bob.beat()
    intervals = [bob.beat().heartbeat_interval_ms for _ in range(HURRIED_HEARTBEATS_MAX + 1)]
    assert intervals[-4:] == [HURRIED_HEARTBEAT_MS] * 2 + [UNHURRIED_HEARTBEAT_MS] * 2
    coordinator.consumer("c").beat()
    assert bob.beat().heartbeat_interval_ms == HURRIED_HEARTBEAT_MS, "there is something new to hurry for"


def test_one_who_left_for_a_while_may_have_read_nothing_yet() -> None:
    member = Member("m", epoch=3, state=MemberState.UNREVOKED, assigned={ORDERS: {0: 2}}, revoking={ORDERS: {1: 1}})
    away = left_for_a_while(member, LEFT_FOR_A_WHILE)
    assert (away.epoch, away.state, away.assigned, away.revoking) == (-2, MemberState.STABLE, {ORDERS: {0: 0}}, {})


def test_an_assignment_that_has_to_wait_is_not_forgotten_at_a_fail_over() -> None:
    coordinator = ConsumerCoordinator(at_once(group_consumer_assignment_interval_ms=200))
    alice, bob = coordinator.consumer("a"), coordinator.consumer("b")
    alice.beat()
    bob.beat()
    assert coordinator.group.phase == "Assigning"
    coordinator.fail_over()
    coordinator.settle(alice, bob)
    assert (alice.reads, bob.reads) == ({"orders": [0, 1]}, {"orders": [2, 3]})
