"""What a store has: read from its topic whatever lies there, and never mixed up with what was replaced."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from riverlog.checkpoints.files.refusals import RequestRefused
from riverlog.checkpoints.limits import CHECKPOINT_CHUNK_BYTES, CHECKPOINT_UNREADABLE_NAMED_MAX
from riverlog.checkpoints.records import CHUNKS, FACTS, CheckpointRecord
from riverlog.checkpoints.store import store_over
from tests.support.checkpoints import MemoryTopic, opened, put, read
from tests.support.members import ADDRESS, a_node
from tests.support.virtual_time import run

LARGE = bytes(range(256)) * (3 * CHECKPOINT_CHUNK_BYTES // 512)


async def test_a_crash_between_chunks_leaves_nothing() -> None:
    async with a_node() as universe:
        first, second, third = (store_over(ADDRESS, universe.ports, universe.security) for _ in range(3))
        await first.open()
        await put(first, "/p/whole.sst", LARGE)
        half = first.upload("/p/half.sst", overwrite=True, user="")
        await half.write(LARGE)
        await second.open()
        assert [each.name for each in second.listing("/p")] == ["whole.sst"]
        assert second.storage.tree.uploads == {}
        assert await read(second, "/p/whole.sst") == LARGE
        await third.open()
        tombstones = [record async for record in third.storage.journal.chunks(0) if record.value is None]
        assert len(tombstones) == len(LARGE) // CHECKPOINT_CHUNK_BYTES
        for store in (first, second, third):
            await store.close()


async def test_what_was_compacted_away_is_not_read_for_another() -> None:
    topic = MemoryTopic()
    store = await opened(topic)
    await put(store, "/p/a.sst", LARGE)
    await put(store, "/p/b", b"small")
    held = [store.storage.file("/p/a.sst"), store.storage.file("/p/b")]
    await store.delete("/p", recursive=True)
    topic.compact()
    assert topic.partitions[CHUNKS] == []
    for file in held:
        with pytest.raises(RequestRefused, match="was replaced"):
            [part async for part in store.storage.content(file, 0, 10)]


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
            topic.append(CheckpointRecord(partition, key, value))  # type: ignore[arg-type]  # others may write without a key
        again = await opened(topic)
        assert await read(again, "/kept/1") == b"one"
        assert [each.name for each in again.listing("/")][:1] == ["kept"]
        await again.close()

    run(scenario())


def test_records_that_cannot_be_read_are_counted_and_some_of_them_named(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        topic = MemoryTopic()
        for number in range(30):
            topic.append(CheckpointRecord(FACTS, b"junk:%d" % number, b"?"))
        with caplog.at_level("WARNING"):
            store = await opened(topic)
        assert store.usable

    run(scenario())
    named = [each.getMessage() for each in caplog.records if each.getMessage().endswith("passed over")]
    assert len(named) == CHECKPOINT_UNREADABLE_NAMED_MAX
    (counted,) = [each for each in caplog.records if each.getMessage().endswith("cannot be read")]
    assert "30" in repr(counted.__dict__)
