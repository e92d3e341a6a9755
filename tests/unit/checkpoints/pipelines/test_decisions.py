"""One decision per batch: output, offsets of the group and `commits/N` together, whatever crashes or comes back."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from riverlog import Admin, Producer
from riverlog.checkpoints.files.refusals import RequestRefused
from riverlog.checkpoints.pipelines.pipeline import Caller
from riverlog.checkpoints.store import Store
from riverlog.client.errors import ProducerFenced
from riverlog.wire.messages.end_transaction import EndTransactionRequest
from riverlog.wire.messages.init_producer_id import InitProducerIdRequest
from tests.support.checkpoints import put
from tests.support.members import ADDRESS, a_node
from tests.support.members import Member as Reader
from tests.support.mishaps import Mishaps
from tests.support.pipelines import (
    PATH,
    SOURCE,
    Run,
    committer,
    create_source,
    group_offset,
    opened,
    output,
    written_by,
)
from tests.support.world import Universe


@asynccontextmanager
async def a_store() -> AsyncIterator[tuple[Universe, Store]]:
    async with a_node() as universe:
        await create_source(universe)
        store = await opened(universe)
        yield universe, store
        await store.close()


class Crash(Exception):
    """The store's process ends here."""


class CrashPoints:
    """Counts what the store does to the world, and ends it before or after one of these acts."""

    def __init__(self, store: Store, act: int, *, after: bool) -> None:
        self._left = act
        self._after = after
        self.happened = False
        owners = store.decisions._owners
        store.storage.writer._write = self._crashing(store.storage.writer._write)
        for name in ("take_over", "commit", "abort", "open_batch", "is_committed"):
            setattr(owners, name, self._crashing(getattr(owners, name)))

    def _crashing(self, work: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def act(*arguments: Any, **named: Any) -> Any:
            if self.happened:
                raise Crash
            self._left -= 1
            if self._left < 0 and not self._after:
                self.happened = True
                raise Crash
            result = await work(*arguments, **named)
            if self._left < 0:
                self.happened = True
                raise Crash
            return result

        return act


async def until_crash(run: Run, number: int) -> bool:
    """Run a batch; tell whether it came to its end."""
    try:
        await run.batch(number)
    except (Crash, RequestRefused):
        return False
    return True


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("repeats", [False, True], ids=["a new run follows", "the RENAME is repeated"])
async def test_a_crash_at_any_act_leaves_all_of_a_batch_or_nothing(after: bool, repeats: bool) -> None:
    acts = crashed = 0
    while crashed == acts:
        async with a_node() as universe:
            await create_source(universe)
            first = await opened(universe)
            await Run(universe, first, "r0").batch(0)
            points = CrashPoints(first, acts, after=after)
            ended = await until_crash(Run(universe, first, "r1"), 1)

            second = await opened(universe)
            whose = await committer(second, 1)
            assert whose == "r1" or not ended
            assert await output(universe) == written_by("r0", 0) + (written_by("r1", 1) if whose else [])
            assert await group_offset(universe) == (20 if whose else 10)
            if repeats:
                await repeat_rename(universe, second)
            else:
                await go_on(universe, second)
            await second.close()
        acts += 1
        crashed += points.happened
    assert crashed >= 8


async def repeat_rename(universe: Universe, store: Store) -> None:
    """Do as the client does whose answer was lost: what it is told is what is so."""
    told = True
    try:
        await Run(universe, store, "r1").rename(1)
    except RequestRefused:
        told = False
    assert (await committer(store, 1) == "r1") is told
    assert await output(universe) == written_by("r0", 0) + (written_by("r1", 1) if told else [])


async def go_on(universe: Universe, store: Store) -> None:
    """Do as a new driver does: write what is not committed, and the next batch."""
    run = Run(universe, store, "r2")
    whose = await committer(store, 1)
    if whose is None:
        await run.batch(1)
    await run.batch(2)
    expected = [*written_by("r0", 0), *written_by(whose or "r2", 1), *written_by("r2", 2)]
    assert await output(universe) == expected
    assert await committer(store, 1) == (whose or "r2")
    assert await group_offset(universe) == 30


@pytest.mark.parametrize("lost", [EndTransactionRequest, InitProducerIdRequest])
async def test_lost_answers_change_nothing(lost: type, monkeypatch: pytest.MonkeyPatch) -> None:
    mishaps = Mishaps(monkeypatch)
    async with a_store() as (universe, store):
        run = Run(universe, store, "r1")
        mishaps.lost.append(lost)
        await run.batch(0)
        await run.rename(0)
        assert await output(universe) == written_by("r1", 0)


async def test_state_that_is_kept_before_the_first_task_calls_counts() -> None:
    """A task without output may be done before any other has told the store that its run has begun."""
    async with a_store() as (universe, store):
        old, new = Run(universe, store, "old"), Run(universe, store, "new")
        for number, run in enumerate((old, new)):
            store.decisions.note_start(f"{PATH}/metadata")
            await run.plan(number)
            await run.keep_state(number)
            await run.announce(number, await run.write(number))
            await run.create(number)
            await run.rename(number)
        assert await output(universe) == written_by("old", 0) + written_by("new", 1)


async def test_state_that_two_runs_have_kept_before_a_call_counts_for_neither() -> None:
    async with a_store() as (universe, store):
        old, new = Run(universe, store, "old"), Run(universe, store, "new")
        await old.begin(0)
        store.decisions.note_start(f"{PATH}/metadata")
        await old.keep_state(0)
        await old.announce(0)
        await new.keep_state(0)
        await new.announce(0, await new.write(0, stateful=False))
        for run in (old, new):
            await run.create(0)
            with pytest.raises(RequestRefused, match="names state that was written before run new took over"):
                await run.rename(0)


async def test_state_of_one_that_has_announced_nothing_does_not_matter() -> None:
    """Some operators keep all state before they give a row, so before any task of their run has called."""
    async with a_store() as (universe, store):
        old, new = Run(universe, store, "old"), Run(universe, store, "new")
        await old.begin(0)
        store.decisions.note_start(f"{PATH}/metadata")
        await new.keep_state(0)
        await old.keep_state(0)
        await new.announce(0, await new.write(0))
        await new.create(0)
        await new.rename(0)
        assert await output(universe) == written_by("new", 0)


async def test_a_rival_is_remembered_as_long_as_its_batch_is_open() -> None:
    async with a_store() as (universe, store):
        runs = first, second, third = [Run(universe, store, name) for name in ("first", "second", "third")]
        await first.announce(0, await first.write(0))
        await second.begin(0)
        await third.announce(0, await third.write(0))
        after = await opened(universe)  # the node was restarted
        for run in runs:
            run.store = after
        await first.create(0)
        with pytest.raises(RequestRefused, match="before run third took over"):
            await first.rename(0)
        await third.create(0)
        await third.rename(0)
        assert after.storage.tree.pipelines[PATH].has_rival
        await after.close()


async def test_state_that_two_runs_have_kept_before_a_call_counts_for_the_one_that_has_kept_some_behind_it() -> None:
    async with a_store() as (universe, store):
        old, new = Run(universe, store, "old"), Run(universe, store, "new")
        await old.begin(0)
        store.decisions.note_start(f"{PATH}/metadata")
        for partition in (0, 1):
            await old.keep_state(0, partition=partition)
        await old.announce(0)
        await new.keep_state(0, partition=1)  # a task without output
        await new.announce(0, await new.write(0))
        await old.create(0, partitions=2)
        with pytest.raises(RequestRefused, match="names state that was written before run new took over"):
            await old.rename(0)
        await new.create(0, partitions=2)
        await new.rename(0)
        assert await output(universe) == written_by("new", 0)


async def test_state_of_a_run_that_was_replaced_does_not_count_if_it_was_kept_behind_the_start_of_the_next() -> None:
    async with a_store() as (universe, store):
        old, new = Run(universe, store, "old"), Run(universe, store, "new")
        await old.begin(0)
        store.decisions.note_start(f"{PATH}/metadata")
        await old.keep_state(0)
        await old.announce(0)
        await new.announce(0, await new.write(0))
        await old.create(0)
        with pytest.raises(RequestRefused, match="names state that was written before run new took over"):
            await old.rename(0)
        await new.create(0)
        await new.rename(0)
        assert await output(universe) == written_by("new", 0)


async def test_a_start_that_was_not_heard_leaves_only_what_came_behind_the_call() -> None:
    async with a_store() as (universe, store):
        run = Run(universe, store, "r1")
        await run.keep_state(0)
        await run.announce(0, await run.write(0, stateful=False))
        await run.create(0)
        with pytest.raises(RequestRefused, match="names state that was written before run r1 took over"):
            await run.rename(0)


async def test_a_run_that_was_replaced_is_refused_wherever_it_wakes_up() -> None:
    async with a_store() as (universe, store):
        old, new = Run(universe, store, "old"), Run(universe, store, "new")
        await old.plan(0)
        await old.announce(0, await old.write(0))
        await old.create(0)
        await new.begin(0)
        with pytest.raises(RequestRefused, match="of a run that was replaced by run new"):
            await old.rename(0)  # its file was made before the new run began
        await old.create(0)
        with pytest.raises(RequestRefused, match="by run new, which has not announced it"):
            await old.rename(0)  # no task of the new run has joined yet
        membership = await new.write(0)
        with pytest.raises(RequestRefused, match="by run new, which has not announced it"):
            await old.rename(0)
        await new.announce(0, membership)
        for call in (old.begin(0), old.announce(0), store.decisions.abort(PATH, old.caller, 0)):
            with pytest.raises(RequestRefused, match="run old of this query was replaced by run new"):
                await call
        await old.create(0)
        with pytest.raises(RequestRefused, match="names state that was written before run new took over"):
            await old.rename(0)
        assert await output(universe) == []
        await new.create(0)
        await new.rename(0)
        assert await output(universe) == written_by("new", 0)
        assert await committer(store, 0) == "new"
        await old.create(0)
        with pytest.raises(RequestRefused, match="already exists"):
            await old.rename(0)


async def test_tasks_of_a_run_that_was_replaced_write_nothing() -> None:
    async with a_store() as (universe, store):
        old, new = Run(universe, store, "old"), Run(universe, store, "new")
        stale = await old.begin(0)
        await new.begin(0)
        old.begin = lambda _: _given(stale)  # type: ignore[method-assign]
        with pytest.raises(ProducerFenced):
            await old.write(0)


async def _given(value: Any) -> Any:
    return value


async def test_a_query_without_state_may_be_committed_by_either_run() -> None:
    async with a_store() as (universe, store):
        old, new = Run(universe, store, "old"), Run(universe, store, "new")
        await old.announce(0, await old.write(0))
        await new.announce(0, await new.write(0))
        await put(store, old.temporary(0), b"v2\n{}")
        await put(store, new.temporary(0), b"v2\n{}")
        await old.rename(0)
        assert await output(universe) == written_by("new", 0)
        await new.rename(0)  # it says the same, so the new run is not refused
        await new.batch(1)
        with pytest.raises(RequestRefused, match="was replaced by run new"):
            await old.batch(1)
        assert await output(universe) == written_by("new", 0, 1)


async def test_without_state_the_first_commit_since_the_announcement_is_the_announcers() -> None:
    async with a_store() as (universe, store):
        old, new = Run(universe, store, "old"), Run(universe, store, "new")
        await old.announce(0, await old.write(0))
        membership = await new.write(0)
        await old.create(0, stateful=False)
        await new.announce(0, membership)
        with pytest.raises(RequestRefused, match="announced by run new"):
            await old.rename(0)  # it was made before
        await new.create(0, stateful=False)
        await old.create(0, stateful=False)
        with pytest.raises(RequestRefused, match="announced by run new"):
            await old.rename(0)  # it is the second one
        await new.rename(0)
        assert await committer(store, 0) == "new"


async def test_a_run_that_starts_while_another_commits_takes_over_before_it_does() -> None:
    async with a_store() as (universe, store):
        old, new = Run(universe, store, "old"), Run(universe, store, "new")
        await old.batch(0)
        await old.plan(1)
        await old.announce(1, await old.write(1))
        await old.create(1)
        await store.make_folder(PATH)  # the driver of the new run starts
        committing = asyncio.create_task(old.rename(1))
        await new.batch(1)
        with pytest.raises(RequestRefused):
            await committing
        await new.batch(2)
        assert await output(universe) == written_by("old", 0) + written_by("new", 1, 2)


async def test_a_run_that_finds_its_first_batch_committed_is_refused_and_fences_nobody() -> None:
    async with a_store() as (universe, store):
        old, new = Run(universe, store, "old"), Run(universe, store, "new")
        await old.batch(0)
        with pytest.raises(RequestRefused, match=r"batch 0 is committed: another driver .* went on"):
            await new.begin(0)
        await old.batch(1)
        await new.batch(2)
        assert await output(universe) == written_by("old", 0, 1) + written_by("new", 2)


async def test_members_that_nobody_listed_are_aborted() -> None:
    async with a_store() as (universe, store):
        run = Run(universe, store, "r1")
        await run.write(0)
        await run.announce(0)
        await run.create(0)
        await run.rename(0)
        assert await output(universe) == []
        await run.batch(1)
        assert await output(universe) == written_by("r1", 1)


async def test_all_writes_of_a_batch_are_one_decision() -> None:
    async with a_store() as (universe, store):
        run = Run(universe, store, "r1")
        await run.plan(0)
        for write in ("1", "2", "3"):
            written = await run.write(0, task=int(write))
            for _ in range(2):
                await run.announce(0, written, write=write)
        await store.decisions.abort(PATH, run.caller, 0, "3")
        assert await output(universe) == []
        await run.create(0)
        await run.rename(0)
        assert await output(universe) == sorted(written_by("r1", 0, 0))
        await run.batch(1)
        assert await output(universe) == sorted(written_by("r1", 0, 0, 1))


async def test_a_run_that_takes_over_writes_all_of_a_batch_again() -> None:
    async with a_store() as (universe, store):
        old, new = (Run(universe, store, name) for name in ("old", "new"))
        await old.announce(0, await old.write(0, task=1), write="1")
        for write in ("1", "2"):
            await new.announce(0, await new.write(0, task=int(write)), write=write)
        await new.create(0)
        await new.rename(0)
        assert await output(universe) == sorted(written_by("new", 0, 0))


async def test_a_batch_that_was_open_for_too_long_is_not_committed() -> None:
    async with a_store() as (universe, store):
        run = Run(universe, store, "r1", timeout_ms=5_000)
        await run.announce(0, await run.write(0))
        await run.create(0)
        await asyncio.sleep(60)
        with pytest.raises(RequestRefused, match="open for too long"):
            await run.rename(0)
        assert await committer(store, 0) is None
        await Run(universe, store, "r2").batch(0)
        assert await output(universe) == written_by("r2", 0)


async def test_a_commit_that_is_refused_is_aborted_before_anybody_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    async with a_store() as (universe, store):
        run = Run(universe, store, "r1")
        await run.plan(0)
        await run.announce(0, await run.write(0))
        await run.create(0)
        with monkeypatch.context() as patched:
            patched.setattr("riverlog.checkpoints.pipelines.owners.name_of", lambda _: "")  # no group has this name
            with pytest.raises(RequestRefused, match="batch 0 is not committed: "):
                await run.rename(0)
        assert await committer(store, 0) is None
        await Run(universe, store, "r2").batch(0)
        assert await output(universe) == written_by("r2", 0)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
async def test_a_group_with_consumers_is_theirs_and_the_batch_is_not_torn(protocol: str) -> None:
    async with a_store() as (universe, store):
        run = Run(universe, store, "r1")
        consumer = Reader(universe, "c", group="revenue", topics=(SOURCE,), group_protocol=protocol)
        await asyncio.sleep(10)
        assert consumer.partitions == [0]
        with pytest.raises(RequestRefused, match=r"batch 0 is not committed: .*consumers are members of this group"):
            await run.batch(0)
        assert await committer(store, 0) is None
        assert await group_offset(universe) != 10
        assert await output(universe) == []
        await consumer.stop()
        await Run(universe, store, "r2").batch(0)
        assert await output(universe) == written_by("r2", 0)
        assert await group_offset(universe) == 10


async def test_offsets_of_a_topic_that_is_gone_hold_nobody_up() -> None:
    async with a_store() as (universe, store):
        run = Run(universe, store, "r1")
        await run.plan(0)
        await run.announce(0, await run.write(0))
        await run.create(0)
        async with Admin(ADDRESS, ports=universe.ports) as admin:
            await admin.delete_topics(SOURCE)
        await run.rename(0)
        assert await output(universe) == written_by("r1", 0)
        assert await group_offset(universe) is None


async def test_what_a_batch_reads_is_not_fetched_again_for_its_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    async with a_store() as (universe, store):
        run, fetched = Run(universe, store, "only"), []
        read = store.storage.journal.read

        async def noted(partition: int, offset: int) -> Any:
            fetched.append(offset)
            return await read(partition, offset)

        monkeypatch.setattr(store.storage.journal, "read", noted)
        await run.batch(0)
        assert (await group_offset(universe), fetched) == (10, [])
        store.decisions._plans.clear()
        await run.plan(1)
        await run.plan(2)  # which is what is remembered
        await run.announce(1, await run.write(1))
        await run.create(1)
        await run.rename(1)
        assert (await group_offset(universe), len(fetched)) == (20, 1)


async def test_what_was_aborted_by_the_sink_is_not_committed() -> None:
    async with a_store() as (universe, store):
        run = Run(universe, store, "r1")
        await run.write(0)
        await store.decisions.abort(PATH, run.caller, 0)
        assert await output(universe) == []
        await run.batch(0)
        with pytest.raises(RequestRefused, match="is committed, and is not taken back"):
            await store.decisions.abort(PATH, run.caller, 0)


@pytest.mark.parametrize("number", [0, 1])
async def test_a_batch_that_the_next_run_does_not_write_goes_on_without_what_was_begun(number: int) -> None:
    async with a_store() as (universe, store):
        old, new = Run(universe, store, "old"), Run(universe, store, "new")
        for done in range(number):
            await old.batch(done)
        await old.plan(number)
        await old.write(number)
        await new.create(number, stateful=False)
        with pytest.raises(RequestRefused, match="has not announced it"):
            await new.rename(number)  # nobody has started: it is of a run before
        await store.make_folder(PATH)
        store.decisions.note_start(f"{PATH}/metadata")
        await new.rename(number)
        assert await committer(store, number) == "new"
        assert await output(universe) == written_by("old", *range(number))
        assert await group_offset(universe) == 10 * (number + 1)
        await new.batch(number + 1)
        assert await output(universe) == written_by("old", *range(number)) + written_by("new", number + 1)


async def test_where_a_run_before_may_wake_up_a_batch_without_writes_is_refused_once() -> None:
    async with a_store() as (universe, store):
        first, second, third = (Run(universe, store, name) for name in ("first", "second", "third"))
        await first.announce(0, await first.write(0))
        await second.write(0)
        store.decisions.note_start(f"{PATH}/metadata")
        await first.create(0)
        with pytest.raises(RequestRefused, match="has not announced it"):
            await first.rename(0)
        store.decisions.note_start(f"{PATH}/metadata")
        await third.create(0, stateful=False)
        await third.rename(0)
        assert await committer(store, 0) == "third"
        assert await output(universe) == []


async def test_a_run_that_is_over_leaves_nothing_open() -> None:
    async with a_store() as (universe, store):
        old, new = Run(universe, store, "old"), Run(universe, store, "new")
        await store.decisions.abort_open(PATH, old.caller)  # it has not begun anything yet
        await old.batch(0)
        await old.write(1)
        pipeline = store.storage.tree.pipelines[PATH]
        assert await store.decisions._owners.open_batch(PATH, pipeline) == 1
        await store.decisions.abort_open(PATH, old.caller)
        assert await store.decisions._owners.open_batch(PATH, pipeline) is None
        await new.plan(1)
        await new.announce(1, await new.write(1))
        await store.decisions.abort_open(PATH, old.caller)  # late, or told twice: the batch is another run's
        await new.create(1)
        await new.rename(1)
        assert await output(universe) == [*written_by("old", 0), *written_by("new", 1)]


async def test_a_checkpoint_that_was_deleted_begins_anew_and_skips_nothing() -> None:
    async with a_store() as (universe, store):
        await Run(universe, store, "r1", query="first").batch(0)
        await store.delete(PATH, recursive=True)
        assert store.storage.tree.pipelines == {}
        with pytest.raises(RequestRefused, match="nobody has begun"):
            await Run(universe, store, "r1", query="first").announce(0)
        await Run(universe, store, "r2", query="second").batch(0)
        assert await output(universe) == [*written_by("r1", 0), *written_by("r2", 0)]


async def test_a_query_without_our_sink_is_seen_as_a_group() -> None:
    async with a_store() as (universe, store):
        async with Producer(ADDRESS, ports=universe.ports) as producer:
            await producer.send(SOURCE, b"x")
        run = Run(universe, store, "r1")
        await run.plan(0)
        await run.create(0)
        await run.rename(0)
        assert await committer(store, 0) == "r1"
        await asyncio.sleep(1)
        assert await group_offset(universe) == 10


async def test_a_batch_without_tasks_passes() -> None:
    async with a_store() as (universe, store):
        run = Run(universe, store, "r1")
        await run.batch(0)
        await run.plan(1)
        await run.create(1)
        await run.rename(1)
        await run.batch(2)
        assert await output(universe) == written_by("r1", 0, 2)


async def test_a_commit_that_is_too_long_is_refused_before_anything_is_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("pipelines.decisions", "storage"):
        monkeypatch.setattr(f"riverlog.checkpoints.{module}.CHECKPOINT_COMMIT_BYTES_MAX", 100)
    async with a_store() as (universe, store):
        run = Run(universe, store, "r1")
        await run.announce(0, await run.write(0))
        await put(store, run.temporary(0), b"x" * 101)
        with pytest.raises(RequestRefused, match="longer than 100 bytes"):
            await run.rename(0)
        await run.create(0)
        await run.rename(0)
        assert await output(universe) == written_by("r1", 0)


async def test_a_query_begins_batches_in_its_own_checkpoint_only() -> None:
    async with a_node() as universe:
        store = await opened(universe)
        run = Run(universe, store, "r1")
        await put(store, f"{PATH}/metadata", b'{"id":"q"}')
        await run.batch(0)
        for path, caller, batch in (
            ("/pipelines/elsewhere", Caller("q", "r1"), 0),
            (PATH, Caller("another", "r2"), 0),
            (PATH, Caller("q", "r2"), 1),
        ):
            with pytest.raises(RequestRefused, match="the checkpointLocation is that of the query"):
                await store.decisions.begin(path, caller, batch, timeout_ms=60_000)
        assert list(store.storage.tree.pipelines) == [PATH]
        await run.batch(1)  # nobody has taken it over
        await store.close()


async def test_names_that_nobody_has_planned_anything_for_lock_no_pipeline_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("riverlog.checkpoints.pipelines.decisions.CHECKPOINT_PIPELINES_MAX", 3)
    async with a_node() as universe:
        store = await opened(universe)
        first = Run(universe, store, "r1")
        await first.plan(0)
        await first.begin(0)
        for number in range(6):
            await put(store, f"/invented/{number}/offsets/0", b"v1\n{}\n")
            await store.decisions.begin(f"/invented/{number}", Caller("q", "r"), 0, timeout_ms=60_000)
            await store.delete(f"/invented/{number}/offsets", recursive=True)
        assert sorted(store.storage.tree.pipelines) == ["/invented/4", "/invented/5", PATH]
        for number in (4, 5):
            await store.make_folder(f"/invented/{number}/offsets")
        await put(store, "/invented/7/offsets/0", b"v1\n{}\n")
        with pytest.raises(RequestRefused, match="has 3 pipelines"):
            await store.decisions.begin("/invented/7", Caller("q", "r"), 0, timeout_ms=60_000)
        await store.close()
