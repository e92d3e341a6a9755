"""Shared transactions as owners and members see them, against a whole node: exactly once, whatever ends in between."""

import asyncio
import pickle
from collections.abc import AsyncIterator
from typing import Any

import pytest

from riverlog import Admin, Consumer, Member, NewRecord, Producer, SharedTransactions
from riverlog.client.errors import KafkaError, ProducerFenced, TimedOut, TransactionAborted
from riverlog.client.producer.deliveries import EncodedBatch
from riverlog.client.producer.shared_transactions import CommittedBatch, Membership, SharedBatch
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import TopicPartition
from riverlog.records.record import BatchBuilder
from riverlog.wire.messages.end_transaction import EndTransactionRequest
from riverlog.wire.messages.join_transaction import JoinTransactionRequest
from tests.support.members import ADDRESS, TOPIC, a_node
from tests.support.mishaps import Mishaps
from tests.support.world import Universe

ZERO = TopicPartition(TOPIC, 0)
GROUP = "pipeline"


def owner(universe: Universe, incarnation: str = "a", **settings: Any) -> SharedTransactions:
    return SharedTransactions(ADDRESS, "orders", incarnation=incarnation, ports=universe.ports, **settings)


def member(universe: Universe, batch: SharedBatch, task: int = 0, attempt: int = 0) -> Member:
    return Member(ADDRESS, batch, task=task, attempt=attempt, ports=universe.ports)


def records(*values: bytes) -> list[NewRecord]:
    """Return a record for each value, in two partitions in turn."""
    return [NewRecord(TOPIC, value, partition=index % 2) for index, value in enumerate(values)]


async def written(universe: Universe, batch: SharedBatch, *values: bytes, **who: int) -> Membership:
    """Write a task's part of a batch."""
    async with member(universe, batch, **who) as part:
        await part.write(records(*values))
        return await part.finish()


async def read(universe: Universe, isolation: Any = "read_committed") -> list[bytes | None]:
    """Read the whole topic, up to where this isolation level may read."""
    async with Consumer(ADDRESS, isolation_level=isolation, ports=universe.ports) as consumer:
        assigned = [TopicPartition(TOPIC, index) for index in range(4)]
        consumer.assign(assigned)
        await consumer.seek_to_beginning()
        ends = await consumer.end_offsets(assigned)
        values: list[bytes | None] = []
        while any((consumer.held()[at] or 0) < end for at, end in ends.items()):
            values += [record.value for record in await consumer.poll(100)]
        return sorted(values, key=lambda value: value or b"")


async def until_read(universe: Universe, *values: bytes) -> None:
    """Wait for markers that are on their way."""
    async with asyncio.timeout(10):
        while await read(universe) != list(values):
            pass


async def offset_of_group(universe: Universe) -> int | None:
    async with Consumer(ADDRESS, group=GROUP, auto_commit=False, ports=universe.ports) as consumer:
        found = (await consumer.committed(ZERO))[ZERO]
        return None if found is None else found.offset


@pytest.fixture
def mishaps(monkeypatch: pytest.MonkeyPatch) -> Mishaps:
    return Mishaps(monkeypatch)


async def test_a_member_sends_batches_that_are_encoded_already() -> None:
    async with a_node() as universe:
        async with owner(universe) as pipeline:
            batch = pipeline.batch(0)
            async with member(universe, batch) as part:
                assert await part.partitions(TOPIC) == 4
                builder = BatchBuilder(transactional=True)
                builder.append(None, b"one", timestamp_ms=1)
                await part.send_encoded(EncodedBatch(ZERO, memoryview(builder.build()), 1))
                membership = await part.finish()
            assert await read(universe) == []
            await pipeline.commit(batch, [membership])
            async with member(universe, batch) as again:
                assert not again.is_needed
                await again.send_encoded(EncodedBatch(ZERO, memoryview(builder.build()), 1))
        assert await read(universe) == [b"one"]


async def test_an_owner_goes_on_in_the_name_of_one_before() -> None:
    async with a_node() as universe:
        async with owner(universe) as first:
            batch = first.batch(0)
        name = (batch.owner_id, batch.owner_epoch)
        async with owner(universe, owner=name) as second:
            assert second.batch(0) == batch
            assert await second.open_batch() is None
            membership = await written(universe, batch, b"a1")
            assert await second.open_batch() == 0
            await second.commit(batch, [membership])
        async with owner(universe):
            pass
        async with owner(universe, owner=name) as replaced:
            with pytest.raises(ProducerFenced):
                await replaced.commit(replaced.batch(1), [])


async def test_listed_members_count_and_no_others() -> None:
    async with a_node() as universe:
        async with owner(universe) as pipeline:
            assert await pipeline.committed() is None
            batch: SharedBatch = pickle.loads(pickle.dumps(pipeline.batch(0)))
            failed = await written(universe, batch, b"a1", b"a2", attempt=0)
            first = await written(universe, batch, b"a1", b"a2", attempt=1)
            second = await written(universe, batch, b"b1", task=1)
            assert failed != first
            assert await read(universe) == []
            await pipeline.commit(batch, [first, second], group=GROUP, offsets={ZERO: 42}, marker=b"here")
            assert await pipeline.committed() == CommittedBatch(0, b"here")
        assert await read(universe) == [b"a1", b"a2", b"b1"]
        assert len(await read(universe, "read_uncommitted")) == 5
        assert await offset_of_group(universe) == 42


async def test_a_member_that_fails_holds_no_reader_up() -> None:
    async with a_node() as universe:
        async with owner(universe) as pipeline, Producer(ADDRESS, ports=universe.ports) as other:
            batch = pipeline.batch(0)
            async with member(universe, batch) as part:  # and it does not finish
                await part.write(records(b"half", b"half"))
                await part.flush()
            await other.send(TOPIC, b"behind it", partition=0)
            assert await pipeline.open_batch() == 0
            await until_read(universe, b"behind it")
            await pipeline.commit(batch, [await written(universe, batch, b"whole", attempt=1)])
        assert await read(universe) == [b"behind it", b"whole"]


async def test_a_batch_that_was_committed_is_not_written_again() -> None:
    async with a_node() as universe:
        async with owner(universe) as pipeline:
            batch = pipeline.batch(0)
            await pipeline.commit(batch, [await written(universe, batch, b"once")])
        async with owner(universe) as successor:
            batch = successor.batch(0)
            async with member(universe, batch) as part:
                assert not part.is_needed
                await part.write(records(b"twice"))
                again = await part.finish()
            assert again == Membership(None)
            await successor.commit(batch, [again])
            with pytest.raises(KafkaError, match="cannot be ended so"):
                await successor.abort(batch)
        assert await read(universe, "read_uncommitted") == [b"once"]


async def test_who_comes_back_from_the_dead_is_refused_at_its_first_write() -> None:
    async with a_node() as universe:
        async with owner(universe) as pipeline:
            batch = pipeline.batch(0)
            dead = await member(universe, batch).start()
            alive = await written(universe, batch, b"alive", attempt=1)
            await pipeline.commit(batch, [alive])
            await dead.write(records(b"dead"))
            with pytest.raises(ProducerFenced):
                await dead.finish()
            await dead.close()
        assert await read(universe, "read_uncommitted") == [b"alive"]


async def test_a_batch_of_nobody_is_not_joined() -> None:
    async with a_node() as universe, owner(universe):
        with pytest.raises(ProducerFenced):
            await member(universe, SharedBatch("orders", 99_999, 0, "a", 0)).start()


async def test_an_aborted_batch_may_be_written_again() -> None:
    async with a_node() as universe:
        async with owner(universe) as pipeline:
            batch = pipeline.batch(0)
            gone = await written(universe, batch, b"gone")
            await pipeline.abort(batch)
            with pytest.raises(TransactionAborted):
                await pipeline.commit(batch, [gone])
            await pipeline.commit(batch, [await written(universe, batch, b"kept", attempt=1)])
        assert await read(universe) == [b"kept"]


async def test_a_second_owner_fences_the_first_and_its_members() -> None:
    async with a_node() as universe:
        async with owner(universe) as first, owner(universe, "b") as second:
            batch = first.batch(0)
            with pytest.raises(ProducerFenced):
                await member(universe, batch).start()
            with pytest.raises(ProducerFenced):
                await first.commit(batch, [])
            batch = second.batch(0)
            await second.commit(batch, [await written(universe, batch, b"second")])
        assert await read(universe) == [b"second"]


async def test_a_pipeline_that_begins_from_nothing_loses_nothing() -> None:
    async with a_node() as universe:
        for incarnation in ("a", "b"):
            async with owner(universe, incarnation) as pipeline:
                assert await pipeline.committed() is None
                for number in range(2):
                    batch = pipeline.batch(number)
                    value = f"{incarnation}{number}".encode()
                    await pipeline.commit(batch, [await written(universe, batch, value)], marker=value)
        async with owner(universe, "a") as pipeline:
            assert await pipeline.committed() == CommittedBatch(1, b"a1")
        assert await read(universe) == [b"a0", b"a1", b"b0", b"b1"]


async def test_answers_that_are_lost_are_asked_for_again(mishaps: Mishaps) -> None:
    async with a_node() as universe:
        async with owner(universe) as pipeline:
            batch = pipeline.batch(0)
            mishaps.lost = [JoinTransactionRequest, EndTransactionRequest]
            await pipeline.commit(batch, [await written(universe, batch, b"once")], group=GROUP, offsets={ZERO: 1})
            assert (mishaps.count(JoinTransactionRequest), mishaps.count(EndTransactionRequest)) == (2, 2)
        assert await read(universe) == [b"once"]


async def test_a_commit_in_doubt_may_be_asked_for_again(mishaps: Mishaps) -> None:
    async with a_node() as universe:
        async with owner(universe, block_ms_max=50) as pipeline:
            batch = pipeline.batch(0)
            memberships = [await written(universe, batch, b"once")]
            mishaps.lost = [EndTransactionRequest] * 9
            with pytest.raises(TimedOut, match="commit\\(\\) may be called again"):
                await pipeline.commit(batch, memberships)
            with pytest.raises(TimedOut, match="abort\\(\\) may be called again"):
                await pipeline.abort(batch)
            mishaps.lost = []
            await pipeline.commit(batch, memberships)
        assert await read(universe) == [b"once"]


@pytest.mark.parametrize("mishap", ["lost", "unsent"])
async def test_to_abort_a_commit_in_doubt_settles_it_and_says_so(mishaps: Mishaps, mishap: str) -> None:
    async with a_node() as universe:
        async with owner(universe, block_ms_max=50) as pipeline:
            batch = pipeline.batch(0)
            memberships = [await written(universe, batch, b"once")]
            setattr(mishaps, mishap, [EndTransactionRequest] * 9)
            with pytest.raises(TimedOut):
                await pipeline.commit(batch, memberships, marker=b"here")
            setattr(mishaps, mishap, [])
            for _ in range(2):
                with pytest.raises(KafkaError) as refused:
                    await pipeline.abort(batch)
                assert refused.value.code is ErrorCode.INVALID_TXN_STATE
            assert await pipeline.committed() == CommittedBatch(0, b"here")
        assert await read(universe) == [b"once"]


async def test_a_commit_in_doubt_that_came_too_late_is_aborted_and_written_again(mishaps: Mishaps) -> None:
    async with a_node() as universe:
        async with owner(universe, block_ms_max=50, transaction_timeout_ms=1_000) as pipeline:
            batch = pipeline.batch(0)
            late = [await written(universe, batch, b"lost")]
            mishaps.unsent = [EndTransactionRequest] * 9
            with pytest.raises(TimedOut):
                await pipeline.commit(batch, late)
            mishaps.unsent = []
            await asyncio.sleep(5)
            await pipeline.abort(batch)
            await pipeline.commit(batch, [await written(universe, batch, b"once", attempt=1)])
        assert await read(universe) == [b"once"]


async def test_a_member_that_is_closed_unfinished_leaves_nothing() -> None:
    async with a_node() as universe:
        async with owner(universe) as pipeline:
            batch = pipeline.batch(0)
            async with member(universe, batch) as part:
                await part.write(records(b"half"))
            await pipeline.commit(batch, [])
        assert await read(universe) == []


def test_names_are_needed() -> None:
    with pytest.raises(ValueError, match="must not be empty"):
        SharedTransactions(ADDRESS, "orders", incarnation="")
    with pytest.raises(KafkaError, match="await start"):
        SharedTransactions(ADDRESS, "orders", incarnation="a").batch(0)


async def test_offsets_belong_to_a_group() -> None:
    async with a_node() as universe, owner(universe) as pipeline:
        with pytest.raises(ValueError, match="name it"):
            await pipeline.commit(pipeline.batch(0), [], offsets={ZERO: 1})


async def steps(universe: Universe, life: int) -> AsyncIterator[str]:
    """Write batch 0 with two members, each after the other, stopping after every step."""
    pipeline = await owner(universe).start()
    yield "owned"
    done = await pipeline.committed()
    if done is not None:
        assert done == CommittedBatch(0, b"done")
        return
    batch = pipeline.batch(0)
    memberships: list[Membership] = []
    for task in range(2):
        part = await member(universe, batch, task, attempt=life).start()
        yield f"{task} joined"
        await part.write(records(b"%d first" % task, b"%d second" % task))
        yield f"{task} wrote"
        memberships.append(await part.finish())
        yield f"{task} finished"
    await pipeline.commit(batch, memberships, group=GROUP, offsets={ZERO: 5}, marker=b"done")
    yield "committed"


STEPS = 8


@pytest.mark.parametrize("dies", ["driver", "broker"])
@pytest.mark.parametrize("step", range(STEPS))
async def test_whatever_ends_between_two_steps_all_is_written_once(step: int, dies: str) -> None:
    universe = Universe(step)
    node = universe.node(durability="fsync")
    await node.start()
    async with Admin(ADDRESS, ports=universe.ports) as admin:
        await admin.create_topic(TOPIC, partitions=4)
    first = steps(universe, life=0)
    for _ in range(step + 1):
        await anext(first)
    if dies == "broker":
        await universe.lose_power()
        node = universe.node(durability="fsync")
        await node.start()
    assert [name async for name in steps(universe, life=1)][-1] in ("owned", "committed")
    assert await read(universe) == [b"0 first", b"0 second", b"1 first", b"1 second"]
    assert await offset_of_group(universe) == 5
    await universe.lose_power()


@pytest.mark.parametrize("step", ["joined", "wrote", "finished"])
async def test_an_attempt_that_dies_between_two_steps_is_replaced_and_refused(step: str) -> None:
    async with a_node() as universe:
        async with owner(universe) as pipeline:
            batch = pipeline.batch(0)
            dead = await member(universe, batch).start()
            if step != "joined":
                await dead.write(records(b"first", b"second"))
                await dead.flush()
            if step == "finished":
                await dead.finish()
            other = await written(universe, batch, b"other", task=1)
            await pipeline.commit(batch, [other, await written(universe, batch, b"first", b"second", attempt=1)])
            if step != "finished":
                await dead.write(records(b"late", b"later"))
                with pytest.raises(ProducerFenced):
                    await dead.finish()
            await dead.close()
        assert await read(universe) == [b"first", b"other", b"second"]
        assert b"late" not in await read(universe, "read_uncommitted")


async def test_there_is_a_crash_after_every_step() -> None:
    async with a_node() as universe:
        assert len([name async for name in steps(universe, life=0)]) == STEPS


async def test_a_broker_that_does_not_know_them_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("riverlog.client.network.connection.OWN_SOFTWARE", "somebody")
    async with a_node() as universe, owner(universe) as pipeline:
        with pytest.raises(KafkaError, match="does not offer DescribeBatches") as no:
            await pipeline.committed()
        assert no.value.code is ErrorCode.UNSUPPORTED_VERSION
