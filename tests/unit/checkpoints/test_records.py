"""The records of the topic: what was written is read, and what no store wrote is not taken for anything."""

import pytest

from riverlog.checkpoints.records import (
    CHUNKS,
    FACTS,
    Fact,
    FileFacts,
    FileGone,
    FileKept,
    FolderGone,
    FolderMade,
    Unreadable,
    UploadBegun,
    UploadEnded,
    chunk,
    chunk_owner,
    read_fact,
    write_fact,
)


@pytest.mark.parametrize(
    "fact",
    [
        FileKept("/a/ä:b", FileFacts("07", 3, 1_000, user="ada", source="/a/.b.tmp"), b"x\ny"),
        FileKept("/a", FileFacts("08", 2**40, 1_000, chunks=(1, 5, 9), chunk_bytes=7), b""),
        FileGone("/a"),
        FolderMade("/a"),
        FolderGone("/a"),
        UploadBegun("07", 12),
        UploadEnded("07"),
    ],
)
def test_a_fact_is_read_as_it_was_written(fact: Fact) -> None:
    record = write_fact(fact)
    assert record.partition == FACTS
    assert read_fact(record.key, record.value) == fact


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"{}\n"),
        (b"other", b"{}\n"),
        (b"other:/a", b"{}\n"),
        (b"file:/a", b""),
        (b"file:/a", b"[]\n"),
        (b"file:/a", b'{"id":"1"}\n'),
        (b"file:/a", b'{"id":"1","size":1,"modified_ms":1,"chunks":3}\n'),
        (b"file:\xff", b"{}\n"),
        (b"upload:1", b'{"first_offset":"x"}\n'),
        (b"file:/a", b"[" * 100_000),
        (b"file:/a", b'{"id":"1","size":"x","modified_ms":1}\n'),
        (b"file:/a", b'{"id":"1","size":-1,"modified_ms":1}\n'),
        (b"file:/a", b'{"id":"1","size":1,"modified_ms":1,"chunks":["x"]}\n'),
        (b"upload:1", b'{"first_offset":Infinity}\n'),
    ],
)
def test_what_no_store_wrote_is_unreadable(key: bytes | None, value: bytes) -> None:
    with pytest.raises(Unreadable):
        read_fact(key, value)


def test_a_chunk_tells_whose_it_is() -> None:
    record = chunk("07", 12, b"content")
    assert (record.partition, record.value) == (CHUNKS, b"content")
    assert chunk_owner(record.key) == ("07", 12)
    assert chunk_owner(b"chunk:07") is None
    assert chunk_owner(None) is None
    assert chunk_owner(b"chunk:07:" + b"9" * 5_000) is None
    assert chunk_owner(b"chunk:07:1000000") is None  # a file has not so many
