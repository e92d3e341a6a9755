"""A drill of damage: a medium loses bytes that it had, and the power fails while the log is opened and goes on.

Whoever opens the log finds each record that was flushed, or is told that it cannot be read: never silence. It is a
compacted log, in which a missing offset by itself is no sign of damage.
"""

from copy import copy
from random import Random
from typing import Final

from riverlog.log.log import Log
from riverlog.log.segments.log_folder import LOG_SUFFIX
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
    drill = LostBytesDrill(seed)
    random = drill.random
    for _ in range(LIVES):
        drill.disk.crash_after(random.randrange(random.choice((6, 20))), on=("create", "rename", "sync", "sync_folder"))
        try:
            drill.live()
        except Crashed:
            pass
        drill.disk.crash()
    drill.disk.heal()
    return drill.aftermath()


class LostBytesDrill:
    """A log that was flushed, whose last segment has lost its end, or all of it."""

    def __init__(self, seed: int) -> None:
        self.random = random = Random(f"{seed} lost")
        self.disk = MemoryDisk(seed)
        self.disk.make_folder("/data")
        self.disk.sync_folder("/")
        self._flushed = Offset(0)
        log = self._open()
        for _ in range(random.randrange(1, 12)):
            _append(log)
        log.flush()
        self._flushed = log.flushed_offset
        self._lose(log, random)

    def after_crash(self, seed: int) -> "LostBytesDrill":
        """Return this drill as it would go on if the power failed now; this one knows nothing of it."""
        other = copy(self)
        other.disk = self.disk.after_crash(Random(seed))
        return other

    def expectations(self) -> str:
        """Return what must be found, to compare drills by."""
        return f"{self._flushed}"

    def live(self) -> None:
        """Open what was left, and go on."""
        log = self._open()
        _append(log)
        log.flush()

    def aftermath(self) -> list[str]:
        """Look for what nobody knows of."""
        log = self._open()
        found = _values(log)
        missing = [
            offset
            for offset in range(0, self._flushed, 2)
            if found.get(offset) != b"%d" % offset and log.quarantine.at(Offset(offset)) is None
        ]
        return [f"offsets {missing} were flushed; now nobody knows of them"] if missing else []

    def _open(self) -> Log:
        return Log.open(self.disk, FOLDER, CONFIG, recovery_point=self._flushed, clean=False, now_ms=NOW)

    def _lose(self, log: Log, random: Random) -> None:
        """Remove the end of the last segment, and in some drills all of it."""
        path = log.segments.active.path(LOG_SUFFIX)
        self.disk.shorten(path, random.randrange(log.segments.active.size))
        if random.random() < 0.3:
            self.disk.remove(path)
            self.disk.sync_folder(FOLDER)
        self.disk.kill()


def _append(log: Log) -> None:
    batch = batch_of([b"%d" % log.log_end_offset, b"x" * 40])
    log.append(batch, read_header(batch), leader_epoch=LeaderEpoch(0), now_ms=NOW)


def _values(log: Log) -> dict[int, bytes]:
    """Read all that can be read."""
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
    return found
