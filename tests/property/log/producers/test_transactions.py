"""Readers of committed records against a plain list: whatever happens to the log, they miss nothing and see no more."""

from dataclasses import dataclass, replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from riverlog.log.log import Log
from riverlog.log.segment_deletion import enforce_retention
from riverlog.log.truncation import truncate
from riverlog.model.ids import Offset
from riverlog.model.settings import DEFAULT_TOPIC_CONFIG
from tests.support.batches import batch_of
from tests.support.disk import MemoryDisk
from tests.support.reading_committed import append, committed_values, end, transactional_batch

FOLDER = "/data/orders-0"
CONFIG = replace(DEFAULT_TOPIC_CONFIG, segment_bytes=600, index_interval_bytes=90, file_delete_delay_ms=5)
PRODUCERS = st.integers(1, 4)


@dataclass(frozen=True)
class Written:
    """One batch of the model, of one record or one marker."""

    producer: int = -1
    value: bytes = b""
    marker: bool | None = None


class TransactionsMachine(RuleBasedStateMachine):
    """A log, and the list of what was written to it; offsets are places in the list."""

    @initialize(seed=st.integers(0, 2**32))
    def begin(self, seed: int) -> None:
        self.disk = MemoryDisk(seed)
        self.disk.make_folder("/data")
        self.disk.sync_folder("/")
        self.written: list[Written] = []
        self.start = 0
        self.recovery_point = 0
        self.number = 0
        self.log = self.open(clean=False)

    def open(self, *, clean: bool) -> Log:
        return Log.open(
            self.disk,
            FOLDER,
            CONFIG,
            recovery_point=Offset(self.recovery_point),
            clean=clean,
            now_ms=1_000,
            log_start_offset=Offset(self.start),
            high_watermark=Offset(self.start),
        )

    def next_value(self) -> bytes:
        self.number += 1
        return b"%d" % self.number

    @rule(producer=PRODUCERS)
    def write_in_transaction(self, producer: int) -> None:
        value = self.next_value()
        known = self.log.producers.get(producer)  # type: ignore[arg-type]
        sequence = known.next_sequence if known is not None else 0
        assert append(self.log, transactional_batch(producer, sequence, value)) == len(self.written)
        self.written.append(Written(producer, value))

    @rule()
    def write_plainly(self) -> None:
        value = self.next_value()
        assert append(self.log, batch_of([value])) == len(self.written)
        self.written.append(Written(value=value))

    @rule(producer=PRODUCERS, committed=st.booleans())
    def decide(self, producer: int, committed: bool) -> None:
        assert end(self.log, producer, committed=committed) == len(self.written)
        self.written.append(Written(producer, marker=committed))

    @rule()
    def roll(self) -> None:
        self.log.roll(1_000)

    @rule()
    def flush(self) -> None:
        self.log.flush()
        self.recovery_point = self.log.flushed_offset

    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(self.start, len(self.written)))
        self.recovery_point = min(self.recovery_point, offset)
        truncate(self.log, Offset(offset), now_ms=1_000)
        del self.written[offset:]
        self.log.flush()  # a truncation that is not synced may be undone by a crash

    @rule(data=st.data())
    def let_go(self, data: st.DataObject) -> None:
        self.start = data.draw(st.integers(self.start, len(self.written)))
        self.log.advance_log_start(Offset(self.start))
        self.log.flush()
        self.recovery_point = self.log.flushed_offset
        enforce_retention(self.log, 1_000, upto=Offset(len(self.written)))
        self.log.segments.remove_deleted(1 << 40)
        self.log.flush()

    @rule()
    def restart_cleanly(self) -> None:
        self.log.close()
        self.recovery_point = self.log.log_end_offset
        self.log = self.open(clean=True)

    @rule()
    def be_killed(self) -> None:
        self.disk.kill()
        self.log = self.open(clean=False)
        assert self.log.log_end_offset == len(self.written)

    @rule()
    def lose_power(self) -> None:
        self.disk.crash()
        self.log = self.open(clean=False)
        assert self.recovery_point <= self.log.log_end_offset <= len(self.written)
        del self.written[self.log.log_end_offset :]

    @rule(data=st.data())
    def damage_an_index(self, data: st.DataObject) -> None:
        self.log.close()
        self.recovery_point = self.log.log_end_offset
        names = [name for name in self.disk.list(FOLDER) if name.endswith(".txnindex")]
        if names:
            path = f"{FOLDER}/{data.draw(st.sampled_from(names))}"
            size = self.disk.open(path).size()
            if size:
                self.disk.open(path).truncate(size - data.draw(st.integers(1, 33)))
        self.log = self.open(clean=True)

    # What readers see

    def expected(self, from_offset: int) -> tuple[int, list[bytes]]:
        """Return how far all is decided, and the committed values between."""
        open_since: dict[int, int] = {}
        aborted: set[int] = set()
        for offset, written in enumerate(self.written):
            if written.marker is not None:
                first = open_since.pop(written.producer, offset)
                mine = (place for place in range(first, offset) if self.written[place].producer == written.producer)
                aborted.update(() if written.marker else mine)
            elif written.producer >= 0:
                open_since.setdefault(written.producer, offset)
        stable = max(self.start, min(open_since.values(), default=len(self.written)))
        values = [
            self.written[offset].value
            for offset in range(from_offset, stable)
            if self.written[offset].marker is None and offset not in aborted
        ]
        return stable, values

    @invariant()
    def readers_see_what_is_committed(self) -> None:
        stable, values = self.expected(self.start)
        assert committed_values(self.log, self.start) == values
        assert self.log.last_stable_offset(self.log.log_end_offset) == stable

    @rule(data=st.data(), bytes_max=st.integers(1, 400))
    def read_from_anywhere(self, data: st.DataObject, bytes_max: int) -> None:
        offset = data.draw(st.integers(self.start, len(self.written)))
        assert committed_values(self.log, offset, bytes_max=bytes_max) == self.expected(offset)[1]


TransactionsMachine.TestCase.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
test_readers_of_committed_records = TransactionsMachine.TestCase
