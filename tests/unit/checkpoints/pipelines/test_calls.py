"""The calls of sinks, as they come over HTTP."""

import json
from typing import Any

import pytest

from riverlog import Admin
from riverlog.checkpoints.current_store import CurrentStore
from riverlog.checkpoints.files.refusals import RequestRefused
from riverlog.checkpoints.limits import CHECKPOINT_CALL_BYTES_MAX
from riverlog.checkpoints.pipelines.calls import read_call
from riverlog.checkpoints.store import store_over
from tests.support.checkpoints import put
from tests.support.members import ADDRESS, a_node
from tests.support.pipelines import PATH
from tests.support.virtual_time import run
from tests.unit.checkpoints.files.test_webhdfs import Answer, Caller

WHO = {"query": "q", "run": "r1", "batch": 0}


async def call(caller: Caller, operation: str, body: Any) -> Answer:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return await caller.ask("POST", f"{PATH}?op={operation}", [raw[:5], raw[5:]], prefix="/riverlog/v1")


async def test_a_batch_begins_is_announced_and_may_be_taken_back() -> None:
    async with a_node() as universe:
        caller = Caller()
        caller.stores = caller.edge._stores = CurrentStore(
            lambda topic_id: store_over(ADDRESS, universe.ports, universe.security, topic_id)
        )
        async with Admin(ADDRESS, ports=universe.ports) as admin:
            expected = (await admin.describe_cluster()).cluster_id
        assert (await call(caller, "CLUSTER", {})).facts == {"cluster_id": expected}
        await put(await caller.stores.current(), f"{PATH}/offsets/0", b"v1\n{}\n")
        begun = await call(caller, "BEGIN", {**WHO, "timeout_ms": 5_000})
        assert begun.status == 200
        assert begun.facts == begun.facts | {"transactional_id": "pipeline:revenue", "incarnation": "q", "number": 0}
        assert (await call(caller, "begin", WHO)).facts == begun.facts
        assert (await call(caller, "ANNOUNCE", {**WHO, "members": [[1, 0]]})).facts == {}
        assert (await call(caller, "ABORT", WHO)).facts == {}
        assert (await call(caller, "BEGIN", {**WHO, "run": "r2"})).status == 200
        for operation in ("BEGIN", "ANNOUNCE", "ABORT"):
            refused = await call(caller, operation, {**WHO, "members": []})
            assert (refused.status, refused.exception) == (403, "AccessControlException")
        await caller.stores.close()


async def test_a_driver_reports_and_whoever_wants_to_know_is_told() -> None:
    async with a_node() as universe:
        caller = Caller()
        caller.stores = caller.edge._stores = CurrentStore(
            lambda topic_id: store_over(ADDRESS, universe.ports, universe.security, topic_id)
        )
        report = {"query": "q", "run": "r1", "state": "running", "began_ms": 5, "batch": 0, "rows": 7}
        missing = await call(caller, "PROGRESS", report)
        assert (missing.status, missing.exception) == (404, "FileNotFoundException")
        assert (await caller.ask("GET", f"{PATH}?op=DESCRIBE", prefix="/riverlog/v1")).status == 404
        await caller.ask("PUT", f"{PATH}/offsets?op=MKDIRS")
        assert (await call(caller, "STOP", {})).status == 403
        assert (await call(caller, "PROGRESS", report)).facts == {"stop": False}
        one = (await caller.ask("GET", f"{PATH}?op=DESCRIBE", prefix="/riverlog/v1")).facts
        assert one == one | {"pipeline": "revenue", "state": "running", "rows": 7, "partitions": [], "lag": None}
        listed = (await caller.ask("GET", "?op=LIST", prefix="/riverlog/v1")).facts
        assert listed == {"pipelines": [{name: value for name, value in one.items() if name != "partitions"}]}
        assert (await call(caller, "STOP", {})).facts == {}
        assert (await call(caller, "RESET", {})).status == 403
        assert (await call(caller, "PROGRESS", report)).facts == {"stop": True}
        await call(caller, "BEGIN", WHO)
        assert (await call(caller, "PROGRESS", {**report, "state": "stopped"})).facts == {"stop": False}
        assert (await call(caller, "RESET", {"start": {"edge": "earliest"}, "force": False})).facts == {}
        assert (await caller.ask("GET", "?op=LIST", prefix="/riverlog/v1")).facts == {"pipelines": []}
        await caller.stores.close()


@pytest.mark.parametrize(
    ("operation", "body"),
    [
        ("BEGIN", b"{"),
        ("BEGIN", b"[]"),
        ("BEGIN", {}),
        ("BEGIN", {**WHO, "timeout_ms": 0}),
        ("BEGIN", {**WHO, "timeout_ms": "5"}),
        ("ANNOUNCE", WHO),
        ("ANNOUNCE", b"x" * (CHECKPOINT_CALL_BYTES_MAX + 1)),
        ("LISTSTATUS", {}),
        ("PROGRESS", WHO),
        ("RESET", {"force": "yes"}),
        ("RESET", {"start": "earliest"}),
        ("DESCRIBE", {}),
    ],
)
def test_what_is_no_call_is_refused(operation: str, body: Any) -> None:
    assert run(call(Caller(), operation, body)).status == 400


def test_a_call_is_an_object() -> None:
    assert read_call(b'{"a": 1}') == {"a": 1}
    with pytest.raises(RequestRefused):
        read_call(b"[" * 100_000)
