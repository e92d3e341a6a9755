"""What happens in the scenarios of `crash_points.py`: few calls to the disk, one idea each."""

from collections.abc import Callable
from functools import partial
from typing import Final

from riverlog.model.ids import TopicPartition
from riverlog.model.settings import Durability
from tests.simulation.crash_points import Scenario
from tests.simulation.drill import COMPACTED, NOW, PLAIN, Drill
from tests.simulation.metadata_drill import MetadataDrill
from tests.simulation.transactions_drill import TransactionsDrill


def _fill(drill: Drill, name: TopicPartition, batches: int = 8) -> None:
    for _ in range(batches):
        drill.append(name)
    drill.flush(name)
    drill.checkpoint(name)


def _begin(drill: Drill) -> None:
    """Open for the first time, write a little; the first segment may get company before it was flushed."""
    drill.open()
    for name in (PLAIN, COMPACTED):
        for _ in range(4):
            drill.append(name)
        drill.flush(name)
    drill.close()


def _go_on(drill: Drill) -> None:
    drill.open()
    for name in (PLAIN, COMPACTED):
        drill.append(name)
        drill.flush(name)


def _merge(drill: Drill) -> None:
    """Compact until segments become one, and once more behind it."""
    drill.open()
    _fill(drill, COMPACTED, 12)
    for _ in range(2):
        drill.compact(COMPACTED, rounds=1)
        _fill(drill, COMPACTED, 4)
    drill.compact(COMPACTED, rounds=1)


def _shrink(drill: Drill) -> None:
    """Leave segments that are small enough to become one."""
    drill.open()
    _fill(drill, COMPACTED, 12)
    drill.compact(COMPACTED, rounds=1)
    drill.close()


def _swap(drill: Drill) -> None:
    drill.open()
    drill.compact(COMPACTED, rounds=2)


def _tell_time(drill: Drill) -> None:
    """Compact segments whose latest record is in the middle, and go on for a while."""
    drill.open()
    for segment in range(3):
        for place, late in enumerate((10, 50, 70, 90, 20, 5)):
            drill.append_batch(COMPACTED, [(b"0abcde"[place] + segment * 6 * bool(place), 5, NOW + late)])
    drill.append(COMPACTED)
    drill.flush(COMPACTED)
    drill.checkpoint(COMPACTED)
    drill.compact(COMPACTED, rounds=1)
    for _ in range(6):
        drill.append(COMPACTED)
        drill.flush(COMPACTED)


def _cut(drill: Drill) -> None:
    drill.open()
    for _ in range(3):
        _fill(drill, PLAIN)
        drill.truncate(PLAIN)
        drill.append(PLAIN)
        drill.flush(PLAIN)


def _give_up(drill: Drill) -> None:
    drill.open()
    for _ in range(2):
        _fill(drill, PLAIN, 10)
        drill.give_up(PLAIN)
        drill.append(PLAIN)
    drill.flush(PLAIN)


def _delete(drill: Drill) -> None:
    drill.open()
    for name in (PLAIN, COMPACTED, PLAIN):
        _fill(drill, name, 4)
        drill.delete(name)
        drill.append(name)
        drill.flush(name)


def _stop(drill: Drill) -> None:
    drill.open()
    _fill(drill, PLAIN, 3)
    drill.append(PLAIN)
    drill.append(COMPACTED)
    drill.close()
    drill.disk.kill()
    drill.open()
    drill.append(PLAIN)
    drill.close()


def _prepared(prepare: Callable[[Drill], None], seed: int) -> Drill:
    drill = Drill(seed, durability=Durability.FSYNC)
    prepare(drill)
    return drill


def _nothing(_drill: Drill) -> None:
    pass


def _drills(
    name: str,
    *lives: Callable[[Drill], None],
    prepare: Callable[[Drill], None] = _nothing,
    variants: int = 1,
) -> list[Scenario]:
    """Give a scenario in variants: in each there are other batches, times and epochs."""
    return [Scenario(f"{name} {seed}", partial(_prepared, prepare, seed), lives) for seed in range(variants)]


SCENARIOS: Final = (
    *_drills("begin", _begin),
    *_drills("swap", _swap, _go_on, prepare=_shrink, variants=2),
    *_drills("times", _tell_time),
    *_drills("delete", _delete),
    *_drills("stop", _stop),
    Scenario("transactions", TransactionsDrill, (TransactionsDrill.live,)),
    Scenario("metadata", MetadataDrill, (MetadataDrill.live,)),
    *_drills("give up", _give_up),
    *_drills("cut", _cut, variants=2),
    *_drills("merge", _merge),
)
