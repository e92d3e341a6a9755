"""When members are to come again."""

import pytest

from riverlog.model.limits import (
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
