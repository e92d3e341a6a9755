"""Files on their way in."""

import pytest

from riverlog.checkpoints.files import temporary_files, upload
from riverlog.checkpoints.files.refusals import RequestRefused
from riverlog.checkpoints.limits import CHECKPOINT_CHUNK_BYTES, CHECKPOINT_INLINE_BYTES_MAX
from riverlog.checkpoints.records import CHUNKS
from tests.support.checkpoints import MemoryTopic, opened, put, read

SMALL = b"s" * CHECKPOINT_INLINE_BYTES_MAX
LARGE = b"l" * (2 * CHECKPOINT_CHUNK_BYTES + 1)


async def test_small_temporary_files_are_one_record_and_their_rename_two_more() -> None:
    topic = MemoryTopic()
    store = await opened(topic)
    await put(store, "/p/.1.tmp", SMALL)
    assert topic.ends == [1, 0]
    assert await read(store, "/p/.1.tmp") == SMALL
    await store.rename("/p/.1.tmp", "/p/1", overwrite=False)
    assert topic.ends == [3, 0]
    assert await read(store, "/p/1") == SMALL


async def test_large_ones_go_to_the_topic_as_they_come_and_are_not_seen_before_they_are_whole() -> None:
    topic = MemoryTopic()
    store = await opened(topic)
    incoming = store.upload("/p/a.sst", overwrite=True, user="")
    await incoming.write(LARGE)
    assert topic.ends[CHUNKS] == 2
    assert store.storage.tree.find("/p") is None
    await incoming.finish()
    assert topic.ends[CHUNKS] == 3
    assert await read(store, "/p/a.sst") == LARGE
    assert await read(store, "/p/a.sst", CHECKPOINT_CHUNK_BYTES - 1, 3) == b"lll"


async def test_what_is_discarded_leaves_tombstones_alone() -> None:
    topic = MemoryTopic()
    store = await opened(topic)
    incoming = store.upload("/p/a.sst", overwrite=True, user="")
    await incoming.write(LARGE)
    await incoming.discard()
    assert topic.chunk_owners() == set()
    assert store.storage.tree.uploads == {}


async def test_where_memory_is_short_a_small_one_is_written_as_a_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(temporary_files, "CHECKPOINT_TEMPORARY_BYTES_MAX", 10)
    topic = MemoryTopic()
    store = await opened(topic)
    await put(store, "/p/.1.tmp", b"0123456789")
    await put(store, "/p/.2.tmp", b"one more")
    assert topic.ends[CHUNKS] == 1
    assert store.storage.tree.temporaries.bytes == 10
    await store.rename("/p/.2.tmp", "/p/2", overwrite=False)
    assert await read(store, "/p/2") == b"one more"


async def test_a_file_that_is_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upload, "CHECKPOINT_CHUNKS_MAX", 1)
    topic = MemoryTopic()
    store = await opened(topic)
    with pytest.raises(RequestRefused, match="longer than 1 chunks"):
        await put(store, "/p/a.sst", LARGE)
    assert topic.chunk_owners() == set()
