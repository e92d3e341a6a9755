"""What is told about queries."""

import json

import pytest

from riverlog import Producer
from riverlog.checkpoints.files.refusals import RequestRefused
from riverlog.checkpoints.pipelines.overview import checkpoints, content_of
from riverlog.checkpoints.pipelines.progress import progress_of
from riverlog.checkpoints.store import store_over
from tests.support.checkpoints import MemoryTopic, opened, put
from tests.support.members import ADDRESS, TOPIC, a_node

PATH = "/pipelines/orders"


def plan(offset: int, watermark_ms: int = 0) -> bytes:
    source = {TOPIC: {"1": offset}, "elsewhere": {"0": 3}}
    return f"v1\n{json.dumps({'batchWatermarkMs': watermark_ms})}\n{json.dumps(source)}".encode()


async def test_checkpoints_are_found_and_added_up() -> None:
    store = await opened(MemoryTopic())
    for path in (f"{PATH}/offsets/9", f"{PATH}/offsets/10", f"{PATH}/commits/9", f"{PATH}/state/0/0/1.zip"):
        await put(store, path, b"12345")
    await put(store, f"{PATH}/sources/0/offsets/77", b"1")
    await put(store, "/other/file", b"1")
    await store.make_folder("/deep/down/new/offsets")
    assert list(checkpoints(store.storage.tree)) == ["/deep/down/new", PATH]
    content = content_of(store.storage.tree, PATH)
    assert (content.files, content.size, content.state_size) == (5, 21, 5)
    assert (content.planned, content.committed) == (10, 9)
    await store.close()


async def test_any_query_is_told_about_and_more_where_its_driver_reports() -> None:
    async with a_node() as universe:
        async with Producer(ADDRESS, ports=universe.ports) as producer:
            for _ in range(7):
                await producer.send(TOPIC, b"order", partition=1)
        store = store_over(ADDRESS, universe.ports, universe.security)
        await store.open()
        with pytest.raises(RequestRefused, match=r"^File does not exist: "):
            await store.overview.describe(PATH)
        await put(store, f"{PATH}/offsets/0", plan(2))
        await put(store, f"{PATH}/commits/0", b"v2\n{}")
        await put(store, f"{PATH}/offsets/1", plan(6, watermark_ms=5_000))
        one = await store.overview.describe(PATH)
        partition = {"topic": TOPIC, "partition": 1, "offset": 2, "end": 7, "lag": 5}
        assert one == one | {"pipeline": "orders", "batch": 0, "planned_batch": 1, "lag": 5, "partitions": [partition]}
        assert one == one | {"state": "unknown", "since_ms": one["committed_ms"], "watermark_ms": 5_000, "error": None}
        assert one == one | {"checkpoint_files": 3, "late_rows": None, "rows_per_second": None}
        now_ms = universe.ports.clock.wall_ms()
        told = {"query": "q", "run": "r", "began_ms": 1, "watermark_ms": 6_000, "late_rows": 2, "rows_per_second": 8.5}
        store.reports.note(PATH, progress_of({**told, "state": "running"}, heard_ms=now_ms))
        one = await store.overview.describe(PATH)
        assert one == one | {"state": "running", "since_ms": 1, "watermark_ms": 6_000, "late_rows": 2, "query": "q"}
        failed = {**told, "state": "failed", "ended_ms": 9, "error": "no disk", "error_ms": 9}
        store.reports.note(PATH, progress_of(failed, heard_ms=now_ms))
        (listed,) = await store.overview.describe_all()
        assert listed == listed | {"state": "failed", "since_ms": 9, "error": "no disk", "lag": 5}
        assert "partitions" not in listed
        await store.close()
