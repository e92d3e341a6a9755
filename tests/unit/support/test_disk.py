"""The Disk port's contract, held by the real file system and by the one in memory that tests use instead."""

import errno
from pathlib import Path
from random import Random

import pytest

from riverlog.model.ports import Disk
from riverlog.world.disk import FileSystem
from tests.support.disk import MemoryDisk


@pytest.fixture(params=["memory", "system"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Disk, str]:
    """Return a disk and an empty folder on it."""
    if request.param == "system":
        return FileSystem(), str(tmp_path)
    disk = MemoryDisk()
    disk.make_folder("/somewhere")
    return disk, "/somewhere"


def test_files_are_read_and_written_at_positions(place: tuple[Disk, str]) -> None:
    disk, folder = place
    file = disk.open(f"{folder}/file", create=True)
    assert file.path == f"{folder}/file"
    assert file.size() == 0
    assert file.write(0, [b"abc", bytearray(b"def"), memoryview(b"ghi")]) == 9
    assert file.write(2, [b"XY"]) == 2
    assert file.size() == 9
    assert file.read(0, 100) == b"abXYefghi"
    assert file.read(4, 3) == b"efg"
    assert file.read(9, 5) == b""
    assert file.read(50, 5) == b""
    file.sync()
    file.close()


def test_a_write_behind_the_end_leaves_zeros_before_it(place: tuple[Disk, str]) -> None:
    disk, folder = place
    file = disk.open(f"{folder}/file", create=True)
    file.write(4, [b"end"])
    assert file.read(0, 10) == b"\x00\x00\x00\x00end"
    file.close()


def test_truncating_cuts_and_extends(place: tuple[Disk, str]) -> None:
    disk, folder = place
    file = disk.open(f"{folder}/file", create=True)
    file.write(0, [b"abcdef"])
    file.truncate(3)
    file.truncate(5)
    assert file.read(0, 10) == b"abc\x00\x00"
    file.close()


def test_many_buffers_make_one_write(place: tuple[Disk, str]) -> None:
    disk, folder = place
    file = disk.open(f"{folder}/file", create=True)
    pieces = [bytes([number % 256]) * (number % 5) for number in range(3_000)]
    assert file.write(7, pieces) == sum(map(len, pieces))
    assert file.read(7, 10_000) == b"".join(pieces)
    file.close()


def test_opening_creates_only_when_asked_and_keeps_what_is_there(place: tuple[Disk, str]) -> None:
    disk, folder = place
    with pytest.raises(FileNotFoundError):
        disk.open(f"{folder}/file")
    with pytest.raises(FileNotFoundError):
        disk.open(f"{folder}/missing/file", create=True)
    file = disk.open(f"{folder}/file", create=True)
    file.write(0, [b"kept"])
    again = disk.open(f"{folder}/file", create=True)
    assert again.read(0, 10) == b"kept"
    again.close()
    file.close()


def test_a_closed_file_is_closed_once_and_for_all(place: tuple[Disk, str]) -> None:
    disk, folder = place
    file = disk.open(f"{folder}/file", create=True)
    file.close()
    file.close()
    with pytest.raises(OSError) as failure:  # noqa: PT011 - the errno is the point
        file.read(0, 1)
    assert failure.value.errno == errno.EBADF


def test_an_open_file_outlives_its_name(place: tuple[Disk, str]) -> None:
    disk, folder = place
    file = disk.open(f"{folder}/file", create=True)
    file.write(0, [b"still here"])
    disk.rename(f"{folder}/file", f"{folder}/other")
    assert file.read(0, 20) == b"still here"
    disk.remove(f"{folder}/other")
    assert file.read(0, 20) == b"still here"
    file.close()


def test_renaming_replaces_the_target(place: tuple[Disk, str]) -> None:
    disk, folder = place
    for name in ("old", "new"):
        file = disk.open(f"{folder}/{name}", create=True)
        file.write(0, [name.encode()])
        file.close()
    disk.rename(f"{folder}/new", f"{folder}/old")
    assert disk.list(folder) == ["old"]
    file = disk.open(f"{folder}/old")
    assert file.read(0, 10) == b"new"
    file.close()
    with pytest.raises(FileNotFoundError):
        disk.rename(f"{folder}/new", f"{folder}/old")


def test_folders_are_made_listed_renamed_and_removed(place: tuple[Disk, str]) -> None:
    disk, folder = place
    disk.make_folder(f"{folder}/a/b/c")
    disk.make_folder(f"{folder}/a/b")
    disk.open(f"{folder}/a/file", create=True).close()
    assert disk.list(f"{folder}/a") == ["b", "file"]
    disk.rename(f"{folder}/a", f"{folder}/z")
    assert disk.exists(f"{folder}/z/b/c")
    assert not disk.exists(f"{folder}/a")
    disk.sync_folder(f"{folder}/z")
    disk.remove_folder(f"{folder}/z")
    assert disk.list(folder) == []


def test_what_is_not_there_is_said_to_be_missing(place: tuple[Disk, str]) -> None:
    disk, folder = place
    assert not disk.exists(f"{folder}/x/y")
    for attempt in (disk.list, disk.remove, disk.remove_folder, disk.sync_folder, disk.free_bytes):
        with pytest.raises(FileNotFoundError):
            attempt(f"{folder}/x")


def test_there_is_room(place: tuple[Disk, str]) -> None:
    disk, folder = place
    assert disk.free_bytes(folder) > 0
    assert disk.boot_id() == disk.boot_id()


def test_a_lock_has_one_holder(place: tuple[Disk, str]) -> None:
    disk, folder = place
    lock = disk.lock(f"{folder}/.lock")
    with pytest.raises(BlockingIOError):
        disk.lock(f"{folder}/.lock")
    lock.release()
    lock.release()
    disk.lock(f"{folder}/.lock").release()


# What only the disk in memory can do: forget.


def test_what_was_synced_survives_a_crash_and_the_rest_may_not() -> None:
    outcomes = set()
    for seed in range(200):
        disk = MemoryDisk(seed)
        file = disk.open("/file", create=True)
        file.write(0, [b"synced"])
        file.sync()
        disk.sync_folder("/")
        file.write(6, [b" one"])
        file.write(10, [b" two"])
        disk.crash()
        content = disk.open("/file").read(0, 100)
        assert content.startswith(b"synced")
        outcomes.add(content)
    assert {b"synced", b"synced one two", b"synced one"} <= outcomes
    assert b"synced\x00\x00\x00\x00 two" in outcomes
    assert len(outcomes) > 5


def test_names_survive_only_if_their_folder_was_synced() -> None:
    outcomes = set()
    for seed in range(40):
        disk = MemoryDisk(seed)
        disk.open("/a", create=True).sync()
        disk.sync_folder("/")
        disk.rename("/a", "/b")
        disk.open("/c", create=True).sync()
        disk.crash()
        outcomes.add(tuple(disk.list("/")))
    assert outcomes == {("a",), ("b",), ("a", "c"), ("b", "c")}


def test_changes_of_one_name_keep_their_order() -> None:
    outcomes = set()
    for seed in range(200):
        disk = MemoryDisk(seed)
        for value in (b"1", b"2"):
            file = disk.open("/file.tmp", create=True)
            file.truncate(0)
            file.write(0, [value])
            file.sync()
            disk.rename("/file.tmp", "/file")
        disk.crash()
        outcomes.add(tuple((name, disk.open(f"/{name}").read(0, 9)) for name in disk.list("/")))
    first, second = ("file", b"1"), ("file", b"2")
    assert outcomes == {(), (("file.tmp", b"1"),), (first,), (first, ("file.tmp", b"2")), (second,)}


def test_a_sync_covers_what_was_there_when_it_began() -> None:
    disk = MemoryDisk()
    file = disk.open("/file", create=True)
    file.write(0, [b"before"])

    def go_on_meanwhile(kind: str, _path: str) -> None:
        if kind == "sync":
            file.write(6, [b" meanwhile"])
        if kind == "sync_folder":
            disk.open("/other", create=True).close()

    disk.before_step = go_on_meanwhile
    file.sync()
    disk.sync_folder("/")
    assert file.read(0, 20) == b"before meanwhile"
    disk.random.random = lambda: 0.99  # type: ignore[method-assign]  # nothing but what was synced survives
    disk.crash()
    assert disk.list("/") == ["file"]
    assert disk.open("/file").read(0, 20) == b"before"


def test_a_failed_sync_has_lost_the_bytes_and_the_next_one_succeeds() -> None:
    disk = MemoryDisk()
    file = disk.open("/file", create=True)
    disk.sync_folder("/")
    file.write(0, [b"lost"])
    disk.fail(0, errno.EIO, on=("sync",))
    with pytest.raises(OSError, match="Input/output"):
        file.sync()
    assert file.read(0, 10) == b"lost"


def test_failures_come_when_they_were_asked_for() -> None:
    disk = MemoryDisk()
    file = disk.open("/file", create=True)
    disk.fail(2, errno.ENOSPC, on=("write",))
    file.write(0, [b"a"])
    file.sync()
    file.write(1, [b"b"])
    with pytest.raises(OSError, match="No space"):
        file.write(2, [b"c"])
    file.write(2, [b"c"])
    disk.fail(0, errno.EIO, lasting=True)
    for _ in range(3):
        with pytest.raises(OSError, match="Input/output"):
            file.read(0, 1)


def test_the_same_seed_forgets_the_same() -> None:
    def crashed(seed: int) -> bytes:
        disk = MemoryDisk(seed)
        file = disk.open("/file", create=True)
        disk.sync_folder("/")
        for number in range(20):
            file.write(number * 3, [Random(number).randbytes(3)])
        disk.crash()
        return disk.open("/file").read(0, 100)

    assert crashed(5) == crashed(5)
    assert len({crashed(seed) for seed in range(5)}) == 5


def test_what_is_on_the_medium_can_be_looked_at() -> None:
    disk = MemoryDisk()
    disk.make_folder("/data")
    file = disk.open("/data/log", create=True)
    file.write(0, [b"synced"])
    file.sync()
    assert disk.durable_content("/data/log") is None
    assert disk.durable_names("/data") == []
    disk.sync_folder("/")
    disk.sync_folder("/data")
    file.write(6, [b" and not"])
    assert disk.durable_content("/data/log") == b"synced"
    assert disk.durable_names("/data") == ["log"]
