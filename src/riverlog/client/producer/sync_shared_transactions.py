"""Shared transactions for programs without an event loop: Spark's drivers and tasks.

    with SyncMember("127.0.0.1:9092", batch, task=3, attempt=0) as member:
        member.write(records)
        membership = member.finish()

Each has a loop of its own, which runs while one of its methods is called, in the thread that calls it.
"""

import asyncio
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, Self

from riverlog.client.producer.exactly_once import NewRecord
from riverlog.client.producer.shared_transactions import (
    CommittedBatch,
    Member,
    Membership,
    SharedBatch,
    SharedTransactions,
)
from riverlog.model.ids import TopicPartition


class SyncSharedTransactions:
    """As `SharedTransactions`; use it as a context manager."""

    def __init__(self, bootstrap: str, transactional_id: str, *, incarnation: str, **options: Any) -> None:
        self._shared = SharedTransactions(bootstrap, transactional_id, incarnation=incarnation, **options)
        self._runner = asyncio.Runner()

    def committed(self) -> CommittedBatch | None:
        return self._runner.run(self._shared.committed())

    def batch(self, number: int) -> SharedBatch:
        return self._shared.batch(number)

    def commit(
        self,
        batch: SharedBatch,
        memberships: Iterable[Membership],
        *,
        group: str | None = None,
        offsets: Mapping[TopicPartition, int] | None = None,
        marker: bytes = b"",
    ) -> None:
        self._runner.run(self._shared.commit(batch, memberships, group=group, offsets=offsets, marker=marker))

    def abort(self, batch: SharedBatch) -> None:
        self._runner.run(self._shared.abort(batch))

    def __enter__(self) -> Self:
        _enter(self._runner, self._shared)
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        _exit(self._runner, self._shared)


class SyncMember:
    """As `Member`; use it as a context manager."""

    def __init__(self, bootstrap: str, batch: SharedBatch, *, task: int, attempt: int, **options: Any) -> None:
        self._member = Member(bootstrap, batch, task=task, attempt=attempt, **options)
        self._runner = asyncio.Runner()

    @property
    def is_needed(self) -> bool:
        return self._member.is_needed

    def write(self, records: Iterable[NewRecord]) -> None:
        self._runner.run(self._member.write(records))

    def flush(self) -> None:
        self._runner.run(self._member.flush())

    def finish(self) -> Membership:
        return self._runner.run(self._member.finish())

    def __enter__(self) -> Self:
        _enter(self._runner, self._member)
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        _exit(self._runner, self._member)


def _enter(runner: asyncio.Runner, part: Member | SharedTransactions) -> None:
    try:
        runner.run(part.start())
    except BaseException:
        runner.close()
        raise


def _exit(runner: asyncio.Runner, part: Member | SharedTransactions) -> None:
    try:
        runner.run(part.close())
    finally:
        runner.close()
