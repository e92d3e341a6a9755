"""The folder of the metadata log: what is cut off, what takes the place of all, and what is read of it."""

from collections.abc import Callable

from riverlog.controller.folder_check import check_folder
from riverlog.controller.snapshot_files import encode_snapshot
from riverlog.controller.storage import MetadataStorage, batches_in
from riverlog.metadata.encoding import encode_record
from riverlog.metadata.records import FeatureLevelRecord
from riverlog.model.ids import LeaderEpoch, Offset
from riverlog.raft.log_tail import SnapshotId
from riverlog.records.record import BatchBuilder
from tests.support.disk import MemoryDisk
from tests.support.raft import voters
from tests.unit.controller.metadata_node import FOLDER, StillClock

SNAPSHOT = SnapshotId(Offset(50), LeaderEpoch(4))


def level(number: int) -> FeatureLevelRecord:
    return FeatureLevelRecord(name="metadata.version", feature_level=number)


def content_of(*records: FeatureLevelRecord) -> bytes:
    """Return a snapshot of these records."""
    return encode_snapshot(records, LeaderEpoch(4), 1, voters=voters(1, 2), kraft_version=1)


def opened(disk: MemoryDisk, lower_flushed: Callable[[Offset], None] = lambda _offset: None) -> MetadataStorage:
    return MetadataStorage.open(disk, StillClock(), check_folder(disk, FOLDER), lower_flushed=lower_flushed)


def add(storage: MetadataStorage, *numbers: int, epoch: int = 1) -> None:
    """Append each record in a batch of its own."""
    for number in numbers:
        builder = BatchBuilder()
        builder.append(None, encode_record(level(number)), timestamp_ms=1)
        storage.append(memoryview(builder.build()), LeaderEpoch(epoch))


def levels(storage: MetadataStorage, begin: int = 0) -> list[int]:
    return [
        record.feature_level
        for _end, records in storage.records(Offset(begin), storage.end_offset)
        for record in records
        if isinstance(record, FeatureLevelRecord)
    ]


def test_records_come_back_with_their_offsets() -> None:
    storage = opened(MemoryDisk())
    add(storage, 7, 8, 9)
    assert levels(storage) == [7, 8, 9]
    assert [end for end, _ in storage.records(Offset(1), Offset(2))] == [2]
    assert len(list(batches_in(memoryview(storage.read(Offset(0), 10_000))))) == 3
    assert len(list(batches_in(memoryview(storage.read(Offset(1), 1))))) == 1, "one at least"


def test_what_was_flushed_is_lowered_before_the_log_is_cut_off() -> None:
    disk, lowered = MemoryDisk(), list[tuple[int, int]]()
    storage = opened(disk, lambda offset: lowered.append((offset, storage.end_offset)))
    add(storage, 7, 8, 9)
    storage.truncate(Offset(1))
    assert lowered == [(1, 3)]
    add(storage, 5, epoch=2)
    assert levels(storage) == [7, 5]
    assert levels(opened(disk)) == [7, 5]


def test_a_fetched_snapshot_takes_the_place_of_all() -> None:
    disk = MemoryDisk()
    storage = opened(disk)
    add(storage, 7, 8)
    storage.log.flush()
    content = content_of(level(3))
    storage.write_part(SNAPSHOT, 0, b"what an earlier attempt has left, longer than the snapshot" * 50)
    storage.write_part(SNAPSHOT, 0, content[:40])
    storage.write_part(SNAPSHOT, 40, content[40:])
    [said] = storage.read_part(SNAPSHOT)
    assert said.voters == voters(1, 2)
    storage.install(SNAPSHOT)
    for each in (storage, opened(disk)):
        assert (each.newest_snapshot, each.end_offset, levels(each, 50)) == (SNAPSHOT, 50, [])
        assert list(each.snapshot_records(SNAPSHOT)) == [level(3)]
    assert storage.read_snapshot(SNAPSHOT, 40, 1_000) == content[40:1_040]
    add(storage, 4, epoch=5)
    assert levels(opened(disk), 50) == [4]


def test_an_own_snapshot_that_is_written_meanwhile_is_in_nobodys_way() -> None:
    disk = MemoryDisk()
    storage = opened(disk)
    add(storage, 1, 2)
    own = SnapshotId(Offset(2), LeaderEpoch(1))
    storage.write_snapshot(own, content_of(level(2)))
    storage.write_part(SNAPSHOT, 0, content_of(level(3)))
    seen = []

    def remove_first(kind: str, path: str) -> None:
        """Remove the file that is to be removed, as whoever has written it may."""
        if kind == "remove" and path == storage.path_of(own) and not seen:
            seen.append(storage.is_replaced(own.end_offset))
            disk.remove(path)

    assert not storage.is_replaced(own.end_offset)
    disk.before_step = remove_first
    storage.install(SNAPSHOT)
    assert seen == [True]
    assert storage.is_replaced(own.end_offset)
    assert not storage.is_replaced(SNAPSHOT.end_offset)
