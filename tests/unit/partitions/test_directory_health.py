"""The health of a directory: full comes and goes, failed is for ever."""

import errno

import pytest

from riverlog.model.disk_errors import MEDIUM_FAILED, FlushFailed
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.partitions.directory_health import DirectoryHealth, WithdrawnHealth
from riverlog.partitions.limits import DISK_RESERVE_BYTES


class Room:
    """As much of a Disk as a directory's health looks at."""

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
def health(room: Room) -> DirectoryHealth:
    changes.clear()
    return DirectoryHealth(room, "/data", changed=lambda changed: changes.append(changed.trouble))  # type: ignore[arg-type]


changes: list[str | None] = []


def test_a_healthy_directory_takes_writes(health: DirectoryHealth) -> None:
    health.look()
    health.check_writable()
    assert health.trouble is None
    assert changes == []


def test_the_reserve_is_kept_and_room_comes_back(health: DirectoryHealth, room: Room) -> None:
    room.free = DISK_RESERVE_BYTES - 1
    health.look()
    with pytest.raises(Refusal, match="is full") as refused:
        health.check_writable()
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    health.check_online()
    room.free = DISK_RESERVE_BYTES
    health.look()
    health.check_writable()
    assert len(changes) == 2


def test_a_write_without_room_makes_it_full_not_offline(health: DirectoryHealth) -> None:
    refusal = health.failed(OSError(errno.ENOSPC, "No space left on device"))
    assert refusal.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert not health.offline


@pytest.mark.parametrize("error", sorted({*MEDIUM_FAILED} - {errno.EIO}))
def test_what_the_medium_reports_is_final(health: DirectoryHealth, error: int) -> None:
    health.failed(OSError(error, "broken"))
    assert health.offline


@pytest.mark.parametrize("error", [errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.EACCES, errno.ENOENT])
def test_what_concerns_one_call_is_no_news_about_the_directory(health: DirectoryHealth, error: int) -> None:
    refusal = health.failed(OSError(error, "not now"))
    assert refusal.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert "try again" in refusal.message
    health.check_writable()
    assert changes == []


def test_a_flush_that_failed_is_final_whatever_the_reason(health: DirectoryHealth) -> None:
    health.failed(FlushFailed(errno.ENOMEM, "Cannot allocate memory"))
    assert health.offline


def test_a_file_that_is_gone_with_the_whole_directory_takes_it_offline(health: DirectoryHealth, room: Room) -> None:
    room.there = False
    health.failed(FileNotFoundError(errno.ENOENT, "No such file or directory"))
    with pytest.raises(Refusal, match="not there any more"):
        health.check_online()


def test_an_error_while_looking_is_judged_as_any_other(
    health: DirectoryHealth, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_room: Room, _folder: str) -> int:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(Room, "free_bytes", broken)
    health.look()
    assert health.offline


def test_a_withdrawn_partition_refuses_in_its_own_words_and_blames_no_disk() -> None:
    withdrawn = WithdrawnHealth(Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "orders-0 was deleted"))
    assert not withdrawn.writable
    with pytest.raises(Refusal, match="orders-0 was deleted"):
        withdrawn.check_writable()
    withdrawn.look()
    refusal = withdrawn.failed(OSError(errno.EIO, "of a file that is another's by now"))
    assert refusal.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_an_input_output_error_is_final(health: DirectoryHealth) -> None:
    health.failed(OSError(errno.EIO, "Input/output error"))
    health.look()
    assert health.offline
    with pytest.raises(Refusal, match=r"offline.*Input/output error.*restart"):
        health.check_online()
    health.fail("again")
    assert len(changes) == 1


def test_the_slack_says_when_to_look_again(health: DirectoryHealth, room: Room) -> None:
    health.look()
    assert health.slack_bytes == DISK_RESERVE_BYTES
    room.free = DISK_RESERVE_BYTES + 10
    health.look()
    assert health.slack_bytes == 10
    assert health.writable
