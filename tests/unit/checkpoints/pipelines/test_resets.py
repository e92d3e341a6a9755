"""A query that is reset finds nothing but where to begin; one that runs, or may, is left alone."""

import asyncio

import pytest

from riverlog.checkpoints.files.refusals import RequestRefused
from riverlog.checkpoints.limits import PROGRESS_SILENT_MS_MAX
from riverlog.checkpoints.pipelines.progress import progress_of
from riverlog.checkpoints.pipelines.starts import FILE, Start
from riverlog.checkpoints.store import Store
from tests.support.checkpoints import MemoryTopic, opened, put, read

PATH = "/pipelines/orders"


async def checkpoint(store: Store) -> None:
    for name in ("metadata", "offsets/0", "commits/0", "state/0/0/1.changelog"):
        await put(store, f"{PATH}/{name}", b"v1")


def report(store: Store, state: str, *, run: str = "r", began_ms: int = 1) -> None:
    facts = {"query": "q", "run": run, "state": state, "began_ms": began_ms}
    store.reports.note(PATH, progress_of(facts, heard_ms=store.storage.ports.clock.wall_ms()))


def names(store: Store) -> list[str]:
    return [status.name for status in store.listing(PATH)]


async def test_nothing_is_left_but_where_to_begin() -> None:
    topic = MemoryTopic()
    store = await opened(topic)
    await checkpoint(store)
    report(store, "stopped")
    await store.resets.reset(PATH, Start("earliest"), force=False)
    assert names(store) == [FILE]
    assert store.reports.of(PATH) is None
    await store.resets.reset(PATH, Start(timestamp_ms=5), force=False)
    topic.compact()
    await store.close()
    store = await opened(topic)
    assert names(store) == [FILE]
    assert await read(store, f"{PATH}/{FILE}") == b'{"timestamp_ms": 5}'
    await store.resets.reset(PATH, None, force=False)
    with pytest.raises(RequestRefused, match=f"^File does not exist: {PATH}$"):
        await store.resets.reset(PATH, None, force=True)
    await store.close()


async def test_a_query_that_runs_is_left_alone() -> None:
    store = await opened(MemoryTopic())
    with pytest.raises(RequestRefused, match=f"^File does not exist: {PATH}$"):
        await store.resets.reset(PATH, None, force=True)
    await checkpoint(store)
    report(store, "running")
    for force in (False, True):
        with pytest.raises(RequestRefused, match="orders runs; stop it first"):
            await store.resets.reset(PATH, None, force=force)
    await asyncio.sleep(PROGRESS_SILENT_MS_MAX / 1000 + 1)
    with pytest.raises(RequestRefused, match="repeat with --force"):
        await store.resets.reset(PATH, None, force=False)
    await put(store, f"{PATH}/commits/1", b"v1")
    with pytest.raises(RequestRefused, match="has just committed a batch"):
        await store.resets.reset(PATH, None, force=True)
    await asyncio.sleep(PROGRESS_SILENT_MS_MAX / 1000 + 1)
    await store.resets.reset(PATH, Start("latest"), force=True)
    assert names(store) == [FILE]
    await store.close()


async def test_a_run_that_another_with_its_clock_ahead_hides_is_left_alone() -> None:
    topic = MemoryTopic()
    store = await opened(topic)
    await checkpoint(store)
    now_ms = store.storage.ports.clock.wall_ms()
    report(store, "running", run="behind", began_ms=now_ms)
    report(store, "running", run="ahead", began_ms=now_ms + 120_000)
    report(store, "stopped", run="ahead", began_ms=now_ms + 120_000)
    for force in (False, True):
        with pytest.raises(RequestRefused, match=r"orders runs; stop it first \(run behind\)"):
            await store.resets.reset(PATH, None, force=force)
    await store.close()
    store = await opened(topic)  # nobody has reported since
    with pytest.raises(RequestRefused, match="run behind"):
        await store.resets.reset(PATH, None, force=True)
    await asyncio.sleep(PROGRESS_SILENT_MS_MAX / 1000 + 1)
    with pytest.raises(RequestRefused, match="repeat with --force"):
        await store.resets.reset(PATH, None, force=False)
    assert names(store) != []
    await store.close()
