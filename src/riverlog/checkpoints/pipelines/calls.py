"""What is called beside WebHDFS, with JSON both ways, at /riverlog/v1/<checkpoint>.

Sinks POST op=CLUSTER, BEGIN, ANNOUNCE and ABORT; drivers POST op=PROGRESS, whose answer says when they are to stop.
GET op=DESCRIBE describes a query, GET op=LIST at the root all of them; POST op=STOP and op=RESET stop and reset one.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from riverlog.checkpoints.files.refusals import RequestRefused
from riverlog.checkpoints.pipelines.pipeline import AnnouncedWrite, Caller, batch_of, caller_of, members_of, write_of
from riverlog.checkpoints.pipelines.progress import RunState, progress_of
from riverlog.checkpoints.pipelines.starts import start_of
from riverlog.checkpoints.store import Store
from riverlog.client.errors import KafkaError

_TIMEOUT_MS = 60_000


def read_call(body: bytes) -> dict[str, Any]:
    """Read a call; RequestRefused where it is none. One that only asks says nothing."""
    if not body:
        return {}
    try:
        call = json.loads(body)
    except (ValueError, RecursionError):
        raise RequestRefused.illegal("the call is not JSON") from None
    if not isinstance(call, dict):
        raise RequestRefused.illegal("the call is no JSON object")
    return call


async def cluster(_path: str, _call: dict[str, Any], store: Store) -> dict[str, object]:
    """Name the cluster whose transactions this store ends: a sink that writes to another one ends its own."""
    return {"cluster_id": await store.decisions.cluster_id()}


async def begin(path: str, call: dict[str, Any], store: Store) -> dict[str, object]:
    """Enter a task in a batch: query, run, batch, perhaps timeout_ms -> the batch's name and owner."""
    timeout_ms = call.get("timeout_ms", _TIMEOUT_MS)
    if not isinstance(timeout_ms, int) or not 0 < timeout_ms < 2**31:
        raise RequestRefused.illegal("timeout_ms is a number of milliseconds")
    batch = await store.decisions.begin(path, caller_of(call), batch_of(call), timeout_ms=timeout_ms)
    return asdict(batch)


async def announce(path: str, call: dict[str, Any], store: Store) -> dict[str, object]:
    """Name the members of a batch that count: query, run, batch, members, perhaps write."""
    write = AnnouncedWrite(write_of(call), members_of(call.get("members")))
    await store.decisions.announce(path, caller_of(call), batch_of(call), write)
    return {}


async def abort(path: str, call: dict[str, Any], store: Store) -> dict[str, object]:
    """Take a batch back, or one of its writes: query, run, batch, perhaps write."""
    await store.decisions.abort(path, caller_of(call), batch_of(call), write_of(call))
    return {}


async def progress(path: str, call: dict[str, Any], store: Store) -> dict[str, object]:
    """Take a driver's report about its query, and answer whether it is to stop. The last one leaves nothing open."""
    report = progress_of(call, heard_ms=store.storage.ports.clock.wall_ms())
    is_to_stop = store.reports.note(path, report)
    if report.state is not RunState.RUNNING:
        await store.decisions.abort_open(path, Caller(report.query, report.run))
    return {"stop": is_to_stop}


async def stop(path: str, _: dict[str, Any], store: Store) -> dict[str, object]:
    """Ask a query's driver to stop it; it has stopped when it reports so."""
    store.reports.ask_to_stop(path)
    return {}


async def reset(path: str, call: dict[str, Any], store: Store) -> dict[str, object]:
    """Reset a query: perhaps start, where it begins; perhaps force, whatever is known about it."""
    if not isinstance(call.get("force", False), bool):
        raise RequestRefused.illegal("force is true or false")
    start = call.get("start")
    await store.resets.reset(path, None if start is None else start_of(start), force=call.get("force", False))
    return {}


async def describe(path: str, _: dict[str, Any], store: Store) -> dict[str, object]:
    """Describe one query."""
    with _asking_for_ends():
        return await store.overview.describe(path)


async def list_all(_path: str, _call: dict[str, Any], store: Store) -> dict[str, object]:
    """Describe all queries."""
    with _asking_for_ends():
        return {"pipelines": await store.overview.describe_all()}


@contextmanager
def _asking_for_ends() -> Iterator[None]:
    try:
        yield
    except KafkaError as problem:
        raise RequestRefused.later(f"the ends of topics cannot be asked for, try again: {problem.message}") from problem


CALLS = {
    "POST CLUSTER": cluster,
    "POST BEGIN": begin,
    "POST ANNOUNCE": announce,
    "POST ABORT": abort,
    "POST PROGRESS": progress,
    "POST STOP": stop,
    "POST RESET": reset,
    "GET DESCRIBE": describe,
    "GET LIST": list_all,
}
