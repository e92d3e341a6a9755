"""The writer: changes share a transaction unless they concern one another, and nobody is told before it is kept."""

import asyncio
from functools import partial

import pytest

from riverlog.checkpoints import writer
from riverlog.checkpoints.files import changes
from riverlog.checkpoints.files.refusals import RequestRefused
from tests.support.checkpoints import MemoryJournal, MemoryTopic, opened


async def test_changes_of_different_paths_share_a_transaction() -> None:
    store = await opened(MemoryTopic())
    await asyncio.gather(*(store.make_folder(path) for path in ("/a", "/b", "/b/c", "/d", "/b")))
    assert store.storage.journal.transactions == [3, 1]  # type: ignore[attr-defined]
    assert sorted(store.storage.tree.find("/").children) == ["a", "b", "d"]  # type: ignore[union-attr]


async def test_a_full_transaction_leaves_the_rest_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "CHECKPOINT_WRITE_BYTES_MAX", 10)
    store = await opened(MemoryTopic())
    decide = partial(changes.make_folder, store.storage.tree)
    await asyncio.gather(
        *(store.storage.writer.change((path,), partial(decide, path), size=6) for path in ("/a", "/b", "/c"))
    )
    assert store.storage.journal.transactions == [1, 1, 1]  # type: ignore[attr-defined]


async def test_one_that_is_refused_harms_no_other() -> None:
    store = await opened(MemoryTopic())
    results = await asyncio.gather(store.delete("/", recursive=True), store.make_folder("/a"), return_exceptions=True)
    assert isinstance(results[0], RequestRefused)
    assert results[1] is None


async def test_after_a_failure_nothing_is_answered_for() -> None:
    topic = MemoryTopic()
    store = await opened(topic)
    assert isinstance(store.storage.journal, MemoryJournal)
    store.storage.journal.fails = True
    results = await asyncio.gather(store.make_folder("/a"), store.make_folder("/a/b"), return_exceptions=True)
    assert [result.name for result in results if isinstance(result, RequestRefused)] == ["SafeModeException"] * 2
    assert not store.usable
    assert store.storage.tree.find("/a") is None
    with pytest.raises(RequestRefused, match="try again"):
        await store.make_folder("/c")
    assert topic.ends == [0, 0]


async def test_closing_waits_for_what_is_being_written_and_refuses_the_rest() -> None:
    store = await opened(MemoryTopic())
    first = asyncio.ensure_future(store.make_folder("/a"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    second = asyncio.ensure_future(store.make_folder("/a/b"))
    await asyncio.sleep(0)
    await store.close()
    await first
    with pytest.raises(RequestRefused, match="stopping"):
        await second
