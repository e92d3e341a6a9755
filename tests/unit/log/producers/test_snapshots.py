"""When producers are written down."""

import pytest

from riverlog.log.producers import snapshots as module
from riverlog.log.producers.snapshots import Snapshots
from riverlog.log.producers.state import Producers
from riverlog.log.sync import SyncPlan
from riverlog.model.ids import Offset
from tests.support.disk import MemoryDisk


def written(
    snapshots: Snapshots, end: int, active_bytes: int, producers: Producers | None
) -> tuple[list[int], list[int]]:
    """Return which offsets a plan writes snapshots for, and which it removes."""
    plan = SyncPlan(MemoryDisk(), Offset(end))
    snapshots.add_to(plan, active_bytes, producers)
    return [int(path[3:23]) for path in plan.replacements], [int(path[3:23]) for path in plan.removals]


@pytest.fixture
def snapshots(monkeypatch: pytest.MonkeyPatch) -> Snapshots:
    monkeypatch.setattr(module, "_INTERVAL_BYTES", 100)
    return Snapshots("/o")


def test_where_a_segment_begins_and_now_and_then_within_it(snapshots: Snapshots) -> None:
    producers = Producers()
    assert written(snapshots, 5, 99, producers) == ([], [])
    assert written(snapshots, 6, 100, producers) == ([6], [])
    assert written(snapshots, 7, 150, producers) == ([], [])
    snapshots.begin_segment(Offset(9), producers)
    assert written(snapshots, 9, 0, producers) == ([9], [6])
    assert written(snapshots, 12, 100, producers) == ([12], [])
    assert written(snapshots, 15, 200, producers) == ([15], [12])


def test_not_while_producers_are_ahead_of_the_log(snapshots: Snapshots) -> None:
    assert written(snapshots, 5, 200, None) == ([], [])
    assert written(snapshots, 6, 200, Producers()) == ([6], [])


def test_not_for_segments_that_are_gone(snapshots: Snapshots) -> None:
    for offset in (3, 4, 5):
        snapshots.begin_segment(Offset(offset), Producers())
    snapshots.forget([Offset(3)])
    assert written(snapshots, 6, 0, Producers()) == ([4, 5], [])
    snapshots.begin_segment(Offset(7), Producers())
    snapshots.restart()
    assert written(snapshots, 8, 0, Producers()) == ([], [])
