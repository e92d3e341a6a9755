"""Scrubbing: every byte is read, what is wrong is named, and no faster than allowed."""

import errno
from dataclasses import replace

import pytest

from riverlog.log import scrubbing as module
from riverlog.log.log import Log
from riverlog.log.retention import SegmentFacts
from riverlog.log.scrubbing import ScrubbedSegment, scrub
from riverlog.model.ids import LeaderEpoch, Offset
from riverlog.model.settings import DEFAULT_TOPIC_CONFIG
from riverlog.records.batch import check_produced
from tests.support.batches import batch_of
from tests.support.disk import MemoryDisk

FOLDER = "/data/orders-0"
CONFIG = replace(DEFAULT_TOPIC_CONFIG, segment_bytes=1_000)


@pytest.fixture
def disk() -> MemoryDisk:
    return MemoryDisk()


@pytest.fixture
def log(disk: MemoryDisk) -> Log:
    log = Log.open(disk, FOLDER, CONFIG, recovery_point=Offset(0), clean=False, now_ms=0)
    for _ in range(50):
        batch = batch_of([b"value"])
        log.append(batch, check_produced(batch, batch_bytes_max=1 << 20), leader_epoch=LeaderEpoch(0), now_ms=0)
    log.flush()
    return log


def closed(log: Log) -> list[tuple[str, SegmentFacts]]:
    return [(FOLDER, segment) for segment in log.segment_facts()[:-1]]


def scrubbed(disk: MemoryDisk, log: Log, pauses: list[float] | None = None) -> list[ScrubbedSegment]:
    pauses = [] if pauses is None else pauses
    return list(scrub(disk, closed(log), bytes_per_second_max=1_000, pause=pauses.append))


def test_what_is_whole_has_no_flaws(disk: MemoryDisk, log: Log) -> None:
    found = scrubbed(disk, log)
    assert [each.segment for each in found] == [segment for _, segment in closed(log)]
    assert all(each.flaws == [] for each in found)


def test_damage_is_found_and_quarantined(disk: MemoryDisk, log: Log) -> None:
    first, second = closed(log)[0][1], closed(log)[1][1]
    disk.damage(f"{FOLDER}/{second.base_offset:020d}.log", 70)
    disk.damage(f"{FOLDER}/{second.base_offset:020d}.log", second.size - 1)
    found = {each.segment.base_offset: each.flaws for each in scrubbed(disk, log) if each.flaws}
    assert list(found) == [second.base_offset]
    lost = [flaw.first_offset for flaw in found[second.base_offset]]
    assert lost == [second.base_offset, second.next_offset - 1]
    assert log.note_flaws(second, found[second.base_offset])
    assert [log.quarantine.at(offset) is not None for offset in lost] == [True, True]
    assert not log.note_flaws(first._replace(size=first.size - 1), found[second.base_offset]), "it is another one now"
    assert log.quarantine.segments_behind(Offset(0)) == {second.base_offset}


def test_reading_is_as_slow_as_asked_for(disk: MemoryDisk, log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BYTES_PER_PAUSE", 200)
    pauses: list[float] = []
    scrubbed(disk, log, pauses)
    assert sum(pauses) == pytest.approx(sum(segment.size for _, segment in closed(log)) / 1_000)
    assert max(pauses) < 0.4


def test_what_is_gone_or_cannot_be_read_does_not_stop_it(disk: MemoryDisk, log: Log) -> None:
    segments = closed(log)
    disk.rename(
        f"{FOLDER}/{segments[0][1].base_offset:020d}.log", f"{FOLDER}/{segments[0][1].base_offset:020d}.log.deleted"
    )
    disk.fail(0, errno.EIO, on=("read",))
    found = list(scrub(disk, segments, bytes_per_second_max=1e9, pause=lambda _seconds: None))
    assert [each.segment for each in found] == [segment for _, segment in segments[1:]]
    assert [bool(each.error) for each in found] == [True] + [False] * (len(found) - 1)
