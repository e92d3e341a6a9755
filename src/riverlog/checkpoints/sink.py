"""The calls of a pipeline's sink to the store that its checkpoint lies in: for Spark's tasks and drivers.

    calls = SinkCalls("webhdfs://127.0.0.1:9870/pipelines/orders")
    batch = calls.begin(query=query_id, run=run_id, batch=7)                    # in a task
    async with Member(bootstrap, batch, task=partition_id, attempt=task_attempt_id) as member:
        ...
    calls.announce(query=query_id, run=run_id, batch=7, memberships=[...])      # in the driver's commit()

The batch is committed when Spark renames its file to `commits/7`. Each call may be repeated.

A connection is kept for the next call. The store closes one that is idle for long, which is noticed only when it is
used: then the call is repeated on a new one.
"""

import time
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from riverlog.checkpoints.files.paths import check_path, parse_location
from riverlog.checkpoints.files.refusals import ACCESS_CONTROL, RequestRefused
from riverlog.checkpoints.pipelines.pipeline import ONLY_WRITE
from riverlog.checkpoints.remote import RemoteStore
from riverlog.client.producer.shared_transactions import Membership, SharedBatch

_PAUSE_SECONDS: Final = 0.2


class SinkCalls:
    """Calls one store about one pipeline; a store that is out of reach is called again for a while."""

    def __init__(self, location: str, *, seconds_max: float = 30.0) -> None:
        """Take the checkpoint's location; ValueError where it lies in no store of ours."""
        parsed = parse_location(location)
        if parsed.scheme != "webhdfs" or not parsed.address:
            raise ValueError(f"{location!r} is not in a checkpoint store: webhdfs://host:9870/pipelines/name is")
        self._store = RemoteStore(parsed.address)
        self._path = check_path(parsed.path)
        self._seconds_max = seconds_max
        self._begun: tuple[tuple[str, str], SharedBatch] | None = None

    def close(self) -> None:
        """Close the connection."""
        self._store.close()

    def cluster_id(self) -> str | None:
        """Name the cluster whose transactions the store ends; None where it is no store of riverlog's."""
        try:
            cluster_id: str = self._call("CLUSTER", {})["cluster_id"]
        except (RequestRefused, ValueError, LookupError):
            return None
        return cluster_id

    def begin(self, *, query: str, run: str, batch: int, timeout_ms: int = 60_000) -> SharedBatch:
        """Return what a task needs to join the batch; RequestRefused for a run that was replaced."""
        call = {"query": query, "run": run, "batch": batch, "timeout_ms": timeout_ms}
        begun = SharedBatch(**self._call("BEGIN", call))
        self._begun = (query, run), begun
        return begun

    def begun(self, *, query: str, run: str, batch: int) -> SharedBatch | None:
        """Return the same without asking, where a batch of this run was begun here before: they have one owner.

        Nobody joins in the name of an owner who was replaced, so who relies on this is refused a step later.
        """
        if self._begun is None or self._begun[0] != (query, run):
            return None
        return replace(self._begun[1], number=batch)

    def announce(
        self, *, query: str, run: str, batch: int, memberships: Iterable[Membership], write: str = ONLY_WRITE
    ) -> None:
        """Name the attempts of tasks that count. Those that had nothing to write, for it was committed, need not.

        A batch that is written several times has a name for each write, and all of them are committed together.
        """
        members = [each.producer for each in memberships if each.producer is not None]
        self._call("ANNOUNCE", {"query": query, "run": run, "batch": batch, "members": members, "write": write})

    def abort(self, *, query: str, run: str, batch: int, write: str = ONLY_WRITE) -> None:
        """Take back what the tasks of a batch wrote, or those of one of its writes."""
        self._call("ABORT", {"query": query, "run": run, "batch": batch, "write": write})

    def _call(self, operation: str, call: dict[str, Any]) -> dict[str, Any]:
        deadline = time.monotonic() + self._seconds_max
        while True:
            try:
                return self._ask(operation, call)
            except RequestRefused as refusal:
                if refusal.java_class == ACCESS_CONTROL:
                    raise RequestRefused.replaced(refusal.message) from None
                if not refusal.is_for_now or time.monotonic() > deadline:
                    raise
            except OSError:
                if time.monotonic() > deadline:
                    raise
            time.sleep(_PAUSE_SECONDS)

    def _ask(self, operation: str, call: dict[str, Any]) -> dict[str, Any]:
        is_kept = self._store.is_connected
        try:
            return self._store.call("POST", self._path, operation, call)
        except OSError:
            if not is_kept:
                raise
            return self._store.call("POST", self._path, operation, call)
