"""The log against a plain list: whatever is done to both, they give the same answers."""

from dataclasses import dataclass, replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from riverlog.log.log import Log
from riverlog.log.segment_deletion import enforce_retention, find_expired
from riverlog.log.segments.gathered_write import AppendResult
from riverlog.log.truncation import truncate
from riverlog.model.ids import NO_TIMESTAMP, LeaderEpoch, Offset
from riverlog.model.settings import DEFAULT_TOPIC_CONFIG
from riverlog.records.batch import check_produced
from tests.support.batches import batch_of, records_of
from tests.support.disk import MemoryDisk

FOLDER = "/data/orders-0"
CONFIG = replace(DEFAULT_TOPIC_CONFIG, segment_bytes=700, index_interval_bytes=90, file_delete_delay_ms=5)
PRODUCERS = st.integers(1, 3)


@dataclass(frozen=True)
class Written:
    """One batch of the model."""

    base_offset: int
    values: tuple[bytes, ...]
    timestamp_ms: int
    epoch: int
    producer_id: int = -1
    sequence: int = -1

    @property
    def next_offset(self) -> int:
        return self.base_offset + len(self.values)

    def appended(self, *, duplicate: bool) -> AppendResult:
        """Return what the log should answer."""
        return AppendResult(Offset(self.base_offset), Offset(self.next_offset - 1), NO_TIMESTAMP, duplicate)


class LogMachine(RuleBasedStateMachine):
    """Both logs, and what a node would have written down about the real one."""

    @initialize(seed=st.integers(0, 2**32))
    def begin(self, seed: int) -> None:
        self.disk = MemoryDisk(seed)
        self.disk.make_folder("/data")
        self.disk.sync_folder("/")
        self.batches: list[Written] = []
        self.start = 0
        self.floor = 0
        """The log ends here even if its last records end before: offsets are never used twice."""
        self.epoch = 0
        self.recovery_point = 0
        self.checkpointed_start = 0
        self.now_ms = 10_000
        self.log = self.open(clean=False)

    def open(self, *, clean: bool) -> Log:
        return Log.open(
            self.disk,
            FOLDER,
            CONFIG,
            recovery_point=Offset(self.recovery_point),
            clean=clean,
            now_ms=self.now_ms,
            log_start_offset=Offset(self.checkpointed_start),
            high_watermark=Offset(self.checkpointed_start),
        )

    @property
    def end(self) -> int:
        return max(self.floor, self.batches[-1].next_offset if self.batches else 0)

    def readable(self) -> list[tuple[int, bytes, int]]:
        """Return offset, value and time of all records that can be read."""
        return [
            (batch.base_offset + delta, value, batch.timestamp_ms + delta)
            for batch in self.batches
            for delta, value in enumerate(batch.values)
            if batch.base_offset + delta >= self.start
        ]

    # Changing

    @rule(values=st.lists(st.binary(max_size=60), min_size=1, max_size=4), timestamp_ms=st.integers(0, 12_000))
    def append(self, values: list[bytes], timestamp_ms: int) -> None:
        self.write(Written(self.end, tuple(values), timestamp_ms, self.epoch))

    @rule(producer_id=PRODUCERS, values=st.lists(st.binary(max_size=30), min_size=1, max_size=3))
    def append_idempotent(self, producer_id: int, values: list[bytes]) -> None:
        mine = [batch for batch in self.batches if batch.producer_id == producer_id]
        sequence = mine[-1].sequence + len(mine[-1].values) if mine else 0
        self.write(Written(self.end, tuple(values), self.now_ms, self.epoch, producer_id, sequence))

    def write(self, written: Written) -> None:
        appended = self.send(written)
        assert appended == written.appended(duplicate=False)
        self.batches.append(written)

    def send(self, written: Written) -> AppendResult:
        batch = batch_of(
            written.values,
            timestamp_ms=written.timestamp_ms,
            producer_id=written.producer_id,
            producer_epoch=-1 if written.producer_id < 0 else 0,
            base_sequence=written.sequence,
        )
        header = check_produced(batch, batch_bytes_max=1 << 20)
        return self.log.append(batch, header, leader_epoch=LeaderEpoch(self.epoch), now_ms=self.now_ms)

    @rule(producer_id=PRODUCERS, back=st.integers(1, 5))
    def repeat(self, producer_id: int, back: int) -> None:
        mine = [batch for batch in self.batches if batch.producer_id == producer_id]
        if len(mine) >= back and mine[-back].base_offset >= self.start:
            written = mine[-back]
            assert self.send(written) == written.appended(duplicate=True)

    @rule()
    def lead_anew(self) -> None:
        self.epoch += 1

    @rule()
    def roll(self) -> None:
        self.log.roll(self.now_ms)

    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(self.start, self.end))
        self.recovery_point = min(self.recovery_point, offset)
        truncate(self.log, Offset(offset), now_ms=self.now_ms)
        self.floor = offset
        while self.batches and self.batches[-1].next_offset > offset:
            self.floor = min(self.floor, self.batches.pop().base_offset)
        self.recovery_point = min(self.recovery_point, self.end)
        self.start = min(self.start, self.end)
        self.checkpointed_start = min(self.checkpointed_start, self.end)
        # A truncation that is not synced may be undone by a crash; that is tested by itself.
        self.log.flush()

    @rule(data=st.data())
    def delete_records(self, data: st.DataObject) -> None:
        self.start = data.draw(st.integers(self.start, self.end))
        self.log.advance_log_start(Offset(self.start))

    @rule(data=st.data(), retention_ms=st.sampled_from([-1, 0, 1_000]), retention_bytes=st.sampled_from([-1, 900]))
    def retain(self, data: st.DataObject, retention_ms: int, retention_bytes: int) -> None:
        upto = data.draw(st.integers(self.start, self.end))
        self.log.configure(replace(CONFIG, retention_ms=retention_ms, retention_bytes=retention_bytes))
        deleted = []
        while find_expired(self.log, self.now_ms, upto=Offset(upto)):
            self.log.flush()
            deleted += enforce_retention(self.log, self.now_ms, upto=Offset(upto), segments_max=1)
        self.log.configure(CONFIG)
        for segment in deleted:
            assert segment.next_offset <= upto
            self.start = max(self.start, segment.next_offset)
        self.log.segments.remove_deleted(self.now_ms)

    @rule(elapsed_ms=st.integers(1, 2_000))
    def wait(self, elapsed_ms: int) -> None:
        self.now_ms += elapsed_ms

    @rule()
    def flush(self) -> None:
        plan = self.log.pending_sync()
        plan.run()
        self.log.synced(plan)
        assert self.log.flushed_offset == self.end

    @rule()
    def checkpoint(self) -> None:
        self.recovery_point = self.log.flushed_offset
        self.checkpointed_start = self.log.log_start_offset

    # Stopping

    @rule()
    def reopen(self) -> None:
        self.log.close()
        assert self.disk.open_files == 0
        self.checkpoint()
        self.log = self.open(clean=True)
        assert self.log.log_end_offset == self.end

    @rule()
    def crash(self) -> None:
        flushed = self.log.flushed_offset
        self.disk.crash()
        self.log = self.open(clean=False)
        assert self.log.damage == []
        assert flushed <= self.log.log_end_offset <= self.end
        while self.batches and self.batches[-1].next_offset > self.log.log_end_offset:
            self.batches.pop()
        self.floor = max(flushed, self.checkpointed_start)
        assert self.end == self.log.log_end_offset
        # Deletions may be undone by a crash, but never by more than was written down.
        assert self.checkpointed_start <= self.log.log_start_offset
        assert self.log.log_start_offset <= max(self.start, self.checkpointed_start)
        self.start = self.log.log_start_offset

    @precondition(lambda self: self.disk.exists(FOLDER))
    @rule(data=st.data())
    def lose_indexes(self, data: st.DataObject) -> None:
        """Close cleanly, delete or garble an index file, open again."""
        self.log.close()
        self.checkpoint()
        names = [name for name in self.disk.list(FOLDER) if name.endswith(("index", ".snapshot", "checkpoint"))]
        if names:
            path = f"{FOLDER}/{data.draw(st.sampled_from(names))}"
            file = self.disk.open(path)
            if data.draw(st.booleans()):
                self.disk.remove(path)
            elif file.size() and path.endswith("index"):
                position = data.draw(st.integers(0, file.size() - 1))
                self.disk.damage(path, position, data.draw(st.integers(1, 255)))
            file.close()
        self.log = self.open(clean=True)

    # Comparing

    @rule(data=st.data(), bytes_max=st.integers(1, 900), at_least_one=st.booleans())
    def read(self, data: st.DataObject, bytes_max: int, at_least_one: bool) -> None:
        offset = data.draw(st.integers(self.start, self.end))
        upto = data.draw(st.sampled_from(sorted({self.end, *(batch.next_offset for batch in self.batches)})))
        found = self.log.read(Offset(offset), bytes_max=bytes_max, upto=Offset(upto), at_least_one=at_least_one)
        records = records_of(found.records)
        expected = [entry for entry in self.readable() if offset <= entry[0] < upto]
        seen = [(record.offset, record.value, record.timestamp) for record in records if record.offset >= offset]
        assert seen == expected[: len(seen)]
        first = next((batch for batch in self.batches if batch.next_offset > offset), None)
        if first is not None and upto >= first.next_offset and at_least_one:
            assert seen
        if found.size > bytes_max:
            assert at_least_one
            assert first is not None
            assert records[-1].offset == first.next_offset - 1

    @rule(timestamp_ms=st.integers(0, 12_500))
    def seek(self, timestamp_ms: int) -> None:
        found = self.log.offset_for_time(timestamp_ms)
        expected = next(((offset, time) for offset, _, time in self.readable() if time >= timestamp_ms), None)
        assert (found[:2] if found else None) == expected

    @rule()
    def read_everything(self) -> None:
        seen = []
        offset = self.start
        while offset < self.end:
            records = records_of(self.log.read(Offset(offset), bytes_max=300, upto=Offset(self.end)).records)
            seen += [(record.offset, record.value, record.timestamp) for record in records if record.offset >= offset]
            offset = records[-1].offset + 1
        assert seen == self.readable()

    @invariant()
    def ends_agree(self) -> None:
        if hasattr(self, "log"):
            assert self.log.log_start_offset == self.start
            assert self.log.log_end_offset == self.end
            assert self.log.flushed_offset <= self.end
            assert self.recovery_point <= self.log.flushed_offset


LogMachine.TestCase.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
test_the_log_is_a_list = LogMachine.TestCase
