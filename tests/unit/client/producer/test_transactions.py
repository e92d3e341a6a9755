"""Transactions as a producer's user sees them, by the rules of both versions, against a whole node."""
# ruff: noqa: PT012 - what is expected to raise is a block of several statements

import asyncio
from random import Random
from typing import Any

import pytest

from riverlog import Admin, Consumer, Producer
from riverlog.client.consumer.commits import GroupMetadata
from riverlog.client.errors import Closed, CommitFailed, KafkaError, ProducerFenced, TimedOut, TransactionAborted
from riverlog.client.producer import transactions
from riverlog.client.producer.deliveries import Delivery
from riverlog.coordination.transactions import TransactionCoordinator
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import TopicPartition
from riverlog.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from riverlog.wire.messages.end_txn import EndTxnRequest
from riverlog.wire.messages.init_producer_id import InitProducerIdRequest
from riverlog.wire.messages.produce import ProduceRequest
from riverlog.wire.messages.txn_offset_commit import TxnOffsetCommitRequest
from tests.support.members import ADDRESS, TOPIC, a_node, write
from tests.support.mishaps import Mishaps
from tests.support.world import Universe

ZERO = TopicPartition(TOPIC, 0)


@pytest.fixture(params=["epoch per transaction", "older rules"], autouse=True)
def rules(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Make the client write by the newest rules, or as if the cluster knew only the older ones."""
    if request.param == "older rules":
        monkeypatch.setattr(transactions, "_FEATURE", "not.there")
    chosen: str = request.param
    return chosen


def writer(universe: Universe, name: str = "copier", **settings: Any) -> Producer:
    return Producer(ADDRESS, transactional_id=name, ports=universe.ports, **settings)


async def read(universe: Universe, isolation: Any = "read_committed", partitions: int = 4) -> list[bytes | None]:
    """Read the whole topic, up to where this isolation level may read."""
    async with Consumer(ADDRESS, isolation_level=isolation, ports=universe.ports) as consumer:
        assigned = [TopicPartition(TOPIC, index) for index in range(partitions)]
        consumer.assign(assigned)
        await consumer.seek_to_beginning()
        ends = await consumer.end_offsets(assigned)
        values: list[bytes | None] = []
        while any((consumer.held()[at] or 0) < end for at, end in ends.items()):
            values += [record.value for record in await consumer.poll(100)]
        return values


@pytest.fixture
def mishaps(monkeypatch: pytest.MonkeyPatch) -> Mishaps:
    return Mishaps(monkeypatch)


async def test_a_transaction_is_seen_whole_or_not_at_all() -> None:
    async with a_node() as universe:
        async with writer(universe) as producer:
            async with producer.transaction():
                sent = [producer.send_soon(TOPIC, b"%d" % number, partition=number % 4) for number in range(8)]
                await producer.flush()
                assert await read(universe) == []
                assert len(await read(universe, "read_uncommitted")) == 8
            assert [(await delivery).offset for delivery in sent] == [0, 0, 0, 0, 1, 1, 1, 1]
            assert sorted(await read(universe)) == [b"%d" % number for number in range(8)]
            with pytest.raises(ValueError, match="no good"):
                async with producer.transaction():
                    await producer.send(TOPIC, b"taken back", partition=0)
                    raise ValueError("no good")
            async with producer.transaction():
                await producer.send(TOPIC, b"8", partition=0)
        assert sorted(await read(universe)) == [b"%d" % number for number in range(9)]
        assert b"taken back" in await read(universe, "read_uncommitted")


async def test_transactions_are_also_ended_by_hand() -> None:
    async with a_node() as universe:
        async with writer(universe) as producer:
            await producer.begin()
            producer.send_soon(TOPIC, b"kept", partition=0)
            await producer.commit()
            await producer.begin()
            unsent = producer.send_soon(TOPIC, b"taken back", partition=0)
            await producer.abort()
            with pytest.raises(KafkaError, match="aborted before the record was written"):
                await unsent
            async with producer.transaction():
                await producer.send(TOPIC, b"also taken back", partition=0)
                await producer.abort()
            async with producer.transaction():
                pass
        assert await read(universe) == [b"kept"]


async def test_what_is_not_possible_is_said() -> None:
    async with a_node() as universe:
        async with writer(universe) as producer:
            with pytest.raises(KafkaError, match="no transaction is open"):
                producer.send_soon(TOPIC, b"x")
            with pytest.raises(KafkaError, match="no transaction is open"):
                await producer.commit()
            await producer.begin()
            with pytest.raises(KafkaError, match="commit or abort it first"):
                await producer.begin()
            with pytest.raises(ValueError, match="group metadata alone has no offsets"):
                await producer.send_offsets(GroupMetadata("billing"))
        async with Producer(ADDRESS, ports=universe.ports) as plain:
            with pytest.raises(ValueError, match="transactional_id="):
                plain.transaction()
        with pytest.raises(KafkaError, match=r"transaction\.max\.timeout\.ms"):
            await writer(universe, transaction_timeout_ms=2_000_000_000).start()


@pytest.mark.parametrize("settings", [{"acks": 1}, {"idempotent": False}, {"transactional_id": ""}])
def test_settings_that_do_not_go_together_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="transactional_id"):
        Producer(ADDRESS, **({"transactional_id": "copier"} | settings))


async def test_whoever_takes_over_fences_the_one_before_and_aborts_what_it_left_open() -> None:
    async with a_node() as universe:
        zombie = await writer(universe).start()
        await zombie.begin()
        await zombie.send(TOPIC, b"by the zombie", partition=0)
        async with writer(universe) as producer, producer.transaction():
            await producer.send(TOPIC, b"by its successor", partition=0)
        zombie.send_soon(TOPIC, b"too late", partition=1)
        with pytest.raises(ProducerFenced, match="taken over the transactional id 'copier'"):
            await zombie.commit()
        for act in (zombie.begin, zombie.commit, zombie.abort):
            with pytest.raises(ProducerFenced):
                await act()
        with pytest.raises(ProducerFenced):
            zombie.send_soon(TOPIC, b"much too late")
        await zombie.close()
        assert await read(universe) == [b"by its successor"]


async def test_a_fenced_producer_says_so_where_its_block_ends() -> None:
    async with a_node() as universe:
        zombie = await writer(universe).start()
        with pytest.raises(ProducerFenced):
            async with zombie.transaction():
                await zombie.send(TOPIC, b"first", partition=0)
                async with writer(universe):
                    await zombie.send(TOPIC, b"second", partition=1)
        await zombie.close()
        assert await read(universe) == []


async def test_a_transaction_that_is_open_for_too_long_is_aborted_and_may_be_repeated(rules: str) -> None:
    async with a_node() as universe:
        async with writer(universe, transaction_timeout_ms=5_000) as producer:
            with pytest.raises(ProducerFenced if rules == "older rules" else TransactionAborted):
                async with producer.transaction():
                    await producer.send(TOPIC, b"slow", partition=0)
                    await asyncio.sleep(6)
            if rules != "older rules":
                async with producer.transaction():
                    await producer.send(TOPIC, b"again", partition=0)
        assert await read(universe) == ([] if rules == "older rules" else [b"again"])


async def test_who_writes_to_a_transaction_that_was_open_for_too_long_is_fenced() -> None:
    async with a_node() as universe:
        async with writer(universe, transaction_timeout_ms=5_000) as producer:
            with pytest.raises(ProducerFenced, match="transaction_timeout_ms"):
                async with producer.transaction():
                    await producer.send(TOPIC, b"slow", partition=0)
                    await asyncio.sleep(6)
                    await producer.send(TOPIC, b"slower", partition=0)
        assert await read(universe) == []


async def test_a_record_that_is_refused_aborts_its_transaction_and_the_next_goes_on() -> None:
    async with a_node() as universe:
        async with Admin(ADDRESS, ports=universe.ports) as admin:
            await admin.alter_configs({"max.message.bytes": "2000"}, topic=TOPIC)
        async with writer(universe) as producer:
            async with producer.transaction():
                await producer.send(TOPIC, b"before", partition=0)
            with pytest.raises(TransactionAborted, match=r"may be repeated: .*max\.message\.bytes") as raised:
                async with producer.transaction():
                    producer.send_soon(TOPIC, b"small", partition=1)
                    producer.send_soon(TOPIC, b"x" * 3_000, partition=0)
                    producer.send_soon(TOPIC, b"behind it", partition=2)
            assert isinstance(raised.value.__cause__, KafkaError)
            with pytest.raises(TransactionAborted):
                async with producer.transaction():
                    with pytest.raises(KafkaError, match=r"max\.message\.bytes"):
                        await producer.send(TOPIC, b"x" * 3_000, partition=0)
                    with pytest.raises(KafkaError, match="can only be aborted"):
                        await producer.flush()
                    await producer.send(TOPIC, b"not accepted", partition=0)
            for number in range(3):
                async with producer.transaction():
                    await producer.send(TOPIC, b"after %d" % number, partition=0)
        assert await read(universe) == [b"before", b"after 0", b"after 1", b"after 2"]


async def test_a_topic_that_does_not_come_aborts_the_transaction() -> None:
    async with a_node(auto_create_topics_enable="false") as universe:
        async with writer(universe) as producer:
            with pytest.raises(TransactionAborted, match="Create it"):
                async with producer.transaction():
                    producer.send_soon(TOPIC, b"taken back", partition=0)
                    producer.send_soon("nowhere", b"lost")
            await producer.begin()
            unplaced = producer.send_soon("nowhere", b"lost")
            await producer.abort()
            assert unplaced.error is not None
            async with producer.transaction():
                await producer.send(TOPIC, b"kept", partition=0)
        assert await read(universe) == [b"kept"]


async def test_offsets_take_effect_with_the_records() -> None:
    async with a_node() as universe:
        await write(universe, 8)
        settings: dict[str, Any] = {"group": "copiers", "auto_offset_reset": "earliest", "auto_commit": False}
        async with (
            Consumer(ADDRESS, isolation_level="read_committed", ports=universe.ports, **settings) as consumer,
            writer(universe) as producer,
        ):
            consumer.subscribe([TOPIC])
            records = [
                *await consumer.poll(10_000),
                *await consumer.poll(),
                *await consumer.poll(),
                *await consumer.poll(),
            ]
            assert len(records) == 8
            with pytest.raises(ZeroDivisionError):
                async with producer.transaction():
                    await producer.send_offsets(consumer)
                    raise ZeroDivisionError
            assert set((await consumer.committed()).values()) == {None}
            await consumer.rewind()
            again = 0
            while again < 8:
                again += len(await consumer.poll())
            async with producer.transaction():
                await producer.send_offsets(consumer)
            assert [found and found.offset for found in (await consumer.committed()).values()] == [2, 2, 2, 2]
            async with producer.transaction():
                await producer.send_offsets(consumer.group_metadata(), {ZERO: 1})
            assert (await consumer.committed(ZERO))[ZERO] == (1, -1, "")


async def test_a_consumer_that_commits_by_itself_is_refused() -> None:
    async with (
        a_node() as universe,
        Consumer(ADDRESS, group="copiers", ports=universe.ports) as consumer,
        writer(universe) as producer,
        producer.transaction(),
    ):
        with pytest.raises(ValueError, match="auto_commit=False"):
            await producer.send_offsets(consumer)


async def test_a_member_that_was_replaced_commits_nothing() -> None:
    async with a_node() as universe:
        await write(universe, 4)
        async with (
            Consumer(ADDRESS, group="copiers", auto_commit=False, ports=universe.ports) as consumer,
            writer(universe) as producer,
        ):
            consumer.subscribe([TOPIC])
            await consumer.poll(10_000)
            metadata = consumer.group_metadata()
            await consumer.unsubscribe()
            with pytest.raises(TransactionAborted, match="gone on without this member") as raised:
                async with producer.transaction():
                    await producer.send(TOPIC, b"taken back", partition=0)
                    await producer.send_offsets(metadata, {ZERO: 1})
            assert isinstance(raised.value.__cause__, CommitFailed)
        assert b"taken back" not in await read(universe)


LOSSES = [InitProducerIdRequest, AddPartitionsToTxnRequest, ProduceRequest, TxnOffsetCommitRequest, EndTxnRequest]


@pytest.mark.parametrize("kind", LOSSES)
@pytest.mark.parametrize("what", ["lost", "unsent"])
async def test_what_is_lost_on_the_way_is_asked_again(mishaps: Mishaps, kind: type, what: str) -> None:
    async with a_node() as universe:
        getattr(mishaps, what).append(kind)
        async with writer(universe) as producer:
            for number in range(3):
                async with producer.transaction():
                    await producer.send(TOPIC, b"%d" % number, partition=0)
                    await producer.send_offsets(GroupMetadata("copiers"), {ZERO: number + 1})
        assert await read(universe) == [b"0", b"1", b"2"]


async def test_a_commit_whose_answer_does_not_come_may_be_asked_for_again(mishaps: Mishaps) -> None:
    async with a_node() as universe:
        async with writer(universe, block_ms_max=1_000) as producer:
            await producer.begin()
            await producer.send(TOPIC, b"kept", partition=0)
            mishaps.lost += [EndTxnRequest] * 20
            with pytest.raises(TimedOut, match="not known yet whether"):
                await producer.commit()
            for act in (producer.begin, producer.abort):
                with pytest.raises(KafkaError, match=r"call commit\(\) again"):
                    await act()
            mishaps.lost.clear()
            await producer.commit()
            async with producer.transaction():
                await producer.send(TOPIC, b"next", partition=0)
        assert await read(universe) == [b"kept", b"next"]


async def test_an_abort_whose_answer_does_not_come_is_finished_by_the_next_transaction(mishaps: Mishaps) -> None:
    async with a_node() as universe:
        async with writer(universe, block_ms_max=1_000) as producer:
            with pytest.raises(ValueError, match="no good"):
                async with producer.transaction():
                    await producer.send(TOPIC, b"taken back", partition=0)
                    mishaps.unsent += [EndTxnRequest] * 20
                    raise ValueError("no good")
            mishaps.unsent.clear()
            async with producer.transaction():
                await producer.send(TOPIC, b"kept", partition=0)
        assert await read(universe) == [b"kept"]


async def test_partitions_are_announced_by_the_older_rules_alone(mishaps: Mishaps, rules: str) -> None:
    async with a_node() as universe:
        async with writer(universe) as producer:
            for _ in range(2):
                async with producer.transaction():
                    await asyncio.gather(*(producer.send(TOPIC, b"x", partition=index) for index in range(4)))
        epochs = {message.producer_epoch for message in mishaps.sent if isinstance(message, EndTxnRequest)}
        if rules == "older rules":
            assert mishaps.count(AddPartitionsToTxnRequest) == 2
            assert epochs == {0}
        else:
            assert mishaps.count(AddPartitionsToTxnRequest) == 0
            assert epochs == {0, 1}


async def test_a_producer_that_is_closed_takes_back_what_is_open() -> None:
    async with a_node() as universe:
        async with writer(universe) as producer:
            await producer.begin()
            await producer.send(TOPIC, b"taken back", partition=0)
        assert await read(universe) == []
        assert await read(universe, "read_uncommitted") == [b"taken back"]


async def test_one_who_is_cancelled_does_not_wait_long_for_the_abort(mishaps: Mishaps) -> None:
    async with a_node() as universe:
        async with writer(universe) as producer:
            loop = asyncio.get_running_loop()
            began = loop.time()
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(1), producer.transaction():
                    await producer.send(TOPIC, b"taken back", partition=0)
                    mishaps.unsent += [EndTxnRequest] * 1_000
                    await asyncio.sleep(60)
            assert loop.time() - began < 10
            mishaps.unsent.clear()
            async with producer.transaction():
                await producer.send(TOPIC, b"kept", partition=0)
        assert await read(universe) == [b"kept"]


async def test_every_record_of_a_producer_that_is_cancelled_has_an_outcome() -> None:
    async with a_node() as universe:

        async def write() -> None:
            async with writer(universe, linger_ms=30_000) as producer:
                await producer.begin()
                deliveries.extend(producer.send_soon(TOPIC, b"unsent", partition=index) for index in range(4))
                await asyncio.sleep(60)

        deliveries: list[Delivery] = []
        unhandled: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: unhandled.append(context))
        writing = asyncio.create_task(write())
        await asyncio.sleep(1)
        writing.cancel()
        async with asyncio.timeout(5):
            found = await asyncio.gather(*deliveries, writing, return_exceptions=True)
        assert [type(problem) for problem in found] == [Closed] * 4 + [asyncio.CancelledError]
        assert unhandled == []


async def test_a_commit_does_not_outlive_its_producer(mishaps: Mishaps) -> None:
    async with a_node() as universe:
        producer = await writer(universe).start()
        await producer.begin()
        await producer.send(TOPIC, b"in doubt", partition=0)
        mishaps.unsent += [EndTxnRequest] * 1_000
        commit = asyncio.create_task(producer.commit())
        await asyncio.sleep(1)
        await producer.close()
        async with asyncio.timeout(5):
            with pytest.raises(KafkaError, match="closed"):
                await commit


@pytest.mark.parametrize("seed", range(5))
async def test_readers_see_what_was_committed_and_nothing_else_whatever_is_interleaved(seed: int) -> None:
    """Several producers write to the same partitions at once, and end their transactions as chance will have it."""
    kept: list[bytes] = []
    written: list[bytes] = []

    async def work(universe: Universe, name: str) -> None:
        chance = Random(f"{seed} {name}")
        async with writer(universe, name, batch_bytes_max=300) as producer:
            for turn in range(12):
                values = [f"{name} {turn} {number}".encode() for number in range(chance.randrange(1, 12))]
                await producer.begin()
                for value in values:
                    producer.send_soon(TOPIC, value, partition=chance.randrange(2))
                    if chance.random() < 0.3:
                        await asyncio.sleep(chance.random() / 100)
                await producer.flush()
                written.extend(values)
                if chance.random() < 0.5:
                    await producer.commit()
                    kept.extend(values)
                else:
                    await producer.abort()

    async def plain(universe: Universe) -> None:
        async with Producer(ADDRESS, ports=universe.ports) as producer:
            for number in range(40):
                await producer.send(TOPIC, value := b"plain %d" % number, partition=number % 2)
                written.append(value)
                kept.append(value)
                await asyncio.sleep(0.002)

    async with a_node(partitions=2) as universe:
        seen: list[bytes | None] = []
        async with Consumer(
            ADDRESS, isolation_level="read_committed", partition_bytes_max=2_000, ports=universe.ports
        ) as consumer:
            partitions = [TopicPartition(TOPIC, index) for index in range(2)]
            consumer.assign(partitions)
            await consumer.seek_to_beginning()
            writers = asyncio.gather(plain(universe), *(work(universe, name) for name in "abc"))
            while not writers.done():
                seen += [record.value for record in await consumer.poll(10)]
            await writers
            ends = await consumer.end_offsets(partitions)
            while consumer.held() != ends:
                seen += [record.value for record in await consumer.poll(10)]
        assert sorted(value or b"" for value in seen) == sorted(kept)
        assert sorted(value or b"" for value in await read(universe, "read_uncommitted", 2)) == sorted(written)
        assert 40 < len(kept) < len(written)


@pytest.mark.parametrize("seed", range(5))
async def test_nothing_is_lost_or_left_open_however_faulty_the_way_of_verification_is(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    chance = Random(seed)
    verify = TransactionCoordinator.verify

    async def on_its_way(*asked: Any, **how: Any) -> ErrorCode:
        """Ask late, perhaps never, perhaps twice; and let the answer come later still, or not at all."""
        await asyncio.sleep(chance.random() * 0.3)
        if chance.random() < 0.2:
            return ErrorCode.NETWORK_EXCEPTION
        code = await verify(*asked, **how)
        if chance.random() < 0.2:
            code = await verify(*asked, **how)
        await asyncio.sleep(chance.random() * 0.3)
        return ErrorCode.REQUEST_TIMED_OUT if chance.random() < 0.2 else code

    monkeypatch.setattr(TransactionCoordinator, "verify", on_its_way)
    async with a_node() as universe:
        committed: list[bytes] = []
        async with writer(universe) as producer:
            for number in range(30):
                values = [b"%02d %d" % (number, index) for index in range(4)]
                await producer.begin()
                for index, value in enumerate(values):
                    producer.send_soon(TOPIC, value, partition=index)
                if chance.random() < 0.5:
                    await asyncio.sleep(chance.random() * 0.5)
                if chance.random() < 0.4:
                    await producer.abort()
                else:
                    await producer.commit()
                    committed += values
        assert sorted(each or b"" for each in await read(universe)) == committed
        async with Admin(ADDRESS, ports=universe.ports) as admin:
            partitions = [TopicPartition(TOPIC, index) for index in range(4)]
            producers = await admin.describe_producers(partitions)
        assert producers
        assert all(each.transaction_offset < 0 for each in producers)
