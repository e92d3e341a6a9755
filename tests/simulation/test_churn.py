"""Topics that come and go beside all trouble that there is."""

import pytest

from tests.simulation.plan import draw_plan, with_churn
from tests.simulation.run import simulate


@pytest.mark.parametrize("seed", range(4))
def test_topics_that_come_and_go_take_nothing_with_them(seed: int) -> None:
    outcome = simulate(with_churn(draw_plan(seed, steps=60)))
    assert outcome.violations == []
