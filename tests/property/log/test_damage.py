"""Any single bit of any file of a log may rot: each answer stays the same or is refused, never another one."""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cache, partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from riverlog.log.log import Log
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import LeaderEpoch, Offset
from riverlog.model.settings import DEFAULT_TOPIC_CONFIG
from riverlog.records.batch import check_produced, headers, read_header
from tests.support.batches import batch_of
from tests.support.disk import MemoryDisk

FOLDER = "/data/orders-0"
CONFIG = replace(DEFAULT_TOPIC_CONFIG, segment_bytes=900, index_interval_bytes=200)
NOW = 10_000
BATCHES = 40
BATCH_RECORDS_MAX = 3
REFUSED = ErrorCode.CORRUPT_MESSAGE


@dataclass
class Written:
    """A log as it was before anything happened to it."""

    disk: MemoryDisk
    end: Offset
    batches: dict[int, bytes]
    """The bytes of the batch that holds an offset."""
    times: list[object]
    names: list[str]

    def served_as(self, offset: int) -> "Likeness":
        """Return what may be served for an offset."""
        bases = [int(name[:20]) for name in self.names if name.endswith(".log")]
        batch = self.batches[offset]
        header = read_header(batch)
        return Likeness(batch, at_border=header.base_offset in bases or header.next_offset in (*bases, self.end))


@dataclass
class Likeness:
    """The right bytes. Of the first and the last batch of a segment the leader epoch may differ.

    It is not under the checksum, and has a neighbour on one side only.
    """

    batch: bytes
    at_border: bool

    def __contains__(self, content: bytes) -> bool:
        return content == self.batch or (
            self.at_border and content[:12] == self.batch[:12] and content[16:] == self.batch[16:]
        )


@cache
def written() -> Written:
    disk = MemoryDisk()
    disk.make_folder("/data")
    disk.sync_folder("/")
    log = open_log(disk, Offset(0))
    for number in range(BATCHES):
        append(log, number)
    end = log.log_end_offset
    batches = dict(each_batch(log, Offset(0)))
    times = ask_times(log)
    log.close()
    assert len(log.segments) > 4
    return Written(disk, end, batches, times, disk.list(FOLDER))


def open_log(disk: MemoryDisk, recovery_point: Offset, *, clean: bool = False) -> Log:
    return Log.open(disk, FOLDER, CONFIG, recovery_point=recovery_point, clean=clean, now_ms=NOW)


def append(log: Log, number: int) -> None:
    values = [b"value %d" % number] * (1 + number % 3)
    batch = batch_of(
        values, timestamp_ms=100 * number, producer_id=1, producer_epoch=0, base_sequence=log.log_end_offset
    )
    header = check_produced(batch, batch_bytes_max=1 << 20)
    log.append(batch, header, leader_epoch=LeaderEpoch(number // 9), now_ms=NOW)


def each_batch(log: Log, offset: Offset) -> Iterator[tuple[int, bytes]]:
    """Read on from an offset, as a consumer does: each offset with the batch that holds it."""
    while offset < log.log_end_offset:
        found = log.read(offset, bytes_max=400, upto=log.log_end_offset)
        assert found.records is not None
        content = found.records.file.read(found.records.position, found.records.size)
        behind = offset
        for position, header in headers(content):
            batch = content[position : position + header.size]
            yield from ((each, batch) for each in range(header.base_offset, header.next_offset))
            behind = header.next_offset
        assert behind > offset
        offset = Offset(behind)


def ask_times(log: Log) -> list[object]:
    """Ask for many times and for the latest one: what is found, or that it is refused."""
    asked = [partial(log.offset_for_time, timestamp) for timestamp in range(-50, 100 * BATCHES + 100, 50)]
    answers: list[object] = []
    for ask in (*asked, log.max_timestamp):
        try:
            found = ask()
        except Refusal as refusal:
            answers.append(refusal.code)
        else:
            answers.append(found and found[:2])
    return answers


def judge(log: Log) -> set[int]:
    """Compare all answers with the right ones; give the offsets that are refused."""
    truth = written()
    refused: dict[int, ErrorCode] = {}
    for offset in range(truth.end):
        try:
            found = log.read(Offset(offset), bytes_max=1, upto=truth.end)
        except Refusal as refusal:
            refused[offset] = refusal.code
            continue
        assert found.records is not None, offset
        content = found.records.file.read(found.records.position, found.records.size)
        assert content in truth.served_as(offset)
        assert found.next_offset == next(iter(headers(content)))[1].next_offset
    for start in range(0, truth.end, 7):
        expected = start
        try:
            for offset, batch in each_batch(log, Offset(start)):
                if offset >= start:
                    assert offset == expected, "a reader skips nothing without being told"
                    assert offset >= truth.end or batch in truth.served_as(offset)
                    expected += 1
        except Refusal:
            assert expected in refused
    if log.log_end_offset == truth.end:
        for right, found_time in zip(truth.times, ask_times(log), strict=True):
            assert found_time in (right, REFUSED)
    assert set(refused.values()) <= {REFUSED}
    return set(refused)


def flip(disk: MemoryDisk, name: str, bit: int) -> None:
    path = f"{FOLDER}/{name}"
    size = disk.open(path).size()
    disk.damage(path, bit // 8 % size, 1 << bit % 8)


@pytest.mark.parametrize("clean", [True, False])
@settings(max_examples=120, deadline=None)
@given(data=st.data(), bit=st.integers(0, 1 << 16))
def test_a_flipped_bit_changes_no_answer(clean: bool, data: st.DataObject, bit: int) -> None:
    truth = written()
    disk = deepcopy(truth.disk)
    name = data.draw(st.sampled_from([name for name in truth.names if disk.open(f"{FOLDER}/{name}").size()]))
    flip(disk, name, bit)
    log = open_log(disk, truth.end, clean=clean)
    refused = judge(log)
    assert len(refused) <= (BATCH_RECORDS_MAX if name.endswith(".log") else 0)
    assert bool(refused) == bool(log.damage)
    append(log, BATCHES)
    log.close()
    again = open_log(disk, log.log_end_offset, clean=clean)
    refused_again = judge(again)  # a wrong epoch at the end of the log shows when another batch follows
    assert refused <= refused_again
    assert len(refused_again) <= 2 * BATCH_RECORDS_MAX  # of two epochs that contradict, either may be the wrong one
    assert set(log.damage) <= set(again.damage)
