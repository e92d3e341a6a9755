"""The one writer of a checkpoint store: changes that do not concern one another share a transaction.

A change is decided on the tree as it is kept, at the moment in which it is written, and the tree changes when its
records are kept. Changes of paths that are the same, or lie in one another, wait for one another. After a failure
nothing is known: every change that waits is refused, and so are all that follow.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from riverlog.checkpoints.files.changes import Change
from riverlog.checkpoints.files.paths import related_to_any
from riverlog.checkpoints.files.refusals import RequestRefused
from riverlog.checkpoints.files.tree import Tree
from riverlog.checkpoints.limits import CHECKPOINT_WRITE_BYTES_MAX
from riverlog.checkpoints.records import FACTS, CheckpointRecord, read_fact

WriteRecords = Callable[[Sequence[CheckpointRecord]], Awaitable[list[int]]]


@dataclass(frozen=True, slots=True)
class ChangeResult:
    """What became of a change: the answer, and where its records are."""

    answer: bool
    offsets: list[int]


@dataclass(slots=True)
class _PendingChange:
    paths: tuple[str, ...]
    decide: Callable[[], Change]
    done: "asyncio.Future[ChangeResult]"
    size: int
    decided: Change = field(default_factory=Change)


class ChangeWriter:
    """Takes changes from many requests and writes them."""

    def __init__(self, tree: Tree, write: WriteRecords, *, failed: Callable[[Exception], None]) -> None:
        self._tree = tree
        self._write = write
        self._failed = failed
        self._waiting: list[_PendingChange] = []
        self._writing: asyncio.Task[None] | None = None
        self._broken = False

    async def change(self, paths: tuple[str, ...], decide: Callable[[], Change], *, size: int = 0) -> ChangeResult:
        """Write what `decide` says once no other change of these paths is under way; return when it is kept.

        `size` says about how many bytes that will be. What `decide` raises is raised here.
        """
        if self._broken:
            raise _unknown()
        loop = asyncio.get_running_loop()
        change = _PendingChange(paths, decide, loop.create_future(), size)
        self._waiting.append(change)
        if self._writing is None:
            self._writing = loop.create_task(self._write_all())
        return await asyncio.shield(change.done)

    def give_up(self) -> None:
        """Take no more changes, and wait no longer for what is being written: nobody will keep it."""
        self._break(_unknown())
        if self._writing is not None:
            self._writing.cancel()

    async def close(self) -> None:
        """Take no more changes, and wait for the end of the transaction under way."""
        self._break(RequestRefused.later("the checkpoint store is stopping; try again"))
        if self._writing is not None:
            await asyncio.wait([self._writing])

    async def _write_all(self) -> None:
        try:
            while self._waiting:
                await self._write_group(self._next_group())
        finally:
            self._writing = None

    async def _write_group(self, group: list[_PendingChange]) -> None:
        records = [record for change in group for record in change.decided.records]
        try:
            offsets = await self._write(records) if records else []
        except asyncio.CancelledError:
            for change in group:
                _fail(change, _unknown())
            raise
        except Exception as problem:
            for change in group:
                _fail(change, _unknown())
            self._break(_unknown())
            self._failed(problem)
            return
        # Nothing else runs from here to the end: readers see all of a change, or nothing of it.
        remaining = iter(offsets)
        for change in group:
            own = [next(remaining) for _ in change.decided.records]
            self._apply(change.decided, own)
            if not change.done.done():
                change.done.set_result(ChangeResult(change.decided.answer, own))

    def _next_group(self) -> list[_PendingChange]:
        """Decide on changes until the transaction is full; what concerns a path of it waits for the next one."""
        group: list[_PendingChange] = []
        waiting: list[_PendingChange] = []
        taken: list[str] = []
        room = CHECKPOINT_WRITE_BYTES_MAX
        for change in self._waiting:
            if change.done.done():
                continue
            if related_to_any(change.paths, taken) or (group and change.size > room):
                taken += change.paths  # those behind it wait too: the order of changes of one path is kept
                waiting.append(change)
                continue
            try:
                change.decided = change.decide()
            except RequestRefused as problem:
                _fail(change, problem)
                continue
            taken += change.paths
            room -= change.size
            group.append(change)
        self._waiting = waiting
        return group

    def _apply(self, decided: Change, offsets: list[int]) -> None:
        for record, offset in zip(decided.records, offsets, strict=True):
            if record.partition == FACTS:
                self._tree.apply(read_fact(record.key, record.value), offset)

    def _break(self, problem: RequestRefused) -> None:
        self._broken = True
        waiting, self._waiting = self._waiting, []
        for change in waiting:
            _fail(change, problem)


def _fail(change: _PendingChange, problem: RequestRefused) -> None:
    if not change.done.done():
        change.done.set_exception(problem)
        change.done.exception()  # whoever asked may have gone


def _unknown() -> RequestRefused:
    return RequestRefused.later("the checkpoint store cannot say whether this was kept; try again")
