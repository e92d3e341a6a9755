"""Small files that are replaced as a whole, in Kafka's text formats."""

import errno
from uuid import UUID

import pytest

from riverlog.log.checkpoint import (
    BadCheckpoint,
    decode_lines,
    decode_offsets,
    decode_topic_id,
    encode_lines,
    encode_offsets,
    encode_topic_id,
    read_file,
    replace_file,
)
from riverlog.model.ids import Offset, TopicId, TopicPartition
from tests.support.disk import Crashed, MemoryDisk

UUID_ = UUID("0d1e2f30-4152-6374-8596-a7b8c9daebfc")


def test_offsets_have_kafkas_form() -> None:
    offsets = {TopicPartition("orders", 10): Offset(7), TopicPartition("a-b", 0): Offset(2**40)}
    content = encode_offsets(offsets)
    assert content == b"0\n2\na-b 0 1099511627776\norders 10 7\n"
    assert decode_offsets(content, "x") == offsets


@pytest.mark.parametrize(
    "content", [b"", b"0\n", b"1\n0\n", b"0\n2\norders 0 1\n", b"0\nx\n", b"0\n1\norders 0\n", b"0\n1\n\xff 0 1\n"]
)
def test_a_damaged_file_is_named_in_one_sentence(content: bytes) -> None:
    with pytest.raises(BadCheckpoint, match="some/file"):
        decode_offsets(content, "some/file")


def test_lines_are_counted() -> None:
    assert encode_lines([]) == b"0\n0\n"
    assert decode_lines(encode_lines(["a", "b"]), "x") == ["a", "b"]


def test_a_topic_id_has_kafkas_form() -> None:
    content = encode_topic_id(TopicId(UUID_))
    assert content == b"version: 0\ntopic_id: DR4vMEFSY3SFlqe4ydrr_A\n"
    assert decode_topic_id(content, "x") == UUID_
    for damaged in (b"", content[:20], b"version: 0\ntopic_id: abc\n"):
        with pytest.raises(BadCheckpoint):
            decode_topic_id(damaged, "x")


def test_a_missing_file_reads_as_none() -> None:
    assert read_file(MemoryDisk(), "/nothing") is None


def test_a_crash_leaves_the_old_content_or_the_new_one() -> None:
    outcomes = set()
    for seed in range(30):
        for steps in range(6):
            disk = MemoryDisk(seed)
            replace_file(disk, "/file", b"old")
            disk.crash_after(steps)
            try:
                replace_file(disk, "/file", b"newer")
            except Crashed:
                done = False
            else:
                done = True
            disk.crash()
            content = read_file(disk, "/file")
            assert content == b"newer" if done else content in (b"old", b"newer")
            outcomes.add(content)
    assert outcomes == {b"old", b"newer"}


def test_a_failure_leaves_the_old_content() -> None:
    disk = MemoryDisk()
    replace_file(disk, "/file", b"old")
    disk.fail(0, errno.ENOSPC, on=("write",))
    with pytest.raises(OSError, match="No space"):
        replace_file(disk, "/file", b"new")
    assert read_file(disk, "/file") == b"old"
