"""Short drills of a log directory, and that a missing wait for the medium is noticed."""

import pytest

from tests.simulation.drill import drill, noticed_in_drill
from tests.simulation.syncs import Place, places

SOON = (
    "log.directory.CheckpointPlan.run waits for contents",
    "log.directory.LogDirectory.open waits for names",
    "log.directory.LogDirectory.close waits for names",
    "log.directory.LogDirectory._put_in_place waits for names",
    "log.directory._make_folder_durably waits for names",
    "log.identity.write_identity waits for contents",
    "log.sync.SyncPlan.run (1) waits for contents",
    "log.sync.SyncPlan.run (2) waits for names",
)


def test_a_log_directory_keeps_what_was_flushed() -> None:
    assert {seed: wrong for seed in range(150) if (wrong := drill(seed))} == {}


@pytest.mark.parametrize("place", [place for place in places() if str(place) in SOON], ids=str)
def test_a_wait_that_is_left_out_is_noticed(place: Place) -> None:
    assert noticed_in_drill(place.left_out, range(60)) is not None


def test_every_place_is_known_by_a_name_of_its_own() -> None:
    names = [str(place) for place in places()]
    assert len(set(names)) == len(names)
    assert set(SOON) <= set(names)
