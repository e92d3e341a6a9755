"""Compaction against a dictionary: the newest value of each key stays, whatever happens in the middle of it."""

from copy import deepcopy
from dataclasses import dataclass, replace

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from riverlog.log.log import Log
from riverlog.log.segments.gathered_write import AppendResult
from riverlog.model.ids import LeaderEpoch, Offset, ProducerEpoch, ProducerId
from riverlog.model.settings import DEFAULT_TOPIC_CONFIG
from riverlog.records.batch import Compression, check_produced
from riverlog.records.record import BatchBuilder, Record
from tests.support.batches import records_of
from tests.support.compacting import compact
from tests.support.disk import Crashed, MemoryDisk

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
NOW = 100_000


@dataclass(frozen=True)
class Sent:
    """A batch of a producer, or of nobody in particular."""

    entries: tuple[tuple[bytes, bytes | None], ...]
    compression: Compression
    producer: int
    timestamp_ms: int


KEYS = st.sampled_from([b"a", b"b", b"c", b"d"])
VALUES = st.one_of(st.none(), st.binary(max_size=40))
BATCHES = st.builds(
    Sent,
    st.lists(st.tuples(KEYS, VALUES), min_size=1, max_size=4).map(tuple),
    st.sampled_from(Compression),
    st.integers(-1, 2),
    st.integers(0, NOW),
)


class Writer:
    """A log, and all that was ever written to it."""

    def __init__(self, disk: MemoryDisk) -> None:
        self.disk = disk
        self.written: dict[int, Record] = {}
        self.last: dict[int, bytearray] = {}
        """The last batch of each producer."""
        self.sequences: dict[int, int] = {}
        self.log = open_log(disk, recovery_point=0)

    def send(self, sent: Sent) -> None:
        builder = BatchBuilder(sent.compression)
        for delta, (key, value) in enumerate(sent.entries):
            builder.append(key, value, timestamp_ms=sent.timestamp_ms + delta)
        if sent.producer >= 0:
            builder.producer_id, builder.producer_epoch = ProducerId(sent.producer), ProducerEpoch(0)
            builder.base_sequence = self.sequences.get(sent.producer, 0)
            self.sequences[sent.producer] = builder.base_sequence + len(sent.entries)
            self.last[sent.producer] = builder.build()
        base_offset = append(self.log, builder.build()).base_offset
        for delta, (key, value) in enumerate(sent.entries):
            offset = Offset(base_offset + delta)
            self.written[offset] = Record(offset, sent.timestamp_ms + delta, key, value)

    def values(self) -> dict[bytes | None, bytes]:
        return values_of(list(self.written.values()))


def append(log: Log, batch: bytearray) -> AppendResult:
    header = check_produced(memoryview(batch), batch_bytes_max=1 << 20)
    return log.append(memoryview(batch), header, leader_epoch=LeaderEpoch(0), now_ms=NOW)


def open_log(disk: MemoryDisk, *, recovery_point: int, clean: bool = False) -> Log:
    return Log.open(disk, FOLDER, CONFIG, recovery_point=Offset(recovery_point), clean=clean, now_ms=NOW)


def read_all(log: Log) -> list[Record]:
    records: list[Record] = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        found = log.read(offset, bytes_max=200, upto=log.log_end_offset)
        assert found.next_offset > offset
        records += [record for record in records_of(found.records) if record.offset >= offset]
        offset = found.next_offset
    return records


def values_of(records: list[Record]) -> dict[bytes | None, bytes]:
    newest = {record.key: record.value for record in records}
    return {key: value for key, value in newest.items() if value is not None}


def judge(writer: Writer, log: Log) -> None:
    """Compare what can be read with what was written."""
    records = read_all(log)
    assert values_of(records) == writer.values()
    assert [record for record in records if writer.written[record.offset] != record] == []
    assert log.log_end_offset == len(writer.written)
    assert log.damage == []


def a_written_log(batches: list[Sent], seed: int) -> Writer:
    disk = MemoryDisk(seed)
    disk.make_folder("/data")
    disk.sync_folder("/")
    writer = Writer(disk)
    for sent in batches:
        writer.send(sent)
    writer.log.roll(NOW)
    writer.log.flush()
    return writer


@given(st.lists(BATCHES, min_size=4, max_size=14), st.integers(0, 1 << 32))
@settings(max_examples=4, deadline=None, phases=[Phase.explicit, Phase.generate])
def test_a_crash_at_any_step_leaves_the_old_or_the_new(batches: list[Sent], seed: int) -> None:
    writer = a_written_log(batches, seed)
    end = writer.log.log_end_offset
    writer.log.close()
    step = 0
    while True:
        disk = deepcopy(writer.disk)
        log = open_log(disk, recovery_point=end, clean=True)
        disk.crash_after(step)
        try:
            compact(disk, log, now_ms=NOW)
            finished = True
        except Crashed:
            finished = False
        disk.heal()
        disk.crash()
        # The recovery point may be anything that was true once: what was cleaned is whole all the same.
        log = open_log(disk, recovery_point=step % (end + 1))
        judge(writer, log)
        assert [name for name in disk.list(FOLDER) if name.endswith((".cleaned", ".swap"))] == []
        compact(disk, log, now_ms=NOW)
        judge(writer, log)
        if finished:
            return
        step += 1


@given(st.lists(BATCHES, min_size=1, max_size=30), st.data())
@settings(max_examples=60, deadline=None)
def test_the_newest_value_of_each_key_stays(batches: list[Sent], data: st.DataObject) -> None:
    disk = MemoryDisk()
    disk.make_folder("/data")
    writer = Writer(disk)
    cleaned_offset, now_ms = 0, NOW
    for sent in batches:
        writer.send(sent)
        if data.draw(st.integers(0, 4)) == 0:
            writer.log.roll(NOW)
            writer.log.flush()
            now_ms += data.draw(st.sampled_from([1, 600, 2_000]))
            room = data.draw(st.sampled_from([1, 400, 1 << 20]))
            before = cleaned_offset
            cleaned_offset = compact(
                disk, writer.log, cleaned_offset=cleaned_offset, now_ms=now_ms, keys_bytes_max=room
            )
            assert cleaned_offset >= before
            judge(writer, writer.log)
    records = read_all(writer.log)
    for timestamp_ms in {record.timestamp for record in writer.written.values()}:
        found = writer.log.offset_for_time(timestamp_ms)
        expected = next((record for record in records if record.timestamp >= timestamp_ms), None)
        assert (found.offset if found else None) == (expected.offset if expected else None)
    latest = writer.log.max_timestamp()
    assert (latest.timestamp_ms if latest else None) == max((each.timestamp for each in records), default=None)
    for offset in range(writer.log.log_start_offset, writer.log.log_end_offset):
        found_records = records_of(writer.log.read(Offset(offset), bytes_max=1, upto=writer.log.log_end_offset).records)
        assert all(record.offset < offset or record in records for record in found_records)


@given(st.lists(BATCHES, min_size=1, max_size=20), st.booleans())
@settings(max_examples=40, deadline=None)
def test_retries_are_recognised_after_cleaning_and_restart(batches: list[Sent], lose_snapshots: bool) -> None:
    writer = a_written_log(batches, 0)
    disk, end = writer.disk, writer.log.log_end_offset
    compact(disk, writer.log, now_ms=NOW)
    compact(disk, writer.log, now_ms=NOW + 2_000)
    writer.log.close()
    if lose_snapshots:
        for name in disk.list(FOLDER):
            if name.endswith(".snapshot"):
                disk.remove(f"{FOLDER}/{name}")
    log = open_log(disk, recovery_point=end, clean=True)
    for producer, batch in writer.last.items():
        appended = append(log, bytearray(batch))
        assert appended.duplicate, f"a retry of producer {producer} was appended again"
    log.release()
