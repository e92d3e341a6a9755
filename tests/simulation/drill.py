"""A log directory alone, without a node around it: some thousand crashes in the time of one simulated node.

Records are appended, flushed, truncated, given up, compacted; partitions are deleted and created again; the directory
is closed in good order or not, and the power fails at some call to the disk. Whoever opens the directory again finds
every record that was flushed, in its place, none that was cut off or deleted, each in its epoch and at its time, the
producer where it was, and no damage. The seed determines a drill.
"""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from copy import copy
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, Final
from uuid import UUID

from riverlog.log.directory import LogDirectory
from riverlog.log.log import Log
from riverlog.log.recovery.process_opening import open_logs
from riverlog.log.recovery.recovery import list_folder
from riverlog.log.segment_deletion import enforce_retention, find_expired
from riverlog.model.ids import LeaderEpoch, NodeId, Offset, ProducerEpoch, ProducerId, TopicId, TopicPartition
from riverlog.model.settings import Durability, TopicConfig
from riverlog.records.batch import read_header
from riverlog.records.record import BatchBuilder
from tests.simulation.crash_points import REFUSALS
from tests.simulation.lost_bytes import lose_bytes
from tests.support.batches import records_of
from tests.support.compacting import compact
from tests.support.disk import Crashed, MemoryDisk

LIVES: Final = 5
STEPS: Final = 14
KEYS: Final = b"0000000123456789"
"""Of most records there is soon a newer one; some stay for long, and would be missed."""
NOW: Final = 1_000_000
CHANGES_OF_NAMES: Final = ("create", "rename", "remove", "sync_folder")
FOLDER: Final = "/srv/data"
PLAIN: Final = TopicPartition("plain", 0)
COMPACTED: Final = TopicPartition("compacted", 0)
PRODUCER: Final = ProducerId(7)
CONFIG: Final = TopicConfig(segment_bytes=500, index_interval_bytes=0, file_delete_delay_ms=0, retention_ms=-1)


@dataclass
class Expected:
    """What a partition must hold."""

    topic_id: TopicId
    written: list[bytes] = field(default_factory=list)
    """Every value, by its offset."""
    epochs: list[int] = field(default_factory=list)
    """In which leader epoch each was written."""
    times: list[int] = field(default_factory=list)
    sequences: list[int] = field(default_factory=list)
    """How the one producer counts them."""
    promised: int = 0
    """All below this offset is flushed."""
    given_up: int = 0
    """All below this offset may be gone."""
    gone: int = 0
    """All below this offset is gone for good."""
    clean: int = 0
    """All below this offset is compacted."""

    def copy(self) -> "Expected":
        """Return one that can go its own way."""
        columns = {name: list(getattr(self, name)) for name in ("written", "epochs", "times", "sequences")}
        return replace(self, **columns)

    def cut(self, end: int) -> None:
        """Expect nothing from here on."""
        for column in (self.written, self.epochs, self.times, self.sequences):
            del column[end:]


def drill(seed: int) -> list[str]:
    """Run a drill; give what was wrong. In every third the power fails in the middle of one change, and again."""
    if seed % 10 == 7:
        return lose_bytes(seed)
    if seed % 10 == 3:
        return Drill(seed).stop()
    return Drill(seed).run() if seed % 3 else Drill(seed).interrupt()


def noticed_in_drill(off: Callable[[], AbstractContextManager[Any]], seeds: Iterable[int]) -> str | None:
    """Leave out a wait, or break another rule, until a drill fails that does not fail otherwise; say how, or None."""
    for seed in seeds:
        with off():
            wrong = _wrong_in(seed)
        if wrong and not _wrong_in(seed):
            return f"drill {seed}: {wrong[0]}"
    return None


def _wrong_in(seed: int) -> list[str]:
    try:
        return drill(seed)
    except REFUSALS as error:
        return [repr(error)]


class Drill:
    def __init__(self, seed: int, durability: Durability | None = None) -> None:
        self._seed = seed
        self._random = Random(f"{seed} drill")
        self.disk = MemoryDisk(seed)
        self.wrong: list[str] = []
        self._partitions = {name: Expected(self._new_id()) for name in (PLAIN, COMPACTED)}
        self._identity: UUID | None = None
        self._may_be_clean = False
        self._must_be_clean = False
        self._is_cutting = False
        self._gone: set[TopicId | None] = set()
        durability = durability or self._random.choice(
            (Durability.FSYNC, Durability.FSYNC, Durability.FSYNC, Durability.OS)
        )
        self._configs = {
            PLAIN: replace(CONFIG, durability=durability),
            COMPACTED: replace(CONFIG, durability=durability, cleanup_delete=False, cleanup_compact=True),
        }
        self._deletes = self._random.choice((0.0, 0.1, 0.5))
        self._changes = self._random.choice((1, 1, 4))
        self.epoch = 0
        self._values = 0
        self._directory: LogDirectory

    def run(self) -> list[str]:
        for _ in range(LIVES):
            self.disk.crash_after(self._random.choice((5, 40, 150, 400)) + self._random.randrange(40))
            self.epoch += self._random.random() < 0.5
            try:
                self._live()
            except Crashed:
                pass
            if self._random.random() < 0.8 or self._is_cutting:
                self.disk.crash()  # what was about to be cut off when a process was killed may come and go
            else:
                self.disk.kill()
            if self.wrong:
                return self.wrong
        self.disk.heal()
        self.open()
        return self.wrong

    def after_crash(self, seed: int) -> "Drill":
        """Return this drill as it would go on if the power failed now; this one knows nothing of it."""
        other = copy(self)
        other.disk = self.disk.after_crash(Random(seed))
        other.wrong = list(self.wrong)
        other._random = Random(f"{self._seed} {seed}")
        other._gone = set(self._gone)
        other._partitions = {name: expected.copy() for name, expected in self._partitions.items()}
        return other

    def expectations(self) -> str:
        """Return what must be found, to compare drills by."""
        return f"{self._partitions} {self._gone} {self._identity} {self._may_be_clean} {self._must_be_clean}"

    def aftermath(self) -> list[str]:
        """Open what was left, go on in all partitions, and lose power again."""
        self.open()
        for name in self._partitions:
            self.append(name)
            self.flush(name)
        self.disk.crash()
        if not self.wrong:
            self.open()
        return self.wrong

    def stop(self) -> list[str]:
        """Kill the process while it stops in good order, and lose power when the next one has flushed something."""
        name = self._random.choice(tuple(self._partitions))
        self.open()
        for _ in range(self._random.choice((0, 0, 3))):
            self.append(name)
        self.disk.crash_after(self._random.randrange(30))
        try:
            self.close()
        except Crashed:
            pass
        self.disk.kill()
        self.open()
        self.append(name)
        self.flush(name)
        self.disk.crash()
        self.open()
        return self.wrong

    def interrupt(self) -> list[str]:
        """Lose power in the middle of a compaction or truncation, and again while the next life puts it right."""
        name = self._random.choice(tuple(self._partitions))
        self.open()
        for _ in range(self._random.randrange(1, 4)):
            for _ in range(8):
                self.append(name)
            self.flush(name)
            self.checkpoint(name)
            if name == COMPACTED:
                self._compact_perhaps_unflushed(name)
        self._deletes = 0.0
        for work in (self._change, self.append, self.append):
            self.disk.crash_after(self._random.randrange(self._random.choice((8, 30, 90))), on=CHANGES_OF_NAMES)
            try:
                if work != self._change:
                    self.open()
                work(name)
            except Crashed:
                pass
            self.disk.crash()
        self.disk.heal()
        self.open()
        return self.wrong

    def _live(self) -> None:
        self.open()
        for _ in range(self._random.randrange(STEPS)):
            name = self._random.choice(tuple(self._partitions))
            steps = (*[self.append] * 4, self.flush, self.checkpoint, *[self._change] * self._changes)
            self._random.choice(steps)(name)
        if self._random.random() < 0.4:
            self.close()

    def close(self) -> None:
        self._may_be_clean = True
        for expected in self._partitions.values():
            expected.promised = min(expected.promised, len(expected.written))
        self._directory.close({})
        self._must_be_clean = True
        for expected in self._partitions.values():
            expected.promised = len(expected.written)

    # -- steps

    def append(self, name: TopicPartition) -> None:
        self.epoch += self._random.random() < 0.3
        draw = self._random
        self.append_batch(
            name,
            [(draw.choice(KEYS), draw.choice((5, 60)), NOW - draw.randrange(100)) for _ in range(draw.randrange(1, 4))],
        )

    def append_batch(self, name: TopicPartition, records: list[tuple[int, int, int]]) -> None:
        """Append records of these keys, sizes and times."""
        expected, log = self._partitions[name], self.log(name)
        sequence = _next_sequence(log)
        builder = BatchBuilder(producer_id=PRODUCER, producer_epoch=ProducerEpoch(0), base_sequence=sequence)
        for number, (key, size, timestamp_ms) in enumerate(records):
            self._values += 1
            value = b"%c %d|" % (key, self._values) + b"x" * size
            builder.append(value[:1], value, timestamp_ms=timestamp_ms)
            expected.written.append(value)
            expected.epochs.append(self.epoch)
            expected.times.append(timestamp_ms)
            expected.sequences.append(sequence + number)
        batch = memoryview(builder.build())
        log.append(batch, read_header(batch), leader_epoch=LeaderEpoch(self.epoch), now_ms=NOW)

    def flush(self, name: TopicPartition, *, meanwhile: Callable[[TopicPartition], None] | None = None) -> None:
        """Flush, with something else happening while a worker has the flush still before it."""
        log = self.log(name)
        plan = log.pending_sync()
        if meanwhile is not None:
            meanwhile(name)
        plan.run()
        log.synced(plan)
        self._partitions[name].promised = len(self._partitions[name].written)

    def checkpoint(self, _name: TopicPartition) -> None:
        plan = self._directory.pending_checkpoint({})
        plan.run()
        self._directory.checkpointed(plan)

    def _change(self, name: TopicPartition) -> None:
        """Do what happens more rarely."""
        if self._random.random() < self._deletes:
            self.delete(name)
        elif name == PLAIN and self._random.random() < 0.3:
            self.give_up(name)
        elif name == COMPACTED and self._random.random() < 0.7:
            self._compact_perhaps_unflushed(name)
        else:
            self.truncate(name)

    def compact(self, name: TopicPartition, *, rounds: int) -> None:
        expected, log = self._partitions[name], self.log(name)
        expected.clean = max(expected.clean, log.segments.active.base_offset)
        for _ in range(rounds):
            compact(self.disk, log, now_ms=NOW)
        log.segments.remove_deleted(NOW)

    def _compact_perhaps_unflushed(self, name: TopicPartition) -> None:
        if self._random.random() < 0.5:
            self.flush(name)
        self.compact(name, rounds=self._random.choice((1, 2, 3)))

    def give_up(self, name: TopicPartition, *, all_of_it: bool = False) -> None:
        """Delete the oldest records, as clients may ask for."""
        expected, log = self._partitions[name], self.log(name)
        self.flush(name)
        end = len(expected.written)
        expected.given_up = end if all_of_it else self._random.randrange(log.log_start_offset, end + 1)
        log.advance_log_start(Offset(expected.given_up))
        self.checkpoint(name)
        expected.gone = expected.given_up
        while find_expired(log, NOW, upto=log.log_end_offset):
            log.flush()
            enforce_retention(log, NOW, upto=log.log_end_offset, segments_max=1)
        log.segments.remove_deleted(NOW)

    def truncate(self, name: TopicPartition, offset: int | None = None) -> None:
        """Cut off the end, at the batch that holds this offset or one that chance chooses."""
        expected, log = self._partitions[name], self.log(name)
        if offset is None:
            offset = self._random.randrange(log.log_start_offset, len(expected.written) + 1)
        end = log.segments.start_of(Offset(offset))
        if end < max(log.log_start_offset, expected.clean):
            return  # a batch goes as a whole, and where the log began is not given to other records
        expected.promised = min(expected.promised, end)
        self._is_cutting = True
        self._directory.truncate_log(name, Offset(offset), now_ms=NOW)
        self._is_cutting = False
        expected.cut(log.log_end_offset)
        log.segments.remove_deleted(NOW)

    def delete(self, name: TopicPartition) -> None:
        gone = self._partitions[name].topic_id
        self._partitions[name] = Expected(self._new_id())  # as the metadata says before the folder goes
        self._directory.delete_logs([name], self._random)()
        self._gone.add(gone)
        self._directory.remove_deleted(self._directory.deleted_folders())

    # -- opening and looking

    def open(self, *, elsewhere: bool | None = None) -> None:
        """Open the directory and look at it; in half of all cases another process opens the logs, or as is said."""
        must_be_clean, self._must_be_clean, self._is_cutting = self._must_be_clean, False, False
        self._directory = directory = LogDirectory.open(
            self.disk, FOLDER, node_id=NodeId(1), random=self._random, region=self._random.choice(("", "north"))
        )
        if self._identity not in (None, directory.identity.directory_id):
            self.wrong.append("the directory has another id than before")
        self._identity = directory.identity.directory_id
        if directory.clean and not self._may_be_clean:
            self.wrong.append("a crash is taken for a stop in good order")
        if must_be_clean and not directory.clean:
            self.wrong.append("a stop in good order is taken for a crash")
        self._may_be_clean = False
        self.wrong += directory.damage
        for name in directory.partitions():
            if directory.topic_id(name) in self._gone:
                self.wrong.append(f"{name} was deleted and is back")
            if directory.topic_id(name) != self._partitions[name].topic_id and not self._lost_its_id(name):
                directory.set_aside(name, self._random)
        if self._random.random() < 0.5 if elsewhere is None else elsewhere:
            self.open_elsewhere()
        for name in self._partitions:
            self._look_at(name)

    def open_elsewhere(self) -> None:
        """Open the logs as another process does it after a crash."""
        names = [name for name in self._partitions if name in self._directory.partitions()]
        openings = [self._directory.opening(name, self._configs[name], now_ms=NOW) for name in names]
        for name, log in open_logs(self.disk, openings):
            assert isinstance(log, Log)
            self._directory.adopt_log(name, self._partitions[name].topic_id, log)

    def _lost_its_id(self, name: TopicPartition) -> bool:
        return self._directory.topic_id(name) is None and self._directory.was_flushed(name)

    def _look_at(self, name: TopicPartition) -> None:
        expected, log = self._partitions[name], self.log(name)
        self.wrong += log.damage
        if log.log_end_offset > len(expected.written):
            self.wrong.append(f"{name} ends at {log.log_end_offset}, but {len(expected.written)} offsets were given")
            return
        found = _values(log)
        newest = {value[:1]: offset for offset, value in found.items()} if name == COMPACTED else {}
        for offset, value in found.items():
            if expected.written[offset] != value:
                self.wrong.append(f"{name} holds {value!r} at offset {offset}, which is not what was written there")
        for offset, value in enumerate(expected.written[: expected.promised]):
            if offset >= expected.given_up and offset not in found and newest.get(value[:1], -1) < offset:
                self.wrong.append(f"{name} has lost {value!r} at offset {offset}")
        for offset in range(log.log_start_offset, log.log_end_offset):
            if log.epochs.of(Offset(offset)) != expected.epochs[offset]:
                self.wrong.append(f"{name} has {log.epochs.entries()}; {expected.epochs} were written")
        self._look_at_times(name, log, sorted(found))
        if log.log_end_offset and _next_sequence(log) != expected.sequences[log.log_end_offset - 1] + 1:
            self.wrong.append(f"{name} awaits sequence {_next_sequence(log)} at {log.log_end_offset}")
        if log.log_start_offset < expected.gone:
            self.wrong.append(f"{name} begins at {log.log_start_offset}, but {expected.gone} was the first to stay")
        if log.log_end_offset < expected.promised:
            self.wrong.append(f"{name} ends at {log.log_end_offset}, but {expected.promised} was flushed")
        snapshots = list_folder(self.disk, log.folder).snapshots
        if any(offset > log.log_end_offset for offset in snapshots):
            self.wrong.append(f"{name} has snapshots {snapshots} behind its end {log.log_end_offset}")
        expected.cut(log.log_end_offset)
        expected.promised = log.flushed_offset
        if log.config.durability is Durability.FSYNC and log.flushed_offset < log.log_end_offset:
            self.wrong.append(f"{name} is open, but only flushed up to {log.flushed_offset}")
        expected.given_up = max(expected.given_up, log.log_start_offset)  # a cut of all that a crash interrupted

    def _look_at_times(self, name: TopicPartition, log: Log, offsets: list[int]) -> None:
        times = self._partitions[name].times
        latest = max((times[offset] for offset in offsets), default=NOW)
        asked_for = {NOW - self._random.randrange(100), *(times[offset] for offset in offsets)}
        answers = [(timestamp_ms, log.offset_for_time(timestamp_ms)) for timestamp_ms in sorted(asked_for)]
        for asked, answer in (*answers, (latest, log.max_timestamp())):
            right = next((offset for offset in offsets if times[offset] >= asked), None)
            if (answer.offset if answer else None) != right:
                self.wrong.append(f"{name} finds {answer} for {asked}, and not {right}")

    def log(self, name: TopicPartition) -> Log:
        return self._directory.create_log(name, self._partitions[name].topic_id, self._configs[name], now_ms=NOW)

    def _new_id(self) -> TopicId:
        return TopicId(UUID(int=self._random.getrandbits(128), version=4))


def _values(log: Log) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        read = log.read(offset, bytes_max=10_000, upto=log.log_end_offset)
        found |= {record.offset: record.value or b"" for record in records_of(read.records)}
        offset = read.next_offset
    return {offset: value for offset, value in found.items() if offset >= log.log_start_offset}


def _next_sequence(log: Log) -> int:
    producer = log.producers.get(PRODUCER)
    return 0 if producer is None else producer.next_sequence
