"""Some scenarios with power lost at every call, and waits that only these miss; `make sim` tries all."""

import pytest

from tests.simulation.crash_points import noticed_at_crash_points, wrong_at_crash_points
from tests.simulation.scenarios import SCENARIOS
from tests.simulation.syncs import Place, places

SHORT = ("begin 0", "meanwhile 0", "kill 0", "epochs 0", "lost bytes 3", "transactions", "metadata")
ONLY_HERE = {
    "log.log.Log._find_ends waits for contents": "lost bytes 3",
    "log.log.Log._find_ends waits for names": "lost bytes 3",
    "log.truncation._forget_epochs waits for contents": "epochs 0",
    "log.truncation._forget_epochs waits for names": "epochs 0",
    "log.segments.segments.Segments.release_files waits for contents": "kill 0",
    "log.compaction.swap.Swap._sync_names waits for names": "swap 2",
    "log.compaction.swap.finish_swaps waits for names": "swap 2",
}
BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}


@pytest.mark.parametrize("name", SHORT)
def test_a_power_loss_at_any_call_takes_nothing_that_was_promised(name: str) -> None:
    assert wrong_at_crash_points(BY_NAME[name], copies=1) == []


@pytest.mark.parametrize("place", [place for place in places() if str(place) in ONLY_HERE], ids=str)
def test_a_wait_that_is_left_out_is_noticed(place: Place) -> None:
    assert noticed_at_crash_points(place.left_out, [BY_NAME[ONLY_HERE[str(place)]]]) is not None


def test_every_scenario_has_a_name_of_its_own() -> None:
    assert len(BY_NAME) == len(SCENARIOS)


def test_every_place_has_its_name() -> None:
    assert {str(place) for place in places()} >= set(ONLY_HERE)
