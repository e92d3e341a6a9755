"""Opening a log elsewhere: it comes back as if it had been opened here."""

import pickle
from dataclasses import replace
from pathlib import Path

import pytest

from riverlog.log.log import Log
from riverlog.log.recovery.process_opening import LogOpening, open_logs
from riverlog.log.segments.open_files import OpenFiles
from riverlog.model.ids import LeaderEpoch, Offset, TopicPartition
from riverlog.model.ports import Disk
from riverlog.model.settings import DEFAULT_TOPIC_CONFIG, Durability
from riverlog.records.batch import read_header
from riverlog.world.disk import FileSystem
from tests.support.batches import batch_of
from tests.support.disk import MemoryDisk

NAME = TopicPartition("orders", 0)
BATCH = batch_of([b"value"], producer_id=7, producer_epoch=0, base_sequence=0)
CONFIG = replace(DEFAULT_TOPIC_CONFIG, segment_bytes=3 * len(BATCH), durability=Durability.OS)


def write(disk: Disk, folder: str, batches: int) -> Log:
    """Write a log and forget it, as a process does that is killed."""
    log = Log.open(disk, folder, CONFIG, recovery_point=Offset(0), clean=False, now_ms=0)
    for number in range(batches):
        append(log, number)
    return log


def append(log: Log, number: int) -> None:
    batch = batch_of([b"value"], producer_id=7, producer_epoch=0, base_sequence=number)
    log.append(batch, read_header(batch), leader_epoch=LeaderEpoch(1), now_ms=0)


def opening(folder: str, *, recovery_point: int = 0, clean: bool = False) -> LogOpening:
    return LogOpening(
        NAME,
        folder,
        CONFIG,
        recovery_point=Offset(recovery_point),
        clean=clean,
        now_ms=0,
        log_start_offset=Offset(0),
        high_watermark=Offset(0),
        folder_is_durable=True,
        compacted=False,
    )


def test_a_log_comes_back_from_another_process_as_it_would_be_here(tmp_path: Path) -> None:
    disk, folder = FileSystem(), str(tmp_path / "orders-0")
    write(disk, folder, 8)
    ((name, opened),) = open_logs(disk, [opening(folder)])
    assert isinstance(opened, Log)
    log: Log = pickle.loads(pickle.dumps(opened))
    files = OpenFiles()
    log.segments.share(files)
    assert (name, log.log_end_offset, log.flushed_offset, len(log.segments)) == (NAME, 8, 0, 3)
    read = log.read(Offset(4), bytes_max=1 << 20, upto=Offset(8))
    assert read.records is not None
    assert files.count == 1
    append(log, 8)
    log.flush()
    assert log.flushed_offset == 9
    log.close()
    assert opening(folder, recovery_point=9, clean=True).open(disk).log_end_offset == 9


def test_open_files_stay_where_they_are(tmp_path: Path) -> None:
    disk = FileSystem()
    log = write(disk, str(tmp_path / "orders-0"), 1)
    with pytest.raises(TypeError, match="cannot be sent"):
        pickle.dumps(log)


def test_what_has_to_be_read_is_what_lies_above_the_recovery_point() -> None:
    disk = MemoryDisk()
    assert opening("/orders-0").unread_bytes(disk) == 0
    disk.make_folder("/orders-0")
    assert opening("/orders-0").unread_bytes(disk) == 0
    write(disk, "/orders-0", 8)
    assert opening("/orders-0").unread_bytes(disk) == 8 * len(BATCH)
    assert opening("/orders-0", recovery_point=4).unread_bytes(disk) == 5 * len(BATCH)
    assert opening("/orders-0", recovery_point=6).unread_bytes(disk) == 2 * len(BATCH)
    assert opening("/orders-0", clean=True).unread_bytes(disk) == 0


def test_a_log_that_the_disk_refuses_does_not_keep_the_others() -> None:
    disk = MemoryDisk()
    write(disk, "/orders-0", 2)
    write(disk, "/orders-1", 2)
    disk.fail(0, 5, on=("open",))
    (_, refused), (_, opened) = open_logs(disk, [opening("/orders-0"), opening("/orders-1")])
    assert isinstance(refused, OSError)
    assert isinstance(opened, Log)
