"""Looking into files: every entry with its verdict."""

from dataclasses import replace

import pytest

from riverlog.log.dump.batches import dump_batches, dump_offsets, dump_times, segments_of
from riverlog.log.log import Log
from riverlog.model.ids import LeaderEpoch, Offset
from riverlog.model.settings import DEFAULT_TOPIC_CONFIG
from riverlog.records.batch import read_header
from tests.support.batches import batch_of
from tests.support.disk import MemoryDisk

FOLDER = "/orders-0"
CONFIG = replace(DEFAULT_TOPIC_CONFIG, segment_bytes=2_000, index_interval_bytes=150)
LOG, INDEX, TIMES = (f"{FOLDER}/{0:020d}.{kind}" for kind in ("log", "index", "timeindex"))


@pytest.fixture
def disk() -> MemoryDisk:
    disk = MemoryDisk()
    log = Log.open(disk, FOLDER, CONFIG, recovery_point=Offset(0), clean=False, now_ms=0)
    for number in range(50):
        batch = batch_of([b"a", b"b"], timestamp_ms=number * 7 % 100 + number)
        log.append(batch, read_header(batch), leader_epoch=LeaderEpoch(0), now_ms=0)
    log.close()
    return disk


def test_what_the_log_writes_is_found_right(disk: MemoryDisk) -> None:
    batches, offsets, times = [], [], []
    for base_offset in segments_of(disk, FOLDER):
        batches += dump_batches(disk, FOLDER, base_offset)
        offsets += dump_offsets(disk, FOLDER, base_offset)
        times += dump_times(disk, FOLDER, base_offset)
    assert [batch.header.base_offset for batch in batches if batch.header] == list(range(0, 100, 2))
    assert {entry.verdict for entry in (*batches, *offsets, *times)} == {""}
    assert len(offsets) > 10
    assert len(times) > 4
    assert disk.open_files == 0


def test_damaged_batches_are_named(disk: MemoryDisk) -> None:
    first, second = list(dump_batches(disk, FOLDER, Offset(0)))[:2]
    disk.damage(LOG, first.size - 1)
    disk.damage(LOG, second.position + second.size + 7, flip=0x04)
    verdicts = [batch.verdict for batch in dump_batches(disk, FOLDER, Offset(0))]
    assert verdicts[0] == "the checksum does not match"
    assert verdicts[1] == ""
    assert verdicts[2].startswith("offset 0 comes again")
    assert set(verdicts[3:]) == {""}


@pytest.mark.parametrize(("byte", "flip"), [(7, 0x08), (2, 0x01), (0, 0x80)])
def test_a_damaged_base_offset_accuses_its_own_batch_alone(disk: MemoryDisk, byte: int, flip: int) -> None:
    second = list(dump_batches(disk, FOLDER, Offset(0)))[1]
    disk.damage(LOG, second.position + byte, flip=flip)
    verdicts = [batch.verdict for batch in dump_batches(disk, FOLDER, Offset(0))]
    assert verdicts[1].startswith("offset ")
    assert set(verdicts[2:]) == {""}


@pytest.mark.parametrize(("rest", "verdict"), [(b"garbage" * 20, "no whole batch"), (bytes(500), "zeros to the end")])
def test_bytes_behind_the_last_batch_are_named(disk: MemoryDisk, rest: bytes, verdict: str) -> None:
    file = disk.open(LOG)
    end = file.size()
    file.write(end, [rest])
    *_, last = dump_batches(disk, FOLDER, Offset(0))
    assert last == (end, len(rest), None, None, verdict)


def test_wrong_index_entries_are_named(disk: MemoryDisk) -> None:
    disk.damage(INDEX, 3, flip=0x01)
    disk.damage(INDEX, 8 + 7, flip=0x01)
    disk.damage(INDEX, 16, flip=0x80)
    verdicts = [entry.verdict for entry in dump_offsets(disk, FOLDER, Offset(0))]
    assert verdicts[0].startswith("the batch at this position ends with offset")
    assert verdicts[1] == "no batch begins at this position"
    assert verdicts[2] == "not behind the entry before it"


def test_wrong_time_entries_are_named(disk: MemoryDisk) -> None:
    disk.damage(TIMES, 7, flip=0x01)
    disk.damage(TIMES, 12 + 11, flip=0x01)
    disk.damage(TIMES, 24, flip=0x80)
    verdicts = [entry.verdict for entry in dump_times(disk, FOLDER, Offset(0))]
    assert verdicts[0].startswith("the batch that ends with this offset has timestamp")
    assert verdicts[1] == "no batch ends with this offset"
    assert verdicts[2] == "not behind the entry before it"


def test_missing_indexes_have_no_entries(disk: MemoryDisk) -> None:
    disk.remove(INDEX)
    disk.remove(TIMES)
    assert list(dump_offsets(disk, FOLDER, Offset(0))) == []
    assert list(dump_times(disk, FOLDER, Offset(0))) == []
