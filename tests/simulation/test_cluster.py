"""A short simulation of clusters of whole nodes; the long one is `make sim ONLY=clusters`."""

import gc
import warnings
from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.simulation.cluster.plan import draw_plan
from tests.simulation.cluster.run import ClusterRun, simulate_cluster
from tests.simulation.cluster.scenarios import late_heartbeat, lost_answer
from tests.simulation.cluster.switches import SWITCHES, Switch, noticed


@pytest.fixture(autouse=True)
def processes_that_ended_are_forgotten_here() -> Iterator[None]:
    """Have what dead processes were about to do collected now: in another test it would be a warning."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        gc.collect()


@pytest.mark.parametrize("seed", range(3))
def test_a_cluster_keeps_its_promises(seed: int) -> None:
    outcome = simulate_cluster(seed)
    assert outcome.violations == []
    assert outcome.counts["changes"] > 0
    assert outcome.counts["records"] > 0


def test_a_cluster_whose_workers_are_interrupted_does() -> None:
    plan = replace(draw_plan(4), steps_in_work=True, snapshot_bytes=2_048)
    assert ClusterRun(plan).run().violations == []


def test_a_run_is_determined_by_its_seed() -> None:
    assert simulate_cluster(0) == simulate_cluster(0)


@pytest.mark.parametrize("scenario", [late_heartbeat, lost_answer])
def test_one_fault_alone(scenario) -> None:  # type: ignore[no-untyped-def]
    assert scenario(0) == []


@pytest.mark.parametrize("switch", SWITCHES, ids=lambda switch: switch.name)
def test_a_rule_that_is_switched_off_is_missed(switch: Switch) -> None:
    assert noticed(switch, seeds=12) is not None
