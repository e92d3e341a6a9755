"""The health of a directory: full comes and goes, failed is for ever."""

import errno

import pytest

from riverlog.model.disk_errors import MEDIUM_FAILED, FlushFailed
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.partitions.directory_health import DirectoryHealth, Withdrawn
from riverlog.partitions.limits import DISK_RESERVE_BYTES


class Room:
    """As much of a Disk as a volume looks at."""

    free = DISK_RESERVE_BYTES * 2

    there = True

    def free_bytes(self, folder: str) -> int:
        return self.free

    def exists(self, path: str) -> bool:
        return self.there


@pytest.fixture
def room() -> Room:
    return Room()


@pytest.fixture
def volume(room: Room) -> DirectoryHealth:
    changes.clear()
    return DirectoryHealth(room, "/data", changed=lambda changed: changes.append(changed.trouble))  # type: ignore[arg-type]


changes: list[str | None] = []


def test_a_healthy_directory_takes_writes(volume: DirectoryHealth) -> None:
    volume.look()
    volume.check_writable()
    assert volume.trouble is None
    assert changes == []


def test_the_reserve_is_kept_and_room_comes_back(volume: DirectoryHealth, room: Room) -> None:
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


def test_a_write_without_room_makes_it_full_not_offline(volume: DirectoryHealth) -> None:
    refusal = volume.failed(OSError(errno.ENOSPC, "No space left on device"))
    assert refusal.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert not volume.offline


@pytest.mark.parametrize("error", sorted({*MEDIUM_FAILED} - {errno.EIO}))
def test_what_the_medium_reports_is_final(volume: DirectoryHealth, error: int) -> None:
    volume.failed(OSError(error, "broken"))
    assert volume.offline


@pytest.mark.parametrize("error", [errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.EACCES, errno.ENOENT])
def test_what_concerns_one_call_is_no_news_about_the_directory(volume: DirectoryHealth, error: int) -> None:
    refusal = volume.failed(OSError(error, "not now"))
    assert refusal.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert "try again" in refusal.message
    volume.check_writable()
    assert changes == []


def test_a_flush_that_failed_is_final_whatever_the_reason(volume: DirectoryHealth) -> None:
    volume.failed(FlushFailed(errno.ENOMEM, "Cannot allocate memory"))
    assert volume.offline


def test_a_file_that_is_gone_with_the_whole_directory_takes_it_offline(volume: DirectoryHealth, room: Room) -> None:
    room.there = False
    volume.failed(FileNotFoundError(errno.ENOENT, "No such file or directory"))
    with pytest.raises(Refusal, match="not there any more"):
        volume.check_online()


def test_an_error_while_looking_is_judged_as_any_other(
    volume: DirectoryHealth, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_room: Room, _folder: str) -> int:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(Room, "free_bytes", broken)
    volume.look()
    assert volume.offline


def test_a_withdrawn_partition_refuses_in_its_own_words_and_blames_no_disk() -> None:
    withdrawn = Withdrawn(Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "orders-0 was deleted"))
    assert not withdrawn.writable
    with pytest.raises(Refusal, match="orders-0 was deleted"):
        withdrawn.check_writable()
    withdrawn.look()
    refusal = withdrawn.failed(OSError(errno.EIO, "of a file that is another's by now"))
    assert refusal.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_an_input_output_error_is_final(volume: DirectoryHealth) -> None:
    volume.failed(OSError(errno.EIO, "Input/output error"))
    volume.look()
    assert volume.offline
    with pytest.raises(Refusal, match=r"offline.*Input/output error.*restart"):
        volume.check_online()
    volume.fail("again")
    assert len(changes) == 1


def test_the_slack_says_when_to_look_again(volume: DirectoryHealth, room: Room) -> None:
    volume.look()
    assert volume.slack_bytes == DISK_RESERVE_BYTES
    room.free = DISK_RESERVE_BYTES + 10
    volume.look()
    assert volume.slack_bytes == 10
    assert volume.writable
