"""Making a failing plan smaller."""

from tests.simulation.plan import CreateTopic, CutConnections, JumpClock, Plan, Step, Wait
from tests.simulation.run import simulate
from tests.simulation.shrink import kind_of, shrink, smallest
from tests.simulation.switches import SWITCHES


def test_only_what_is_needed_is_left() -> None:
    assert list(smallest(range(100), lambda items: {3, 71} <= set(items), runs_max=500)) == [3, 71]


def test_the_number_of_tries_is_bounded() -> None:
    tried = []

    def fails(items: object) -> bool:
        tried.append(items)
        return False

    smallest(range(1_000), fails, runs_max=20)
    assert len(tried) == 20


def test_a_plan_shrinks_to_the_steps_that_lead_to_its_violation() -> None:
    work = [Wait(), CreateTopic(0, 1), Wait(), CreateTopic(1, 1), CutConnections(), Wait(), JumpClock(5_000)]
    plan = Plan(1, {"durability": "fsync"}, [Step(0.3, action) for action in work])
    (switch,) = [switch for switch in SWITCHES if switch.name == "metadata is synced"]
    with switch.off():
        outcome = simulate(plan)
        smaller = shrink(outcome)
        assert kind_of(simulate(smaller).violations[0]) == kind_of(outcome.violations[0])
    assert len(smaller.steps) < len(plan.steps)
    assert any(isinstance(step.action, CreateTopic) for step in smaller.steps)


def test_violations_of_one_kind_differ_in_numbers_only() -> None:
    assert kind_of("offset 12 of topic0-1") == kind_of("offset 7 of topic2-0")
