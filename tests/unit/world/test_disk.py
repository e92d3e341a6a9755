"""The real disk: what the port promises beyond the contract that it shares with the one in memory."""

import os
import stat
from pathlib import Path

import pytest

from riverlog.model.disk_errors import FlushFailed
from riverlog.world.disk import FileSystem, SystemFile


def test_files_and_folders_belong_to_their_owner_alone(tmp_path: Path) -> None:
    disk = FileSystem()
    disk.make_folder(str(tmp_path / "data"))
    disk.open(str(tmp_path / "data" / "x"), create=True).close()
    assert stat.S_IMODE(os.stat(tmp_path / "data").st_mode) == 0o700
    assert stat.S_IMODE(os.stat(tmp_path / "data" / "x").st_mode) == 0o600


def test_many_buffers_are_one_write(tmp_path: Path) -> None:
    file = FileSystem().open(str(tmp_path / "x"), create=True)
    buffers = [b"%d," % number for number in range(3_000)] + [b""]
    assert file.write(5, buffers) == sum(map(len, buffers))
    assert file.read(5, 1 << 20) == b"".join(buffers)
    assert file.read(0, 5) == bytes(5)
    file.close()
    file.close()


def test_a_lock_holds_until_it_is_released(tmp_path: Path) -> None:
    disk = FileSystem()
    held = disk.lock(str(tmp_path / ".lock"))
    with pytest.raises(BlockingIOError):
        disk.lock(str(tmp_path / ".lock"))
    held.release()
    held.release()
    disk.lock(str(tmp_path / ".lock")).release()


def test_room_is_told_in_bytes(tmp_path: Path) -> None:
    assert FileSystem().free_bytes(str(tmp_path)) > 0


def test_forgotten_bytes_are_read_again(tmp_path: Path) -> None:
    file = FileSystem().open(str(tmp_path / "file"), create=True)
    file.write(0, [b"x" * 10_000])
    file.sync()
    file.forget(0, 10_000)
    assert file.read(0, 10_000) == b"x" * 10_000
    file.close()


def test_a_sync_that_the_system_refuses_has_failed_and_one_that_was_not_asked_for_has_not(tmp_path: Path) -> None:
    read_end, write_end = os.pipe()  # what cannot be synced
    file = SystemFile("pipe", write_end)
    with pytest.raises(FlushFailed) as failed:
        file.sync()
    assert failed.value.filename == "pipe"
    file.close()
    os.close(read_end)
    with pytest.raises(FileNotFoundError) as missing:
        FileSystem().sync_folder(str(tmp_path / "missing"))
    assert not isinstance(missing.value, FlushFailed)


def test_what_the_system_has_in_memory_is_known_where_it_tells(tmp_path: Path) -> None:
    file = FileSystem().open(str(tmp_path / "file"), create=True)
    file.write(0, [b"x" * 1_000_000])
    assert file.is_cached(0, 1_000_000)
    assert file.is_cached(2_000_000, 10)  # nothing is there to wait for
    file.sync()
    file.forget(0, 1_000_000)
    if not file.is_cached(500_000, 10):  # a file system in memory keeps it, and some do not tell
        assert not file.is_cached(500_000, 100_000)
        assert file.read_cached(600_000, 100) is file.read_cached(600_000, 100_000) is None
        file.read(0, 1_000_000)
        assert file.is_cached(0, 1_000_000)
    for position, count in ((0, 100), (100, 100_000), (999_990, 100), (999_990, 100_000), (1_000_000, 10)):
        assert file.read_cached(position, count) == file.read(position, count)
    file.close()
