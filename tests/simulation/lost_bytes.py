"""A drill of damage: a medium loses bytes that it had, and the power fails while the log is opened and goes on.

Whoever opens the log finds each record that was flushed, or is told that it cannot be read: never silence. It is a
compacted log, in which a missing offset by itself is no sign of damage.
"""

from random import Random
from typing import Final

from riverlog.log.log import Log
from riverlog.log.segment import LOG_SUFFIX
from riverlog.model.errors import Refusal
from riverlog.model.ids import LeaderEpoch, Offset
from riverlog.model.settings import Durability, TopicConfig
from riverlog.records.batch import read_header
from tests.support.batches import batch_of, records_of
from tests.support.disk import Crashed, MemoryDisk

NOW: Final = 1_000_000
LIVES: Final = 3
FOLDER: Final = "/data/compacted-0"
CONFIG: Final = TopicConfig(
    segment_bytes=500, durability=Durability.FSYNC, index_interval_bytes=0, cleanup_delete=False, cleanup_compact=True
)


def lose_bytes(seed: int) -> list[str]:
    """Run the drill of a seed; give what was wrong."""
    random, disk = Random(f"{seed} lost"), MemoryDisk(seed)
    disk.make_folder("/data")
    disk.sync_folder("/")
    log = _open(disk, Offset(0))
    for _ in range(random.randrange(1, 12)):
        _append(log)
    log.flush()
    flushed = log.flushed_offset
    _lose(disk, log, random)
    for _ in range(LIVES):
        disk.crash_after(random.randrange(random.choice((6, 20))), on=("create", "rename", "sync", "sync_folder"))
        try:
            log = _open(disk, flushed)
            _append(log)
            log.flush()
        except Crashed:
            pass
        disk.crash()
    disk.heal()
    return _silently_lost(_open(disk, flushed), flushed)


def _open(disk: MemoryDisk, recovery_point: Offset) -> Log:
    return Log.open(disk, FOLDER, CONFIG, recovery_point=recovery_point, clean=False, now_ms=NOW)


def _append(log: Log) -> None:
    batch = batch_of([b"%d" % log.log_end_offset, b"x" * 40])
    log.append(batch, read_header(batch), leader_epoch=LeaderEpoch(0), now_ms=NOW)


def _lose(disk: MemoryDisk, log: Log, random: Random) -> None:
    """Let the last segment lose its end, and be gone altogether in some drills."""
    path = log.segments.active.path(LOG_SUFFIX)
    disk.shorten(path, random.randrange(log.segments.active.size))
    if random.random() < 0.3:
        disk.remove(path)
        disk.sync_folder(FOLDER)
    disk.kill()


def _silently_lost(log: Log, flushed: Offset) -> list[str]:
    found: dict[int, bytes] = {}
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        try:
            read = log.read(offset, bytes_max=1, upto=log.log_end_offset)
        except Refusal:
            known = log.quarantine.at(offset)
            assert known is not None
            offset = known.flaw.next_offset
        else:
            found |= {record.offset: record.value or b"" for record in records_of(read.records)}
            offset = read.next_offset if read.records else log.log_end_offset
    missing = [
        at for at in range(0, flushed, 2) if found.get(at) != b"%d" % at and log.quarantine.at(Offset(at)) is None
    ]
    return [f"offsets {missing} were flushed; now nobody knows of them"] if missing else []
