"""The health of a directory: full comes and goes, failed is for ever."""

import errno

import pytest

from riverlog.drivers.volume import Volume
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.limits import DISK_RESERVE_BYTES


class Room:
    """As much of a Disk as a volume looks at."""

    free = DISK_RESERVE_BYTES * 2

    def free_bytes(self, folder: str) -> int:
        return self.free


@pytest.fixture
def room() -> Room:
    return Room()


@pytest.fixture
def volume(room: Room) -> Volume:
    changes.clear()
    return Volume(room, "/data", changed=lambda changed: changes.append(changed.trouble))  # type: ignore[arg-type]


changes: list[str | None] = []


def test_a_healthy_directory_takes_writes(volume: Volume) -> None:
    volume.look()
    volume.check_writable()
    assert volume.trouble is None
    assert changes == []


def test_the_reserve_is_kept_and_room_comes_back(volume: Volume, room: Room) -> None:
    room.free = DISK_RESERVE_BYTES - 1
    volume.look()
    with pytest.raises(Refusal, match="is full") as refused:
        volume.check_writable()
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    volume.check_online()
    room.free = DISK_RESERVE_BYTES
    volume.look()
    volume.check_writable()
    assert len(changes) == 2


def test_a_write_without_room_makes_it_full_not_offline(volume: Volume) -> None:
    refusal = volume.failed(OSError(errno.ENOSPC, "No space left on device"))
    assert refusal.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert not volume.offline


def test_any_other_error_is_final(volume: Volume) -> None:
    volume.failed(OSError(errno.EIO, "Input/output error"))
    volume.look()
    assert volume.offline
    with pytest.raises(Refusal, match=r"offline.*Input/output error.*restart"):
        volume.check_online()
    volume.fail("again")
    assert len(changes) == 1


def test_the_slack_says_when_to_look_again(volume: Volume, room: Room) -> None:
    volume.look()
    assert volume.slack_bytes == DISK_RESERVE_BYTES
    room.free = DISK_RESERVE_BYTES + 10
    volume.look()
    assert volume.slack_bytes == 10
    assert volume.writable
