"""The store over a topic in memory, and over a whole node: the same files."""

import asyncio
import json
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from riverlog.checkpoints.files import temporary_files
from riverlog.checkpoints.files.refusals import Refused
from riverlog.checkpoints.limits import CHECKPOINT_CHUNK_BYTES, CHECKPOINT_UNREADABLE_NAMED_MAX
from riverlog.checkpoints.records import CHUNKS, FACTS, NewRecord
from riverlog.checkpoints.store import Store, store_over
from tests.support.checkpoints import MemoryTopic, opened, put, read
from tests.support.members import ADDRESS, with_node
from tests.support.virtual_time import run
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


def test_files_outlive_their_store_in_memory() -> None:
    topic = MemoryTopic()
    run(lives(lambda: opened(topic)))


def test_files_outlive_their_store_on_a_node() -> None:
    with_node(lambda universe: lives(lambda: node_store(universe)))


def test_a_store_that_was_replaced_answers_for_nothing() -> None:
    async def scenario(universe: Universe) -> None:
        first = await node_store(universe)
        await first.make_folder("/a")
        second = await node_store(universe)
        with pytest.raises(Refused, match="try again"):
            await first.make_folder("/b")
        assert not first.usable
        await second.make_folder("/c")
        assert [each.name for each in second.listing("/")] == ["a", "c"]
        await first.close()
        await second.close()

    with_node(scenario)


def test_a_crash_between_chunks_leaves_nothing() -> None:
    async def scenario(universe: Universe) -> None:
        first = await node_store(universe)
        await put(first, "/p/whole.sst", LARGE)
        half = first.upload("/p/half.sst", overwrite=True, user="")
        await half.write(LARGE)
        second = await node_store(universe)
        assert [each.name for each in second.listing("/p")] == ["whole.sst"]
        assert second.tree.uploads == {}
        assert await read(second, "/p/whole.sst") == LARGE
        third = await node_store(universe)
        tombstones = [record async for record in third.journal.chunks(0) if record.value is None]
        assert len(tombstones) == len(LARGE) // CHECKPOINT_CHUNK_BYTES
        for store in (first, second, third):
            await store.close()

    with_node(scenario)


def test_what_is_missing_or_in_the_way_is_said() -> None:
    async def scenario() -> None:
        store = await opened(MemoryTopic())
        await put(store, "/p/1", b"one")
        for look in (store.status, store.listing, store.file):
            with pytest.raises(Refused, match="/p/2"):
                look("/p/2")
        with pytest.raises(Refused, match="/p is a folder"):
            store.file("/p")
        for path in ("/p", "/p/1/2", "/"):
            with pytest.raises(Refused):
                store.upload(path, overwrite=True, user="")
        assert store.listing("/p/1")[0].size == 3
        assert store.status("/p").children == 1

    run(scenario())


def test_what_was_compacted_away_is_not_read_for_another() -> None:
    async def scenario() -> None:
        topic = MemoryTopic()
        store = await opened(topic)
        await put(store, "/p/a.sst", LARGE)
        await put(store, "/p/b", b"small")
        held = [store.file("/p/a.sst"), store.file("/p/b")]
        await store.delete("/p", recursive=True)
        topic.compact()
        assert topic.partitions[CHUNKS] == []
        for file in held:
            with pytest.raises(Refused, match="was replaced"):
                [part async for part in store.content(file, 0, 10)]

    run(scenario())


def test_a_temporary_file_outlives_its_store_until_it_is_renamed() -> None:
    async def scenario() -> None:
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

    run(scenario())


def test_too_many_temporary_files_push_the_oldest_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(temporary_files, "CHECKPOINT_TEMPORARY_FILES_MAX", 2)

    async def scenario() -> None:
        topic = MemoryTopic()
        store = await opened(topic)
        await put(store, "/p/.0.tmp", LARGE)
        for number in (1, 2):
            await put(store, f"/p/.{number}.tmp", b"x")
        assert [each.name for each in store.listing("/p")] == [".1.tmp", ".2.tmp"]
        assert topic.chunk_owners() == set()

    run(scenario())


JUNK = st.one_of(
    st.binary(max_size=50),
    st.dictionaries(
        st.sampled_from(
            ["id", "size", "modified_ms", "chunks", "query", "run", "owner", "began_at", "first_batch", "replaced",
             "batch", "members", "file", "writes", "state", "began_ms", "heard_ms", "late_rows_before", "first_offset"]
        ),
        st.one_of(st.integers(), st.text(max_size=5), st.none(), st.lists(st.integers(), max_size=3), st.floats()),
    ).map(lambda facts: json.dumps(facts).encode() + b"\ncontent"),
    st.none(),
)  # fmt: skip
KEYS = st.one_of(
    st.none(),
    st.binary(max_size=20),
    st.tuples(
        st.sampled_from(["file", "folder", "upload", "pipeline", "progress", "chunk", "journal"]),
        st.sampled_from(["", "/", "/p", "/p/1", "/p/.1.tmp", "/p/1/2", "/..", "07", "07:5", "07:99999999999999999999"]),
    ).map(lambda parts: ":".join(parts).encode()),
)


@given(st.lists(st.tuples(st.sampled_from([FACTS, CHUNKS]), KEYS, JUNK), max_size=30))
@settings(max_examples=200, deadline=None)
def test_what_anybody_may_have_written_to_the_topic_ends_no_store(
    junk: list[tuple[int, bytes | None, bytes | None]],
) -> None:
    async def scenario() -> None:
        topic = MemoryTopic()
        store = await opened(topic)
        await put(store, "/kept/1", b"one")
        for partition, key, value in junk:
            topic.append(NewRecord(partition, key, value))  # type: ignore[arg-type]  # others may write without a key
        again = await opened(topic)
        assert await read(again, "/kept/1") == b"one"
        assert [each.name for each in again.listing("/")][:1] == ["kept"]
        await again.close()

    run(scenario())


def test_records_that_cannot_be_read_are_counted_and_some_of_them_named(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        topic = MemoryTopic()
        for number in range(30):
            topic.append(NewRecord(FACTS, b"junk:%d" % number, b"?"))
        with caplog.at_level("WARNING"):
            store = await opened(topic)
        assert store.usable

    run(scenario())
    named = [each.getMessage() for each in caplog.records if each.getMessage().endswith("passed over")]
    assert len(named) == CHECKPOINT_UNREADABLE_NAMED_MAX
    (counted,) = [each for each in caplog.records if each.getMessage().endswith("cannot be read")]
    assert "30" in repr(counted.__dict__)
