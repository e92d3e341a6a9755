"""A short simulation; the long one is `make sim`."""

import os
import subprocess
import sys

import pytest

from tests.simulation.plan import CreateTopic, Kill, Plan, PowerLoss, Produce, Step, draw_plan, with_groups, with_rot
from tests.simulation.run import simulate

SEEDS = range(5)
ANOTHER_HASH_SEED = {**os.environ, "PYTHONHASHSEED": "7"}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_node_keeps_its_promises(seed: int) -> None:
    outcome = simulate(draw_plan(seed))
    assert outcome.violations == []
    assert outcome.counts["crashes"] > 0
    assert outcome.counts["shown"] > 0


def test_bits_that_rot_are_refused_and_nothing_else_is() -> None:
    outcomes = [simulate(with_rot(draw_plan(seed, steps=120))) for seed in range(6)]
    assert [violation for outcome in outcomes for violation in outcome.violations] == []
    assert sum(outcome.counts["rotten"] for outcome in outcomes) > 0
    assert sum(outcome.counts["refused"] for outcome in outcomes) > 0


@pytest.mark.parametrize("seed", [0, 2])
def test_groups_go_on_where_they_were_told(seed: int) -> None:
    outcome = simulate(with_groups(draw_plan(seed, steps=110)))
    assert outcome.violations == []
    assert outcome.counts["commits"] > 0
    assert outcome.counts["replays"] > 0


def test_a_run_is_determined_by_its_seed() -> None:
    first, again = (simulate(draw_plan(3, steps=50), keep_trace=True) for _ in range(2))
    assert first.trace == again.trace
    assert first.trace_hash == again.trace_hash
    assert simulate(draw_plan(4, steps=50)).trace_hash != first.trace_hash


def test_a_run_does_not_depend_on_the_process() -> None:
    script = (
        "import logging; logging.disable()\n"
        "from tests.simulation.plan import draw_plan\n"
        "from tests.simulation.run import simulate\n"
        "print(simulate(draw_plan(3, steps=50)).trace_hash)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script], env=ANOTHER_HASH_SEED, capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip() == simulate(draw_plan(3, steps=50)).trace_hash


def test_any_part_of_a_plan_is_a_plan() -> None:
    plan = draw_plan(5, steps=50)
    for part in (plan.steps[::2], plan.steps[10:20], ()):
        assert simulate(plan.with_steps(part)).violations == []


def test_a_plan_reads_like_a_list_of_what_happens() -> None:
    plan = Plan(
        1, {"durability": "fsync"}, [Step(0.5, CreateTopic(0, 1)), Step(0.5, Produce(0, 0, 0, 3)), Step(0, Kill())]
    )
    assert "+0.500s CreateTopic(topic=0, partitions=1)" in str(plan)
    assert simulate(plan).counts["acknowledged"] == 3
    assert any(isinstance(step.action, PowerLoss) for step in draw_plan(1).steps)
