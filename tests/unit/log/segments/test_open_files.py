"""Open files, bounded, and closed with their last holder."""

import errno
import weakref

import pytest

from riverlog.log.segments.open_files import HeldFile, OpenFiles, write_file
from tests.support.disk import MemoryDisk


class Segment:
    """The least that can hold a file."""

    def __init__(self, disk: MemoryDisk, name: str) -> None:
        self._disk = disk
        self._name = name
        self._files = OpenFiles()
        self.held: HeldFile | None = None
        self.unsynced = False

    def use(self, files: OpenFiles) -> HeldFile:
        if self.held is None:
            self.held = files.hold(self._disk.open(self._name, create=True))
            self._files = files
            files.opened(self)
        self.held.used = True
        return self.held

    def release(self) -> None:
        self.held = None
        self._files.closed(self)


def test_a_file_closes_with_its_last_holder() -> None:
    disk = MemoryDisk()
    held = HeldFile(disk.open("/a", create=True))
    also = held
    held.close()
    assert held.write(0, [b"abc"]) == 3
    del held
    assert also.read(0, 3) == b"abc"
    assert disk.open_files == 1
    del also
    assert disk.open_files == 0


def test_the_one_not_used_lately_is_released() -> None:
    disk, files = MemoryDisk(), OpenFiles(files_max=3)
    segments = [Segment(disk, f"/{number}") for number in range(6)]
    for segment in segments:
        segment.use(files)
        segments[0].use(files)
    assert disk.open_files <= 4
    assert files.count == disk.open_files
    assert segments[0].held is not None


def test_whoever_was_released_is_forgotten() -> None:
    disk, files = MemoryDisk(), OpenFiles()
    segment = Segment(disk, "/a")
    segment.use(files)
    segment.release()
    segment.release()
    gone = weakref.ref(segment)
    del segment
    assert gone() is None
    assert files.count == disk.open_files == 0


def test_a_file_with_unsynced_bytes_stays_open() -> None:
    disk, files = MemoryDisk(), OpenFiles(files_max=2)
    segments = [Segment(disk, f"/{number}") for number in range(10)]
    for segment in segments[:4]:
        segment.unsynced = True
    for segment in segments:
        segment.use(files)
    assert all(segment.held is not None for segment in segments[:4])
    assert disk.open_files <= 7
    for segment in segments:
        segment.unsynced = False
    for _ in range(3):
        for segment in segments:
            segment.use(files)
    assert disk.open_files <= 3


def test_a_written_file_can_be_read_and_synced() -> None:
    disk = MemoryDisk()
    write_file(disk, "/file", b"longer content").sync()
    write_file(disk, "/file", b"short").sync()
    disk.sync_folder("/")
    disk.crash()
    assert disk.open("/file").read(0, 100) == b"short"


def test_where_descriptors_end_unsynced_files_are_synced_and_released() -> None:
    disk, files = MemoryDisk(), OpenFiles(descriptors_max=5)
    segments = [Segment(disk, f"/{number}") for number in range(20)]
    for segment in segments:
        segment.unsynced = True
        segment.use(files).write(0, [b"kept"])
    assert disk.open_files <= 5
    disk.sync_folder("/")
    gone = [number for number, segment in enumerate(segments) if segment.held is None]
    assert not any(segments[number].unsynced for number in gone)
    disk.crash()
    assert [disk.open(f"/{number}").read(0, 4) for number in gone] == [b"kept"] * len(gone)
    assert len(gone) >= 15


def test_files_in_other_hands_count_as_well() -> None:
    disk, files = MemoryDisk(), OpenFiles(descriptors_max=3)
    sent = [files.hold(disk.open(f"/{number}", create=True)) for number in range(3)]
    assert files.crowded
    small = write_file(disk, "/small", b"small", files)
    assert files.until_synced([small]) == []
    sent.clear()
    del small
    assert not files.crowded
    small = write_file(disk, "/small", b"small", files)
    assert files.until_synced([small]) == [small]


def test_a_sync_for_another_file_does_not_fail_for_want_of_room() -> None:
    disk, files = MemoryDisk(), OpenFiles(descriptors_max=1)
    full, other = Segment(disk, "/full"), Segment(disk, "/other")
    full.unsynced = True
    full.use(files)
    disk.fail(0, errno.ENOSPC, on=("sync",))
    with pytest.raises(OSError, match="/full could not be synced") as raised:
        other.use(files)
    assert raised.value.errno == errno.EIO
