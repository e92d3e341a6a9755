"""Epochs and producers, learnt again."""

from dataclasses import replace

import pytest

from riverlog.log.log import Log
from riverlog.log.recovery.recovery import list_folder
from riverlog.log.recovery.replay import EPOCHS_FILE, LogReplay, headers_from
from riverlog.log.segments.log_folder import LogFolder
from riverlog.log.segments.open_files import OpenFiles
from riverlog.log.segments.segments import Segments
from riverlog.model.ids import LeaderEpoch, Offset, ProducerId
from riverlog.model.settings import DEFAULT_TOPIC_CONFIG
from riverlog.records.batch import read_header
from tests.support.batches import batch_of
from tests.support.disk import MemoryDisk

FOLDER = "/orders-0"
CONFIG = replace(DEFAULT_TOPIC_CONFIG, segment_bytes=500, index_interval_bytes=100)
EPOCHS = [(0, 0), (1, 10), (2, 20)]


@pytest.fixture
def disk() -> MemoryDisk:
    """Thirty batches of one producer under three leaders, closed cleanly."""
    disk = MemoryDisk()
    log = Log.open(disk, FOLDER, CONFIG, recovery_point=Offset(0), clean=False, now_ms=0)
    for number in range(30):
        batch = batch_of([b"value"], producer_id=7, producer_epoch=0, base_sequence=number)
        log.append(batch, read_header(batch), leader_epoch=LeaderEpoch(number // 10), now_ms=0)
    log.close()
    return disk


def segments_on(disk: MemoryDisk) -> Segments:
    bases = list_folder(disk, FOLDER).segments
    segments = Segments(LogFolder(disk, OpenFiles(), FOLDER, 100), bases, now_ms=0)
    segments.reopen_last()
    return segments


def learn(disk: MemoryDisk) -> LogReplay:
    segments = segments_on(disk)
    past = LogReplay(LogFolder(disk, OpenFiles(), FOLDER, 100), first=Offset(0), upto=Offset(30), now_ms=0)
    past.catch_up(segments, segments.active)
    past.remove_snapshots(segments)
    return past


def test_headers_are_walked_from_any_offset(disk: MemoryDisk) -> None:
    segments = segments_on(disk)
    for offset in range(31):
        walked = [header.base_offset for header, _ in headers_from(segments, Offset(offset), segments.active)]
        assert walked == list(range(offset, 30))


def test_epochs_come_from_their_file_or_from_the_batches(disk: MemoryDisk) -> None:
    assert learn(disk).epochs.entries() == EPOCHS
    assert not learn(disk).has_new_epochs
    disk.damage(f"{FOLDER}/{EPOCHS_FILE}", 0)
    assert learn(disk).epochs.entries() == EPOCHS
    disk.remove(f"{FOLDER}/{EPOCHS_FILE}")
    assert learn(disk).epochs.entries() == EPOCHS
    assert learn(disk).has_new_epochs


def test_producers_come_from_the_newest_good_snapshot_and_what_follows(disk: MemoryDisk) -> None:
    while True:
        snapshots = list_folder(disk, FOLDER).snapshots
        producer = learn(disk).producers.get(ProducerId(7))
        assert producer is not None
        assert producer.next_sequence == 30
        assert [written.base_offset for written in producer.batches] == [25, 26, 27, 28, 29]
        if not snapshots:
            break
        path = f"{FOLDER}/{snapshots[-1]:020d}.snapshot"
        if snapshots[-1] % 2:
            disk.damage(path, 8)
        disk.remove(path)


def test_missing_epochs_do_not_disturb_the_producers(disk: MemoryDisk) -> None:
    disk.remove(f"{FOLDER}/{EPOCHS_FILE}")
    producer = learn(disk).producers.get(ProducerId(7))
    assert producer is not None
    assert [written.base_offset for written in producer.batches] == [25, 26, 27, 28, 29]


def test_snapshots_that_nobody_needs_are_removed(disk: MemoryDisk) -> None:
    for offset in (1, 2):
        disk.open(f"{FOLDER}/{offset:020d}.snapshot", create=True).close()
    learn(disk)
    assert list_folder(disk, FOLDER).snapshots == [*segments_on(disk).bases[1:], 30]


def test_damage_hides_nothing_behind_it(disk: MemoryDisk) -> None:
    disk.damage(f"{FOLDER}/{0:020d}.log", 8)
    segments = segments_on(disk)
    walked = [header.base_offset for header, _ in headers_from(segments, Offset(0), segments.active)]
    assert walked == list(range(1, 30))
