"""Which reports are kept, and for how long."""

from typing import Any

import pytest

from riverlog.checkpoints.files.refusals import RequestRefused
from riverlog.checkpoints.limits import PROGRESS_KEPT_EVERY_MS
from riverlog.checkpoints.pipelines.progress import RunProgress, RunState, progress_of
from riverlog.checkpoints.records import FACTS
from riverlog.checkpoints.store import Store
from tests.support.checkpoints import MemoryTopic, opened

PATH = "/pipelines/orders"


def report(heard_ms: int = 0, **changed: Any) -> RunProgress:
    facts = {"query": "q", "run": "r1", "state": "running", "began_ms": 100, **changed}
    return progress_of(facts, heard_ms=heard_ms)


def records(topic: MemoryTopic) -> int:
    return sum(1 for record in topic.partitions[FACTS] if (record.key or b"").startswith(b"progress:"))


async def noted(store: Store, told: RunProgress) -> None:
    store.reports.note(PATH, told)
    await store.reports.close()


async def test_the_latest_is_known_and_now_and_then_kept() -> None:
    topic = MemoryTopic()
    store = await opened(topic)
    await store.make_folder(PATH)
    await noted(store, report(batch=0))
    assert records(topic) == 1
    await noted(store, report(5, batch=1))
    assert records(topic) == 1
    known = store.reports.of(PATH)
    assert known is not None
    assert known.batch == 1
    await noted(store, report(PROGRESS_KEPT_EVERY_MS, batch=2))
    assert records(topic) == 2
    await noted(store, report(PROGRESS_KEPT_EVERY_MS + 1, batch=3, state="failed", error="no disk"))
    assert records(topic) == 3
    (reading,) = store.reports.readings()
    assert (reading.pipeline, reading.running, reading.batch, reading.state_rows) == ("orders", False, 3, None)
    await store.close()
    store = await opened(topic)
    assert [(path, told.state, told.error) for path, told in store.reports.all()] == [
        (PATH, RunState.FAILED, "no disk")
    ]
    await store.close()


async def test_a_checkpoint_that_is_deleted_takes_its_reports_with_it() -> None:
    topic = MemoryTopic()
    store = await opened(topic)
    with pytest.raises(RequestRefused):
        store.reports.note(PATH, report())
    await store.make_folder(PATH)
    await noted(store, report())
    await store.delete("/pipelines", recursive=True)
    assert list(store.reports.all()) == []
    with pytest.raises(RequestRefused):
        store.reports.note(PATH, report())
    topic.compact()
    assert records(topic) == 0
    await store.close()


async def test_a_run_hears_that_it_is_to_stop_and_no_other_does() -> None:
    store = await opened(MemoryTopic())

    def told(**changed: Any) -> RunProgress:
        return report(store.storage.ports.clock.wall_ms(), **changed)

    await store.make_folder(PATH)
    with pytest.raises(RequestRefused, match="nobody reports about orders"):
        store.reports.ask_to_stop(PATH)
    assert not store.reports.note(PATH, told())
    store.reports.ask_to_stop(PATH)
    store.reports.ask_to_stop(PATH)
    assert store.reports.note(PATH, told())
    assert not store.reports.note(PATH, told(run="r0", began_ms=50))
    assert store.reports.note(PATH, told(batch=1))
    assert not store.reports.note(PATH, told(state="stopped"))
    assert not store.reports.note(PATH, told(run="r0", state="stopped"))
    with pytest.raises(RequestRefused, match="does not run: it has stopped"):
        store.reports.ask_to_stop(PATH)
    assert not store.reports.note(PATH, told(run="r2", began_ms=200))
    store.reports.ask_to_stop(PATH)
    assert not store.reports.note(PATH, told(run="r3", began_ms=300))
    assert not store.reports.note(PATH, told(run="r3", began_ms=300))
    await store.close()


async def test_reports_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("riverlog.checkpoints.pipelines.reports.PROGRESS_REPORTED_MAX", 1)
    store = await opened(MemoryTopic())
    await store.make_folder(PATH)
    await store.make_folder("/another")
    await noted(store, report())
    with pytest.raises(RequestRefused, match="no more"):
        store.reports.note("/another", report())
    await noted(store, report(batch=1))
    await store.close()


async def test_a_report_waits_for_no_topic() -> None:
    topic = MemoryTopic()
    store = await opened(topic)
    await store.make_folder(PATH)
    topic.writer += 1  # another store has taken over
    await noted(store, report(batch=0))
    await noted(store, report(1, batch=1))
    known = store.reports.of(PATH)
    assert known is not None
    assert known.batch == 1
    assert records(topic) == 0
    await store.close()


async def test_all_runs_of_a_query_hear_that_they_are_to_stop() -> None:
    store = await opened(MemoryTopic())
    await store.make_folder(PATH)

    def told(**changed: Any) -> RunProgress:
        return report(store.storage.ports.clock.wall_ms(), **changed)

    store.reports.note(PATH, told(run="r1"))
    store.reports.note(PATH, told(run="r2"))
    store.reports.ask_to_stop(PATH)
    assert store.reports.note(PATH, told(run="r1"))
    assert store.reports.note(PATH, told(run="r2"))
    assert not store.reports.note(PATH, told(run="r2", state="stopped"))
    assert store.reports.note(PATH, told(run="r1"))
    await store.close()


async def test_runs_that_have_ended_cost_no_record_for_each_report_of_another() -> None:
    topic = MemoryTopic()
    store = await opened(topic)
    await store.make_folder(PATH)
    await noted(store, report(0, run="r1", state="stopped"))
    await noted(store, report(0, run="r2"))
    assert records(topic) == 2
    for batch in range(5):
        await noted(store, report(batch, run="r2", batch=batch))
    assert records(topic) == 2
    await store.close()
