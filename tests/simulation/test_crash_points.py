"""Some scenarios with power lost at every call, and waits that only these miss; `make sim` tries all."""

import pytest

from tests.simulation.crash_points import Scenario, noticed_at_crash_points, wrong_at_crash_points
from tests.simulation.scenarios import SCENARIOS
from tests.simulation.syncs import Place, places

SHORT = ("begin 0", "transactions", "metadata")
ONLY_HERE = (
    "log.swap.Swap.announce waits for names",
    "log.swap.finish_swaps waits for names",
)


@pytest.mark.parametrize("scenario", [each for each in SCENARIOS if each.name in SHORT], ids=lambda each: each.name)
def test_a_power_loss_at_any_call_takes_nothing_that_was_promised(scenario: Scenario) -> None:
    assert wrong_at_crash_points(scenario, copies=1) == []


@pytest.mark.parametrize("place", [place for place in places() if str(place) in ONLY_HERE], ids=str)
def test_a_wait_that_is_left_out_is_noticed(place: Place) -> None:
    swaps = [scenario for scenario in SCENARIOS if scenario.name.startswith("swap")]
    assert noticed_at_crash_points(place.left_out, swaps) is not None


def test_every_scenario_has_a_name_of_its_own() -> None:
    assert len({scenario.name for scenario in SCENARIOS}) == len(SCENARIOS)
