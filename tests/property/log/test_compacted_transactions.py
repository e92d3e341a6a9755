"""Compaction with transactions against a dictionary: the newest committed value of each key stays, and nothing else."""

from dataclasses import dataclass, replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from riverlog.log.log import Log
from riverlog.model.ids import LeaderEpoch, Offset, ProducerEpoch, ProducerId
from riverlog.model.settings import DEFAULT_TOPIC_CONFIG
from riverlog.records.batch import read_header
from riverlog.records.control import Marker, build_marker
from riverlog.records.record import BatchBuilder
from tests.support.compacting import compact
from tests.support.disk import Crashed, MemoryDisk
from tests.support.reading_committed import committed_records

FOLDER = "/data/orders-0"
CONFIG = replace(
    DEFAULT_TOPIC_CONFIG,
    cleanup_compact=True,
    cleanup_delete=False,
    segment_bytes=500,
    index_interval_bytes=60,
    delete_retention_ms=1_000,
    file_delete_delay_ms=0,
)
NOBODY = -1
PRODUCERS = st.integers(0, 2)
KEYS = st.sampled_from([b"a", b"b", b"c"])
VALUES = st.one_of(st.none(), st.binary(max_size=20))


@dataclass(frozen=True)
class Written:
    """One batch of the model, of one record or one marker."""

    producer: int
    key: bytes = b""
    value: bytes | None = None
    marker: bool | None = None


class CompactedTransactions(RuleBasedStateMachine):
    """A compacted log, and the list of all that was ever written to it; offsets are places in the list."""

    @initialize(seed=st.integers(0, 2**32))
    def begin(self, seed: int) -> None:
        self.disk = MemoryDisk(seed)
        self.disk.make_folder("/data")
        self.disk.sync_folder("/")
        self.written: list[Written] = []
        self.epochs: dict[int, int] = {}
        self.cleaned_offset = 0
        self.now_ms = 100_000
        self.log = self.open(recovery_point=0, clean=False)

    def open(self, *, recovery_point: int, clean: bool) -> Log:
        return Log.open(
            self.disk, FOLDER, CONFIG, recovery_point=Offset(recovery_point), clean=clean, now_ms=self.now_ms
        )

    def append(self, batch: memoryview, marker: Marker | None = None) -> None:
        appended = self.log.append(
            batch, read_header(batch), leader_epoch=LeaderEpoch(0), now_ms=self.now_ms, marker=marker
        )
        assert appended.base_offset == len(self.written)

    @rule(producer=st.one_of(st.just(NOBODY), PRODUCERS), key=KEYS, value=VALUES)
    def write(self, producer: int, key: bytes, value: bytes | None) -> None:
        builder = BatchBuilder()
        if producer != NOBODY:
            epoch = self.epochs.setdefault(producer, 0)
            known = self.log.producers.get(ProducerId(producer))
            sequence = known.next_sequence if known is not None and known.epoch == epoch else 0
            builder = BatchBuilder(
                producer_id=ProducerId(producer),
                producer_epoch=ProducerEpoch(epoch),
                base_sequence=sequence,
                transactional=True,
            )
        builder.append(key, value, timestamp_ms=self.now_ms)
        self.append(memoryview(builder.build()))
        self.written.append(Written(producer, key, value))

    @rule(producer=PRODUCERS, committed=st.booleans(), bumped=st.booleans())
    def decide(self, producer: int, committed: bool, bumped: bool) -> None:
        self.epochs[producer] = epoch = self.epochs.get(producer, 0) + bumped
        marker = Marker(committed, 0)
        batch = build_marker(marker, ProducerId(producer), ProducerEpoch(epoch), timestamp_ms=self.now_ms)
        self.append(memoryview(batch), marker)
        self.written.append(Written(producer, marker=committed))

    @rule(elapsed_ms=st.sampled_from([1, 600, 2_000]), keys_bytes_max=st.sampled_from([1, 400, 1 << 20]))
    def clean(self, elapsed_ms: int, keys_bytes_max: int) -> None:
        self.now_ms += elapsed_ms
        self.log.roll(self.now_ms)
        self.log.flush()
        self.cleaned_offset = compact(
            self.disk,
            self.log,
            cleaned_offset=self.cleaned_offset,
            now_ms=self.now_ms,
            keys_bytes_max=keys_bytes_max,
        )

    @rule(steps=st.integers(0, 60))
    def lose_power_while_cleaning(self, steps: int) -> None:
        self.log.roll(self.now_ms)
        self.log.flush()
        end = self.log.log_end_offset
        self.disk.crash_after(steps)
        try:
            compact(self.disk, self.log, cleaned_offset=self.cleaned_offset, now_ms=self.now_ms)
        except Crashed:
            pass
        self.disk.heal()
        self.disk.crash()
        self.log = self.open(recovery_point=end, clean=False)

    @rule(lose_snapshots=st.booleans())
    def restart(self, lose_snapshots: bool) -> None:
        self.log.close()
        for name in self.disk.list(FOLDER):
            if lose_snapshots and name.endswith(".snapshot"):
                self.disk.remove(f"{FOLDER}/{name}")
        self.log = self.open(recovery_point=len(self.written), clean=True)

    def expected(self) -> tuple[int, dict[int, tuple[bytes, bytes | None]], dict[bytes, bytes]]:
        """Return how far all is decided, the committed records below that, and the newest values."""
        open_since: dict[int, int] = {}
        aborted: set[int] = set()
        for offset, written in enumerate(self.written):
            if written.marker is not None:
                first = open_since.pop(written.producer, offset)
                mine = (place for place in range(first, offset) if self.written[place].producer == written.producer)
                aborted.update(() if written.marker else mine)
            elif written.producer != NOBODY:
                open_since.setdefault(written.producer, offset)
        stable = min(open_since.values(), default=len(self.written))
        committed = {
            offset: (written.key, written.value)
            for offset, written in enumerate(self.written[:stable])
            if written.marker is None and offset not in aborted
        }
        newest = dict(committed.values())
        return stable, committed, {key: value for key, value in newest.items() if value is not None}

    @invariant()
    def readers_see_the_newest_committed_values(self) -> None:
        stable, committed, values = self.expected()
        found = committed_records(self.log)
        assert [each for each in found if committed.get(each.offset) != (each.key, each.value)] == []
        newest = {record.key: record.value for record in found}
        assert {key: value for key, value in newest.items() if value is not None} == values
        assert self.log.last_stable_offset(self.log.log_end_offset) == stable
        assert self.log.log_end_offset == len(self.written)

    @invariant()
    def producers_stay_fenced(self) -> None:
        for producer, epoch in self.epochs.items():
            known = self.log.producers.get(ProducerId(producer))
            if any(written.producer == producer for written in self.written):
                assert known is not None
                assert known.epoch == epoch


CompactedTransactions.TestCase.settings = settings(max_examples=40, stateful_step_count=50, deadline=None)
test_compacted_transactions = CompactedTransactions.TestCase
