"""The store over a topic in memory, and over a whole node: the same files."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from riverlog.checkpoints.files import temporary_files
from riverlog.checkpoints.files.refusals import RequestRefused
from riverlog.checkpoints.limits import CHECKPOINT_CHUNK_BYTES
from riverlog.checkpoints.store import Store, store_over
from tests.support.checkpoints import MemoryTopic, opened, put, read
from tests.support.members import ADDRESS, a_node
from tests.support.world import Universe

LARGE = bytes(range(256)) * (3 * CHECKPOINT_CHUNK_BYTES // 512)


async def node_store(universe: Universe) -> Store:
    store = store_over(ADDRESS, universe.ports, universe.security)
    await store.open()
    return store


async def lives(make: Callable[[], Awaitable[Store]]) -> None:
    """Write, read, replace, delete, and find it all again in another store."""
    store = await make()
    await store.make_folder("/p/offsets")
    await asyncio.gather(put(store, "/p/a.sst", LARGE), put(store, "/p/b.sst", b"small"))
    await put(store, "/p/offsets/.1.tmp", b"one")
    await store.rename("/p/offsets/.1.tmp", "/p/offsets/1", overwrite=False)
    await put(store, "/p/b.sst", LARGE[::-1])
    assert await store.delete("/p/a.sst", recursive=False)
    before = [store.listing(path) for path in ("/", "/p", "/p/offsets")]
    await store.close()
    after = await make()
    assert [after.listing(path) for path in ("/", "/p", "/p/offsets")] == before
    assert await read(after, "/p/offsets/1") == b"one"
    assert await read(after, "/p/b.sst") == LARGE[::-1]
    assert (
        await read(after, "/p/b.sst", CHECKPOINT_CHUNK_BYTES + 5, 20) == LARGE[::-1][CHECKPOINT_CHUNK_BYTES + 5 :][:20]
    )
    await after.rename("/p/offsets/.1.tmp", "/p/offsets/1", overwrite=False)  # its answer was lost: it is still done
    await after.close()


async def test_files_outlive_their_store_in_memory() -> None:
    topic = MemoryTopic()
    await lives(lambda: opened(topic))


async def test_files_outlive_their_store_on_a_node() -> None:
    async with a_node() as universe:
        await lives(lambda: node_store(universe))


async def test_a_store_that_was_replaced_answers_for_nothing() -> None:
    async with a_node() as universe:
        first = await node_store(universe)
        await first.make_folder("/a")
        second = await node_store(universe)
        with pytest.raises(RequestRefused, match="try again"):
            await first.make_folder("/b")
        assert not first.usable
        await second.make_folder("/c")
        assert [each.name for each in second.listing("/")] == ["a", "c"]
        await first.close()
        await second.close()


async def test_what_is_missing_or_in_the_way_is_said() -> None:
    store = await opened(MemoryTopic())
    await put(store, "/p/1", b"one")
    for look in (store.status, store.listing, store.storage.file):
        with pytest.raises(RequestRefused, match="/p/2"):
            look("/p/2")
    with pytest.raises(RequestRefused, match="/p is a folder"):
        store.storage.file("/p")
    for path in ("/p", "/p/1/2", "/"):
        with pytest.raises(RequestRefused):
            store.upload(path, overwrite=True, user="")
    assert store.listing("/p/1")[0].size == 3
    assert store.status("/p").children == 1


async def test_a_temporary_file_outlives_its_store_until_it_is_renamed() -> None:
    topic = MemoryTopic()
    store = await opened(topic)
    await put(store, "/p/.1.tmp", b"one")
    await put(store, "/p/.2.tmp", LARGE)
    after = await opened(topic)
    await after.rename("/p/.1.tmp", "/p/1", overwrite=False)
    await after.rename("/p/.2.tmp", "/p/2", overwrite=False)
    topic.compact()
    last = await opened(topic)
    assert [each.name for each in last.listing("/p")] == ["1", "2"]
    assert await read(last, "/p/1") == b"one"
    assert await read(last, "/p/2") == LARGE


async def test_too_many_temporary_files_push_the_oldest_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(temporary_files, "CHECKPOINT_TEMPORARY_FILES_MAX", 2)
    topic = MemoryTopic()
    store = await opened(topic)
    await put(store, "/p/.0.tmp", LARGE)
    for number in (1, 2):
        await put(store, f"/p/.{number}.tmp", b"x")
    assert [each.name for each in store.listing("/p")] == [".1.tmp", ".2.tmp"]
    assert topic.chunk_owners() == set()
