"""A compacted log with aborted transactions, of which some records are left: no reader of committed ones gets them."""

from copy import copy
from random import Random
from typing import Final

from riverlog.log.log import Log
from riverlog.model.ids import Offset, ProducerId
from riverlog.model.settings import Durability, TopicConfig
from tests.support.compacting import compact
from tests.support.disk import MemoryDisk
from tests.support.reading_committed import append, committed_values, end, transactional_batch

PRODUCER: Final = 7
FOLDER: Final = "/compacted-0"
ABORTED: Final = b"aborted"
CONFIG: Final = TopicConfig(
    durability=Durability.FSYNC,
    index_interval_bytes=0,
    cleanup_delete=False,
    cleanup_compact=True,
    file_delete_delay_ms=0,
)
NOW: Final = 1_000


class TransactionsDrill:
    """A log of one producer; what it committed last under the one key is there, and nothing that it aborted."""

    def __init__(self) -> None:
        self.disk = MemoryDisk()
        self._flushed = Offset(0)
        self._committed: list[bytes] = []
        """What was committed, be it that nobody knows it yet."""
        self._kept: list[bytes] = []
        """The last of what was committed and flushed."""

    def after_crash(self, seed: int) -> "TransactionsDrill":
        """Return this drill as it would go on if the power failed now; this one knows nothing of it."""
        other = copy(self)
        other.disk = self.disk.after_crash(Random(seed))
        other._committed = list(self._committed)
        return other

    def expectations(self) -> str:
        """Return what must be found, to compare drills by."""
        return f"{self._flushed} {self._committed} {self._kept}"

    def live(self) -> None:
        """Commit and abort, and compact as far as the memory for keys goes: at first not to the aborted records.

        The segment with those joins one before it that has no index of them, and of which nothing is written down.
        """
        log, clean_upto = self._open(), Offset(0)
        self._write(log, (b"0",))
        self._write(log)
        for _ in range(3):
            clean_upto = compact(self.disk, log, cleaned_offset=clean_upto, now_ms=NOW, keys_bytes_max=1)
            log.segments.remove_deleted(NOW)
        self._flush(log)

    def _write(self, log: Log, outcomes: tuple[bytes, ...] = (b"1", b"2", ABORTED, ABORTED)) -> None:
        if log.producers.transactions.first_unstable_offset is not None:
            end(log, PRODUCER, committed=False)  # as its coordinator does it after a crash
        for outcome in outcomes:
            value = b"%s %d" % (outcome, log.log_end_offset)
            append(log, transactional_batch(PRODUCER, _next_sequence(log), value + b" replaced", value, key=b"key"))
            if outcome != ABORTED:
                self._committed += (value + b" replaced", value)
            end(log, PRODUCER, committed=outcome != ABORTED)
        self._flush(log)
        log.roll(NOW)

    def _flush(self, log: Log) -> None:
        log.flush()
        self._flushed = log.flushed_offset
        self._kept = self._committed[-1:]

    def aftermath(self) -> list[str]:
        """Open what was left, go on, and lose power again."""
        log = self._open()
        wrong = self._look_at(log)
        self._write(log)
        self.disk.crash()
        return wrong or self._look_at(self._open())

    def _look_at(self, log: Log) -> list[str]:
        found = committed_values(log, log.log_start_offset)
        if any(value not in self._committed for value in found):
            return [f"readers of committed records get {found}; {self._committed} were committed"]
        if any(value not in found for value in self._kept):
            return [f"readers of committed records get {found}, without {self._kept}"]
        if log.log_end_offset < self._flushed:
            return [f"the log ends at {log.log_end_offset}, but {self._flushed} was flushed"]
        return list(log.damage)

    def _open(self) -> Log:
        return Log.open(self.disk, FOLDER, CONFIG, recovery_point=self._flushed, clean=False, now_ms=NOW)


def _next_sequence(log: Log) -> int:
    producer = log.producers.get(ProducerId(PRODUCER))
    return 0 if producer is None else producer.next_sequence
