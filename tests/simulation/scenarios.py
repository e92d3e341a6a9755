"""What happens in the scenarios of `crash_points.py`: few calls to the disk, one idea each."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from riverlog.model.ids import TopicPartition
from riverlog.model.settings import Durability
from tests.simulation.crash_points import Scenario
from tests.simulation.drill import COMPACTED, KEYS, NOW, PLAIN, Drill
from tests.simulation.joining_drill import FormatDrill, InstallDrill
from tests.simulation.lost_bytes import LostBytesDrill
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


def _write_epochs(drill: Drill) -> None:
    """Compact all records of the first epoch away, so that nothing but the file of epochs knows of it."""
    drill.open()
    for epoch, batches in ((1, 1), (2, 13), (3, 2)):
        drill.epoch = epoch
        for _ in range(batches):
            drill.append_batch(COMPACTED, [(KEYS[0], 5, NOW)])
    drill.compact(COMPACTED, rounds=1)
    drill.close()


def _cut_epoch(drill: Drill) -> None:
    drill.open()
    drill.truncate(COMPACTED, 13)


def _go_on_in_epoch(drill: Drill) -> None:
    """Make the epoch begin earlier than it did before the cut."""
    drill.open()
    drill.append_batch(COMPACTED, [(KEYS[0], 5, NOW)])
    drill.flush(COMPACTED)


def _flush_slowly(drill: Drill) -> None:
    """Make the checkpoints be written while a flush is under way."""
    drill.open()
    drill.append(PLAIN)
    drill.flush(PLAIN, meanwhile=drill.checkpoint)


def _be_killed(drill: Drill) -> None:
    """Leave everything to the page cache, where another process finds it."""
    drill.open()
    for name in (PLAIN, COMPACTED):
        drill.append(name)
    drill.disk.kill()
    drill.open(elsewhere=True)
    for name in (PLAIN, COMPACTED):
        drill.append(name)
        drill.flush(name)


def _give_up(drill: Drill) -> None:
    drill.open()
    for _ in range(2):
        _fill(drill, PLAIN, 10)
        drill.give_up(PLAIN)
        drill.append(PLAIN)
    drill.flush(PLAIN)


def _give_up_all(drill: Drill) -> None:
    drill.open()
    _fill(drill, PLAIN, 4)
    drill.give_up(PLAIN, all_of_it=True)
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


def _prepared(prepare: Callable[[Drill], None], durability: Durability, seed: int) -> Drill:
    drill = Drill(seed, durability)
    prepare(drill)
    return drill


def _nothing(_drill: Drill) -> None:
    pass


def _drills(
    name: str,
    *lives: Callable[[Drill], None],
    prepare: Callable[[Drill], None] = _nothing,
    durability: Durability = Durability.FSYNC,
    seeds: Iterable[int] = (0,),
) -> list[Scenario]:
    """Return a scenario in variants: in each there are other batches, times and epochs."""
    return [Scenario(f"{name} {seed}", partial(_prepared, prepare, durability, seed), lives) for seed in seeds]


SCENARIOS: Final = (
    *_drills("begin", _begin),
    *_drills("meanwhile", _flush_slowly),
    *_drills("kill", _be_killed, durability=Durability.OS),
    *_drills("epochs", _cut_epoch, _go_on_in_epoch, prepare=_write_epochs),
    *(Scenario(f"lost bytes {seed}", partial(LostBytesDrill, seed), (LostBytesDrill.live,)) for seed in (3, 13)),
    *_drills("give up all", _give_up_all),
    *_drills("delete", _delete),
    *_drills("stop", _stop),
    Scenario("transactions", TransactionsDrill, (TransactionsDrill.live,)),
    *_drills("times", _tell_time),
    Scenario("metadata", MetadataDrill, (MetadataDrill.live,)),
    Scenario("format", FormatDrill, (FormatDrill.live,)),
    Scenario("install", InstallDrill, (InstallDrill.live,)),
    *_drills("cut", _cut, seeds=(0, 1)),
    *_drills("give up", _give_up),
    *_drills("merge", _merge),
    *_drills("swap", _swap, _go_on, prepare=_shrink, seeds=(2, 5)),
)
