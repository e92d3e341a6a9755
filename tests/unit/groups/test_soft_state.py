"""What is known about consumer groups at the moment is lost at a fail-over, and only that."""

from tests.support.consumers import ConsumerCoordinator


def test_nothing_live_is_needed_to_go_on() -> None:
    coordinator = ConsumerCoordinator()
    members = [coordinator.consumer(each) for each in "ab"]
    coordinator.settle(*members)
    coordinator.fail_over()
    assert coordinator.machine.soft.consumers == {}
    coordinator.settle(*members)
    assert coordinator.machine.soft.consumers["g"].is_current
    assert coordinator.machine.soft.consumers["g"].silent == set()
