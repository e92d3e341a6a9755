"""A failing plan made smaller: parts of it are left out for as long as it still fails (ddmin)."""

import re
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from tests.simulation.plan import Plan
from tests.simulation.run import simulate
from tests.simulation.scene import Outcome

T = TypeVar("T")

RUNS_MAX: Final = 300
_NUMBER: Final = re.compile(r"\d+")


def shrink(outcome: Outcome) -> Plan:
    """Return the smallest plan found that leads to the same kind of violation."""
    wanted = kind_of(outcome.violations[0])

    def fails(plan: Plan) -> bool:
        return any(kind_of(violation) == wanted for violation in simulate(plan).violations)

    plan = outcome.plan
    return plan.with_steps(smallest(plan.steps, lambda steps: fails(plan.with_steps(steps)), runs_max=RUNS_MAX))


def kind_of(violation: str) -> str:
    """Return a violation without its numbers."""
    return _NUMBER.sub("N", violation)


def smallest(items: Sequence[T], fails: Callable[[Sequence[T]], bool], *, runs_max: int) -> Sequence[T]:
    """Leave out ever smaller parts of the items for as long as what is left fails."""
    parts = 2
    while len(items) >= 2 and runs_max > 0:
        size = -(-len(items) // parts)
        for start in range(0, len(items), size):
            runs_max -= 1
            rest = [*items[:start], *items[start + size :]]
            if fails(rest):
                items, parts = rest, max(parts - 1, 2)
                break
            if runs_max <= 0:
                break
        else:
            if size == 1:
                break
            parts = min(parts * 2, len(items))
    return items
