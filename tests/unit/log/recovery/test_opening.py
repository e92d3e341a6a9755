"""Opening a partition's folder: what is read, what is learnt, and what is known to be synced."""

from riverlog.log.log import Log
from riverlog.log.recovery.opening import OpenedFolder, open_folder
from riverlog.log.segments.open_files import OpenFiles
from riverlog.model.ids import LeaderEpoch, Offset, ProducerId
from riverlog.model.settings import DEFAULT_TOPIC_CONFIG
from riverlog.records.batch import read_header
from tests.support.batches import batch_of
from tests.support.disk import MemoryDisk

FOLDER = "/orders-0"


def written(batches: int) -> tuple[MemoryDisk, Log]:
    disk = MemoryDisk()
    log = Log.open(disk, FOLDER, DEFAULT_TOPIC_CONFIG, recovery_point=Offset(0), clean=False, now_ms=0)
    for number in range(batches):
        batch = batch_of([b"value"], producer_id=7, producer_epoch=0, base_sequence=number)
        log.append(batch, read_header(batch), leader_epoch=LeaderEpoch(3), now_ms=0)
    return disk, log


def opened(disk: MemoryDisk, *, recovery_point: int, clean: bool) -> OpenedFolder:
    return open_folder(
        disk,
        OpenFiles(),
        FOLDER,
        recovery_point=Offset(recovery_point),
        clean=clean,
        index_interval_bytes=4096,
        dense=True,
        now_ms=0,
    )


def test_a_new_folder_has_no_segments() -> None:
    found = opened(MemoryDisk(), recovery_point=0, clean=True)
    assert len(found.segments) == 0
    assert not found.clean


def test_after_a_clean_shutdown_nothing_is_unsynced() -> None:
    disk, log = written(5)
    log.close()
    found = opened(disk, recovery_point=5, clean=True)
    assert found.clean
    assert not found.segments.active.unsynced
    assert not found.past.has_new_epochs


def test_a_marker_of_a_clean_shutdown_is_not_believed_where_the_log_ends_elsewhere() -> None:
    disk, log = written(5)
    log.close()
    assert not opened(disk, recovery_point=4, clean=True).clean


def test_recovery_learns_epochs_and_producers_on_the_way() -> None:
    disk, _ = written(5)
    found = opened(disk, recovery_point=0, clean=False)
    assert found.segments.active.next_offset == 5
    assert found.segments.active.unsynced
    assert found.past.epochs.entries() == [(3, 0)]
    producer = found.past.producers.get(ProducerId(7))
    assert producer is not None
    assert [batch.base_offset for batch in producer.batches] == [0, 1, 2, 3, 4]


def test_what_lies_below_the_recovery_point_needs_no_second_sync() -> None:
    disk, log = written(5)
    log.flush()
    found = opened(disk, recovery_point=5, clean=False)
    assert not found.segments.active.unsynced
    assert not found.past.has_new_epochs
    producer = found.past.producers.get(ProducerId(7))
    assert producer is not None
    assert producer.next_sequence == 5


def test_producers_of_deleted_records_are_known_from_the_snapshot_where_the_log_begins() -> None:
    disk, log = written(5)
    log.roll(0)
    log.flush()
    for suffix in (".log", ".index", ".timeindex"):
        disk.remove(f"{FOLDER}/{0:020d}{suffix}")
    found = opened(disk, recovery_point=0, clean=False)
    producer = found.past.producers.get(ProducerId(7))
    assert producer is not None
    assert producer.next_sequence == 5
