"""A short simulation of quorums; the long one is `make sim ONLY=quorum`."""

import pytest

from tests.simulation.quorum.drivers import simulate_drivers
from tests.simulation.quorum.run import simulate_quorum
from tests.simulation.quorum.scenarios import (
    cut_off_one_way,
    lonely_leader,
    record_of_an_earlier_epoch,
    two_removals_at_once,
    wiped_follower,
)
from tests.simulation.quorum.switches import SWITCHES, Switch, noticed

SEEDS_THAT_FOUND_SOMETHING = (122, 10_893)
"""Two voters, one of them about to be removed, that waited for each other; a controller that went on asking others
when nobody but the leader could help."""


@pytest.mark.parametrize("seed", [*range(6), *SEEDS_THAT_FOUND_SOMETHING])
def test_a_quorum_keeps_its_promises(seed: int) -> None:
    outcome = simulate_quorum(seed)
    assert outcome.violations == []
    assert outcome.counts["acknowledged"] > 0


@pytest.mark.parametrize("seed", [*range(4), 33, 72, 128, 196])
def test_a_driver_keeps_them_over_disks_that_forget(seed: int) -> None:
    outcome = simulate_drivers(seed)
    assert outcome.violations == []
    assert outcome.counts["acknowledged"] > 0


def test_a_run_is_determined_by_its_seed() -> None:
    assert simulate_quorum(3) == simulate_quorum(3)


@pytest.mark.parametrize(
    "scenario", [cut_off_one_way, lonely_leader, record_of_an_earlier_epoch, two_removals_at_once, wiped_follower]
)
def test_one_fault_alone(scenario) -> None:  # type: ignore[no-untyped-def]
    assert [violation for seed in range(3) for violation in scenario(seed)] == []


@pytest.mark.parametrize("switch", SWITCHES[1:], ids=lambda switch: switch.name)
def test_a_rule_that_is_switched_off_is_missed(switch: Switch) -> None:
    assert noticed(switch, seeds=40) is not None
