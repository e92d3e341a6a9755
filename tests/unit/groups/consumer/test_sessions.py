"""When members are to come again."""

import pytest

from riverlog.groups.limits import (
    HURRIED_HEARTBEAT_MS,
    HURRIED_HEARTBEATS_MAX,
    HURRIED_HEARTBEATS_PER_SECOND_MAX,
    UNHURRIED_HEARTBEAT_MS,
    WAITING_HEARTBEAT_MS,
)
from tests.support.consumers import ConsumerCoordinator, at_once


@pytest.mark.parametrize("count", [1, 100, 400])
def test_a_group_in_a_hurry_sends_a_bounded_number_of_heartbeats(count: int) -> None:
    coordinator = ConsumerCoordinator(orders=1)
    for number in range(count):
        member = coordinator.consumer(f"m{number}")
        member.beat()
    assert member.interval_ms == max(HURRIED_HEARTBEAT_MS if count == 1 else WAITING_HEARTBEAT_MS, 2 * count)
    assert count * 1000 / member.interval_ms <= HURRIED_HEARTBEATS_PER_SECOND_MAX


def test_a_member_is_not_hurried_for_ever() -> None:
    coordinator = ConsumerCoordinator()
    alice, bob = coordinator.consumer("a"), coordinator.consumer("b")
    alice.beat()
    bob.beat()
    intervals = [bob.beat().heartbeat_interval_ms for _ in range(HURRIED_HEARTBEATS_MAX + 1)]
    assert intervals[-4:] == [WAITING_HEARTBEAT_MS] * 2 + [UNHURRIED_HEARTBEAT_MS] * 2
    coordinator.consumer("c").beat()
    assert bob.beat().heartbeat_interval_ms == WAITING_HEARTBEAT_MS, "there is something new to hurry for"


def test_a_session_shorter_than_the_interval_still_ends() -> None:
    coordinator = ConsumerCoordinator(at_once(group_consumer_session_timeout_ms=1_000))
    coordinator.consumer("a").beat()
    coordinator.pass_time(0.9)
    assert list(coordinator.group.members) == ["a"]
    coordinator.pass_time(0.2)
    assert coordinator.group.members == {}


def test_a_group_lives_by_its_own_settings() -> None:
    coordinator = ConsumerCoordinator()
    coordinator.configure(consumer_heartbeat_interval_ms=2_000, consumer_session_timeout_ms=3_500)
    alice = coordinator.consumer("a")
    alice.beat()
    coordinator.settle(alice)
    for _ in range(5):
        coordinator.pass_time(2)
        assert alice.beat().heartbeat_interval_ms <= 2_000
    assert alice.interval_ms == 2_000
    coordinator.pass_time(3.4)
    assert list(coordinator.group.members) == ["a"]
    coordinator.pass_time(0.2)
    assert coordinator.group.members == {}


def test_a_member_learns_a_new_interval_with_its_next_heartbeat() -> None:
    coordinator = ConsumerCoordinator()
    alice = coordinator.consumer("a")
    alice.beat()
    coordinator.settle(alice)
    coordinator.pass_time(10)
    assert alice.beat().heartbeat_interval_ms == 5_000
    coordinator.configure(consumer_heartbeat_interval_ms=7_000)
    coordinator.pass_time(5)
    assert alice.beat().heartbeat_interval_ms == 7_000


def test_a_group_may_rest_longer_between_two_assignments() -> None:
    coordinator = ConsumerCoordinator()
    coordinator.configure(consumer_assignment_interval_ms=10_000)
    alice = coordinator.consumer("a")
    alice.beat()
    coordinator.consumer("b").beat()
    target = coordinator.group.target_epoch
    coordinator.pass_time(9)
    assert coordinator.group.target_epoch == target < coordinator.group.epoch
    coordinator.pass_time(2)
    assert coordinator.group.target_epoch == coordinator.group.epoch
