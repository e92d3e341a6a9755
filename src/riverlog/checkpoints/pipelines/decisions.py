"""The decision about a batch: `commits/N`, the output and the offsets of the group are there together, or none of them.

The RENAME to `commits/N` first keeps the file as prepared, with the members that the sink announced. Then it asks the
coordinator to end the batch's shared transaction: that is the decision. Then the file is put under its name. After a
crash in between the next store finds what was prepared and asks again, which gets the same answer; nobody got
another one meanwhile. docs/adr/0010-one-decision-per-batch.md has the reasons.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from weakref import WeakValueDictionary

from riverlog.checkpoints.files import changes
from riverlog.checkpoints.files.changes import Change
from riverlog.checkpoints.files.paths import LogFile
from riverlog.checkpoints.files.refusals import RequestRefused
from riverlog.checkpoints.files.tree import StoredFile, Tree
from riverlog.checkpoints.limits import (
    CHECKPOINT_COMMIT_BYTES_MAX,
    CHECKPOINT_PIPELINES_MAX,
    CHECKPOINT_PLANS_REMEMBERED_MAX,
    CHECKPOINT_STARTS_REMEMBERED_MAX,
)
from riverlog.checkpoints.pipelines import commit_rules
from riverlog.checkpoints.pipelines.groups import Groups
from riverlog.checkpoints.pipelines.owners import Owners, batch_of
from riverlog.checkpoints.pipelines.pipeline import (
    ONLY_WRITE,
    START_NOT_HEARD,
    Announced,
    AnnouncedWrite,
    Begun,
    Caller,
    PipelineState,
    Prepared,
    name_of,
    transactional_id_of,
)
from riverlog.checkpoints.pipelines.spark_logs import SourceOffset, source_offsets
from riverlog.checkpoints.pipelines.starting_drivers import StartingDrivers
from riverlog.checkpoints.records import FACTS, PipelineGone, content_of, write_fact
from riverlog.checkpoints.storage import FileStorage
from riverlog.client.errors import KafkaError, ProducerFenced, TransactionAborted
from riverlog.client.producer.shared_transactions import SharedBatch
from riverlog.model.ids import NO_OFFSET
from riverlog.observe.logging import get_logger


class Decisions:
    """Takes batches of pipelines from their sinks, and has the coordinator commit them."""

    def __init__(self, storage: FileStorage, owners: Owners, groups: Groups) -> None:
        self._storage = storage
        self._owners = owners
        self._groups = groups
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self.starting_drivers = StartingDrivers()
        self._starts: dict[str, int] = {}
        """Checkpoints whose queries have started since, and the offset of the last fact then."""
        self._plans: dict[str, tuple[int, bytes]] = {}
        """What `offsets/N` says that was renamed last, by checkpoint, and the offset of its record."""
        self._unpublished: dict[str, int] = {}
        """Queries without our sink, and the batch whose offsets are still to be committed for their groups."""
        self._publishing: asyncio.Task[None] | None = None
        self._log = get_logger("riverlog.checkpoints")

    async def settle_all(self) -> None:
        """Learn what became of every batch that was prepared by the store before."""
        for path in list(self._tree.pipelines):
            async with self._lock(path):
                await self._settle(path)

    async def close(self) -> None:
        if self._publishing is not None:
            self._publishing.cancel()
            await asyncio.wait([self._publishing])
        await self._owners.close()
        await self._groups.close()

    # What sinks call --------------------------------------------------------------------------------------

    async def cluster_id(self) -> str:
        """Name the cluster whose coordinators are asked; RequestRefused while nobody there answers."""
        try:
            return await self._groups.cluster_id()
        except KafkaError as problem:
            raise RequestRefused.later(f"the cluster does not answer: {problem.message}") from problem

    async def begin(self, path: str, caller: Caller, batch: int, *, timeout_ms: int) -> SharedBatch:
        """Return what a task needs to join the batch. The first call of a new run fences the runs before it."""
        async with self._lock(path):
            await self._settle(path)
            known = self._tree.pipelines.get(path)
            if known is None or known.is_new(caller):
                metadata = self._tree.file(f"{path}/metadata")
                content = None if metadata is None else await self._storage.whole(metadata)
                commit_rules.check_own(self._tree, path, caller, batch, content)
                self.starting_drivers.arrived(path)
                commit_rules.check_not_behind(self._tree, path, known, caller, batch)
                known = await self._take_over(path, known, caller, batch, timeout_ms)
            return batch_of(path, known, batch)

    async def announce(self, path: str, caller: Caller, batch: int, write: AnnouncedWrite) -> None:
        """Note the attempts of tasks that count, of each write of a batch: all that its RENAME needs to know."""
        async with self._lock(path):
            await self._settle(path)
            pipeline = self._current(path, caller)
            step = pipeline.step
            announced = step if isinstance(step, Announced) and step.batch == batch else Announced(batch, ())
            await self._note(path, pipeline.at(announced.joined_by(write)))

    async def abort(self, path: str, caller: Caller, batch: int, write: str = ONLY_WRITE) -> None:
        """Take back what the tasks of a batch wrote; of one of several writes, only that one is not committed."""
        async with self._lock(path):
            await self._settle(path)
            pipeline = self._current(path, caller)
            step = pipeline.step
            if isinstance(step, Announced) and step.batch == batch and (left := step.left_by(write)) is not None:
                await self._note(path, pipeline.at(left))
                return
            await self._note(path, pipeline.at(Begun()))
            try:
                aborted = await self._owners.abort(path, pipeline, batch)
            except KafkaError as problem:
                raise _refusal(problem, batch) from problem
            if not aborted:
                raise RequestRefused.failed(f"batch {batch} is committed, and is not taken back")

    async def abort_open(self, path: str, caller: Caller) -> None:
        """Take back what a run has left open that is over, so that no reader waits until the batch's time is up."""
        pipeline = self._tree.pipelines.get(path)
        if pipeline is None or pipeline.caller != caller:
            return
        try:
            async with self._lock(path):
                await self._settle(path)
                pipeline = self._current(path, caller)
                batch = await self._owners.open_batch(path, pipeline)
                if batch is not None:
                    await self._note(path, pipeline.at(Begun()))
                    await self._owners.abort(path, pipeline, batch)
        except (KafkaError, RequestRefused) as problem:
            self._log.warning("an open batch waits for its time-out", pipeline=name_of(path), cause=str(problem))

    async def run_settled(self, path: str, work: Callable[[], Awaitable[None]]) -> None:
        """Do something to a pipeline's checkpoint while no batch of it is in doubt."""
        async with self._lock(path):
            await self._settle(path)
            await work()

    # What Spark renames -----------------------------------------------------------------------------------

    async def rename(self, source: str, destination: str, log_file: LogFile, *, overwrite: bool) -> None:
        """Move a file to `commits/N`, and decide about the batch with it where a sink has announced it."""
        path, number = log_file.checkpoint, log_file.number
        await self.starting_drivers.wait_for(path)
        async with self._lock(path):
            await self._settle(path)
            pipeline = self._tree.pipelines.get(path)
            if pipeline is None or changes.was_renamed(self._tree, source, destination):
                await self._storage.move(source, destination, overwrite=overwrite)
                self._publish(path, number)
            elif self._tree.file(source) is None:
                raise RequestRefused.replaced(
                    f"the commit of batch {number} is of a run that was replaced by run {pipeline.caller.run}; "
                    "nothing of it is kept"
                )
            elif isinstance(pipeline.step, Announced) and pipeline.step.batch == number:
                await self._commit(path, pipeline, pipeline.step, source, destination)
            elif await self._is_same_commit(source, destination):
                pass  # a run that was replaced has put this very commit there, for a query without state
            else:
                await self._rename_without_members(path, pipeline, number, source, destination)

    async def _commit(
        self, path: str, pipeline: PipelineState, announced: Announced, source: str, destination: str
    ) -> None:
        changes.rename(self._tree, source, destination, overwrite=False)  # refused before anything is asked
        file = self._storage.file(source)
        content = await self._storage.whole(file)
        if content is None:
            raise RequestRefused.failed(f"{destination} is longer than {CHECKPOINT_COMMIT_BYTES_MAX} bytes")
        commit_rules.check_commit(self._tree, path, pipeline, announced.batch, source, content)
        facts = replace(file.facts, source=source, chunks=(), chunk_bytes=0)
        prepared = pipeline.at(Prepared(announced, facts))
        await self._note(path, prepared, content)
        await self._decide(path, prepared, content)

    async def _decide(self, path: str, pipeline: PipelineState, content: bytes) -> None:
        """Ask the coordinator, and do what it says; RequestRefused where the batch is not committed."""
        prepared = pipeline.step
        assert isinstance(prepared, Prepared)
        batch = prepared.announced.batch
        try:
            offsets = await self._groups.known(await self._planned(path, batch))
            await self._owners.commit(path, pipeline, prepared, offsets)
        except KafkaError as problem:
            refusal = _refusal(problem, batch)
            if refusal.is_for_now:
                raise refusal from problem
            if not await self._was_committed(path, pipeline, prepared, problem):
                await self._note(path, pipeline.at(Begun()))
                raise refusal from problem
        destination = f"{path}/commits/{batch}"

        def decide() -> Change:
            kept = changes.keep_decided(self._tree, destination, prepared.file, content)
            return replace(kept, records=(*kept.records, write_fact(pipeline.at(Begun()).note(path))))

        await self._storage.writer.change((prepared.file.source, destination), decide, size=len(content))

    async def _was_committed(self, path: str, pipeline: PipelineState, prepared: Prepared, problem: KafkaError) -> bool:
        """Return whether an earlier try of a refused commit was done; if not, see to it that none ever is."""
        try:
            if isinstance(problem, ProducerFenced):
                return await self._owners.is_committed(path, pipeline, prepared)
            if isinstance(problem, TransactionAborted):
                return False
            return not await self._owners.abort(path, pipeline, prepared.announced.batch)
        except ProducerFenced:
            return await self._was_committed(path, pipeline, prepared, ProducerFenced(transactional_id_of(path)))
        except KafkaError as worse:
            raise RequestRefused.later(f"a batch is in doubt, try again: {worse.message}") from worse

    async def _is_same_commit(self, source: str, destination: str) -> bool:
        """Return whether there is a commit already that is this one, byte by byte."""
        files = (self._tree.file(source), self._tree.file(destination))
        contents = [await self._storage.whole(file) for file in files if file is not None]
        return len(contents) == len(files) and contents[0] is not None and contents[0] == contents[1]

    async def _rename_without_members(
        self, path: str, pipeline: PipelineState, number: int, source: str, destination: str
    ) -> None:
        """Pass a batch that no task of our sink has written in.

        One that the current run has begun is of a run that was replaced, unless another driver has started since: that
        one has run the batch again without writing, and the batch ends without what was begun. Where a run before had
        announced it too, that one may have woken up: it is refused once, and is over then.
        """
        changes.rename(self._tree, source, destination, overwrite=False)
        try:
            is_begun = number <= pipeline.first_batch or await self._owners.open_batch(path, pipeline) == number
        except KafkaError as problem:
            raise _refusal(problem, number) from problem
        if is_begun and path in self._starts and not pipeline.has_rival:
            self._log.info("a batch ends without writes that a run before had begun", pipeline=name_of(path))
            await self._commit(path, pipeline, Announced(number, ()), source, destination)
            return
        if is_begun:
            if path in self._starts:
                await self._note(path, replace(pipeline, has_rival=False))
            raise RequestRefused.replaced(
                f"batch {number} is being written by run {pipeline.caller.run}, which has not announced it; "
                "this commit is of a run that was replaced"
            )
        await self._storage.move(source, destination, overwrite=False)
        self._publish(path, number)

    def note_start(self, path: str) -> None:
        """Note that a query starts: its driver reads `metadata`, or makes it, before any task can write state."""
        checkpoint, _, name = path.rpartition("/")
        if name == "metadata":
            self._starts.pop(checkpoint, None)
            self._starts[checkpoint] = self._tree.last_offset
            if len(self._starts) > CHECKPOINT_STARTS_REMEMBERED_MAX:
                del self._starts[next(iter(self._starts))]

    def note_plan(self, log_file: LogFile, file: StoredFile, content: bytes) -> None:
        """Remember what a batch reads, which its commit is about to ask for."""
        self._plans.pop(log_file.checkpoint, None)
        self._plans[log_file.checkpoint] = file.offset, content
        if len(self._plans) > CHECKPOINT_PLANS_REMEMBERED_MAX:
            del self._plans[next(iter(self._plans))]

    async def _settle(self, path: str) -> None:
        """Bring a decision to its end whose answer was lost, or whose store is gone."""
        pipeline = self._tree.pipelines.get(path)
        if pipeline is None or not isinstance(pipeline.step, Prepared):
            return
        record = await self._storage.journal.read(FACTS, pipeline.noted_at)
        if record is None or record.value is None:
            raise RequestRefused.later(f"what was prepared for {path} cannot be read")
        try:
            await self._decide(path, pipeline, content_of(record.value))
        except RequestRefused as refusal:
            if refusal.is_for_now:
                raise
            self._log.info("a batch that was prepared is not committed", pipeline=name_of(path), why=refusal.message)

    # Runs -------------------------------------------------------------------------------------------------

    async def _take_over(
        self, path: str, known: PipelineState | None, caller: Caller, batch: int, timeout_ms: int
    ) -> PipelineState:
        """Enter a new run as the current one: fence the tasks of those before it, and forget their commits."""
        if known is None and len(self._tree.pipelines) >= CHECKPOINT_PIPELINES_MAX:
            await self._make_room()
        try:
            owner = await self._owners.take_over(path, caller.query, timeout_ms=timeout_ms)
        except KafkaError as problem:
            raise RequestRefused.later(
                f"the pipeline {name_of(path)} cannot be taken over: {problem.message}"
            ) from problem

        def decide() -> Change:
            started_at = self._starts.pop(path, START_NOT_HEARD)
            taken = commit_rules.taken_over(self._tree, path, known, caller, owner, batch=batch, started_at=started_at)
            forgotten = changes.forget(self._tree, self._tree.temporaries.below(f"{path}/commits"))
            return replace(forgotten, records=(*forgotten.records, write_fact(taken.note(path))))

        await self._storage.writer.change((f"{path}/commits",), decide)
        self._log.info("a run took a pipeline over", pipeline=name_of(path), run=caller.run)
        return self._tree.pipelines[path]

    async def _make_room(self) -> None:
        """Forget the oldest pipeline without a checkpoint: whoever called in its name has planned nothing."""
        tree = self._tree

        def decide() -> Change:
            return Change((write_fact(PipelineGone(path)),) if commit_rules.is_unplanned(tree, path) else ())

        unplanned = [
            (pipeline.noted_at, path)
            for path, pipeline in tree.pipelines.items()
            if commit_rules.is_unplanned(tree, path) and not self._lock(path).locked()
        ]
        if not unplanned:
            raise RequestRefused.failed(
                f"the checkpoint store has {CHECKPOINT_PIPELINES_MAX} pipelines; delete some first"
            )
        path = min(unplanned)[1]
        async with self._lock(path):
            await self._storage.writer.change((f"{path}/commits",), decide)
            await self._owners.forget(path)

    def _current(self, path: str, caller: Caller) -> PipelineState:
        pipeline = self._tree.pipelines.get(path)
        if pipeline is None:
            raise RequestRefused.failed(f"nobody has begun a batch of {path}")
        pipeline.check(caller)
        return pipeline

    async def _note(self, path: str, pipeline: PipelineState, content: bytes = b"") -> None:
        def decide() -> Change:
            if path not in self._tree.pipelines:
                raise RequestRefused.failed(f"{path} was deleted")
            return Change((write_fact(pipeline.note(path, content)),))

        await self._storage.writer.change((f"{path}/commits",), decide, size=len(content))

    # What the logs of a query say -------------------------------------------------------------------------

    async def _planned(self, path: str, batch: int) -> tuple[SourceOffset, ...]:
        file = self._tree.file(f"{path}/offsets/{batch}")
        if file is None:
            return ()
        offset, content = self._plans.get(path, (NO_OFFSET, None))
        if offset != file.offset:
            content = await self._storage.whole(file)
        return () if content is None else source_offsets(content)

    def _publish(self, path: str, number: int) -> None:
        """Commit the offsets of a query's group soon; nobody waits for that."""
        self._unpublished[path] = number
        if self._publishing is None or self._publishing.done():
            self._publishing = asyncio.get_running_loop().create_task(self._publish_all())

    async def _publish_all(self) -> None:
        while self._unpublished:
            path, number = self._unpublished.popitem()
            try:
                await self._groups.commit(name_of(path), await self._planned(path, number))
            except (KafkaError, RequestRefused) as problem:
                self._log.warning("a query's offsets are not committed", query=name_of(path), cause=str(problem))

    @property
    def _tree(self) -> Tree:
        return self._storage.tree

    def _lock(self, path: str) -> asyncio.Lock:
        """Return the lock under which a pipeline is changed."""
        lock = self._locks.get(path)
        if lock is None:
            lock = self._locks[path] = asyncio.Lock()
        return lock


def _refusal(problem: KafkaError, batch: int) -> RequestRefused:
    """Return what an answer of the coordinator means for whoever renamed."""
    if isinstance(problem, ProducerFenced):
        return RequestRefused.replaced(f"batch {batch} was written by a run that was replaced; nothing of it is kept")
    if isinstance(problem, TransactionAborted):
        return RequestRefused.failed(f"batch {batch} was open for too long and is aborted; a restart writes it again")
    if problem.retriable:
        return RequestRefused.later(f"it is not known yet whether batch {batch} is committed; try again")
    return RequestRefused.failed(f"batch {batch} is not committed: {problem.message}")
