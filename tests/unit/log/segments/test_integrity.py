"""What may be served of a segment: verified once, refused where it is damaged, and known from then on."""

import pytest

from riverlog.log.segments import integrity as module
from riverlog.log.segments.log_folder import LOG_SUFFIX, LogFolder
from riverlog.log.segments.open_files import OpenFiles
from riverlog.log.segments.segment import Segment
from riverlog.model.errors import Refusal
from riverlog.model.ids import LeaderEpoch, Offset
from riverlog.records.batch import assign
from tests.support.batches import batch_of
from tests.support.disk import MemoryDisk

BASE = Offset(100)
COUNT = 40


def create(disk: MemoryDisk) -> Segment:
    return Segment.create(LogFolder(disk, OpenFiles(), "", 200), BASE, now_ms=5)


def load(disk: MemoryDisk) -> Segment:
    return Segment.load(LogFolder(disk, OpenFiles(), "", 200), BASE, now_ms=5)


def fill(segment: Segment) -> None:
    """Append batches of two records."""
    for _ in range(COUNT):
        batch = batch_of([b"a", b"b"])
        base_offset = segment.next_offset
        assign(batch, base_offset, LeaderEpoch(0))
        segment.append([(batch, base_offset, Offset(base_offset + 1), 1_000, 1_001)])


@pytest.fixture
def disk() -> MemoryDisk:
    disk = MemoryDisk()
    segment = create(disk)
    fill(segment)
    segment.index_files.write()
    segment.release()
    return disk


def test_bytes_are_verified_once(disk: MemoryDisk) -> None:
    segment = load(disk)
    assert segment.integrity.verify(0, segment.size) == segment.size
    disk.damage(segment.path(LOG_SUFFIX), segment.size // 2)
    assert segment.integrity.verify(0, segment.size) == segment.size
    loaded = load(disk)
    good = loaded.integrity.verify(0, loaded.size)
    assert 0 < good <= loaded.size // 2
    with pytest.raises(Refusal, match="damaged"):
        loaded.integrity.verify(good, loaded.size)
    behind = good + loaded.size // COUNT
    assert loaded.integrity.verify(behind, loaded.size) == loaded.size


def test_a_long_range_is_verified_in_parts(disk: MemoryDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "UNVERIFIED_BYTES_PER_READ_MAX", 500)
    segment = load(disk)
    position = 0
    parts = 0
    while position < segment.size:
        position = segment.integrity.verify(position, segment.size)
        parts += 1
    assert parts > 3
    assert segment.integrity.verify(0, segment.size) == segment.size


def test_what_this_process_appended_needs_no_verification() -> None:
    disk = MemoryDisk()
    segment = create(disk)
    fill(segment)
    steps = disk.steps
    assert segment.integrity.verify(0, segment.size) == segment.size
    assert disk.steps == steps


def test_damage_is_walked_round_once_it_is_known(disk: MemoryDisk) -> None:
    segment = load(disk)
    size = segment.size // COUNT
    for number in (7, 20):
        disk.damage(segment.path(LOG_SUFFIX), number * size + 8)
    assert len(list(segment.integrity.headers(0))) == 7
    for _ in range(2):
        with pytest.raises(Refusal):
            segment.integrity.verify_all(0, segment.size)
    segment.integrity.verify_all(0, segment.size)
    assert len(list(segment.integrity.headers(0))) == COUNT - 2
    assert [(flaw.position, flaw.first_offset, flaw.next_offset) for flaw in segment.integrity.flaws()] == [
        (7 * size, BASE + 14, BASE + 16),
        (20 * size, BASE + 40, BASE + 42),
    ]
    assert segment.locate(Offset(BASE + 40)) == 20 * size
    assert segment.locate(Offset(BASE + 42)) == 21 * size


def test_every_damaged_batch_is_delimited_alone(disk: MemoryDisk) -> None:
    path = f"/{BASE:020d}.log"
    size = disk.open(path).size() // COUNT
    for number in range(COUNT):
        disk.damage(path, number * size + 70)
        segment = load(disk)
        with pytest.raises(Refusal):
            segment.integrity.verify(number * size, segment.size)
        (flaw,) = segment.integrity.flaws()
        assert flaw[:4] == (number * size, number * size + size, BASE + 2 * number, BASE + 2 * number + 2)
        disk.damage(path, number * size + 70)
