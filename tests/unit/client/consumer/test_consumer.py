"""The consumer as its user sees it."""

import asyncio

import pytest

from riverlog.client.consumer.consumer import Consumer
from riverlog.client.errors import Closed, CorruptRecords, KafkaError, OffsetOutOfRange
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import TopicPartition
from tests.support.brokers import FakeCluster

ZERO, ONE = TopicPartition("orders", 0), TopicPartition("orders", 1)


def filled(partitions: int = 1, batches: int = 4) -> FakeCluster:
    """Batches of three records each, a second apart."""
    cluster = FakeCluster()
    cluster.create_topic("orders", partitions)
    for partition in range(partitions):
        for number in range(batches):
            cluster.write("orders", partition, b"a", b"b", b"c", timestamp_ms=1_000 * number)
    return cluster


def consumer_of(cluster: FakeCluster, **settings: object) -> Consumer:
    return Consumer(cluster.bootstrap, ports=cluster.ports, **{"auto_offset_reset": "earliest", **settings})  # type: ignore[arg-type]


async def test_poll_gives_no_more_than_asked_and_loses_nothing_between() -> None:
    async with consumer_of(filled()) as consumer:
        consumer.assign([ZERO])
        offsets = []
        for expected in (5, 5, 2):
            records = await consumer.poll(max_records=5)
            assert len(records) == expected
            offsets += [record.offset for record in records]
            assert await consumer.position(ZERO) == offsets[-1] + 1
        assert offsets == list(range(12))
        assert await consumer.poll(100) == []


async def test_poll_returns_as_soon_as_something_is_there() -> None:
    cluster = filled()
    async with consumer_of(cluster, auto_offset_reset="latest") as consumer:
        consumer.assign([ZERO])
        waiting = asyncio.create_task(consumer.poll(60_000))
        await asyncio.sleep(20)
        assert not waiting.done()
        cluster.write("orders", 0, b"new")
        start = asyncio.get_running_loop().time()
        assert [(record.offset, record.value) for record in await waiting] == [(12, b"new")]
        assert asyncio.get_running_loop().time() - start < 0.1


async def test_iteration_gives_record_after_record_and_keeps_the_position() -> None:
    async with consumer_of(filled()) as consumer:
        consumer.assign([ZERO])
        seen = []
        async for record in consumer:
            seen.append(record.offset)
            assert await consumer.position(ZERO) == record.offset + 1
            if record.offset == 6:
                break
        assert [record.offset for record in await consumer.poll()] == [7, 8, 9, 10, 11], "poll goes on from there"


async def test_partitions_take_turns() -> None:
    cluster = filled(partitions=2, batches=40)
    async with consumer_of(cluster, partition_bytes_max=500) as consumer:
        consumer.assign([ZERO, ONE])
        seen = []
        while len(seen) < 240:
            seen += [record.partition for record in await consumer.poll(max_records=10)]
        assert sum(seen[:120]) + (120 - len(seen[:120])) + 20 > 60, "one is not kept waiting for the other"
        assert 20 <= sum(seen[:120]) <= 100


async def test_seeking() -> None:
    async with consumer_of(filled()) as consumer:
        consumer.assign([ZERO])
        await consumer.seek(ZERO, 7)
        assert (await consumer.poll(max_records=1))[0].offset == 7
        await consumer.seek_to_beginning()
        assert (await consumer.poll(max_records=2))[1].offset == 1
        await consumer.seek_to_end(ZERO)
        assert await consumer.position(ZERO) == 12
        assert await consumer.poll(100) == []
        assert await consumer.seek_to_time(ZERO, 1_001) == 4
        assert (await consumer.poll(max_records=1))[0].timestamp_ms == 1_001
        assert await consumer.seek_to_time(ZERO, 99_999) == 12, "nothing is as young: the end"
        with pytest.raises(ValueError, match="seek_to_beginning"):
            await consumer.seek(ZERO, -2)
        with pytest.raises(ValueError, match="orders-1 is not assigned"):
            await consumer.seek(ONE, 0)


async def test_a_jump_in_the_middle_of_a_batch_takes_effect_at_once() -> None:
    async with consumer_of(filled()) as consumer:
        consumer.assign([ZERO])
        assert (await consumer.poll(max_records=1))[0].offset == 0
        await consumer.seek(ZERO, 10)
        assert [record.offset for record in await consumer.poll()] == [10, 11]


async def test_a_paused_partition_is_silent_and_goes_on_where_it_was() -> None:
    async with consumer_of(filled(partitions=2)) as consumer:
        consumer.assign([ZERO, ONE])
        first = (await consumer.poll(max_records=1))[0]
        paused = TopicPartition("orders", first.partition)
        consumer.pause(paused)
        others = [record for _ in range(5) for record in await consumer.poll(200)]
        assert {record.partition for record in others} == {1 - first.partition}
        consumer.resume(paused)
        assert [record.offset for record in await consumer.poll(1_000)] == list(range(1, 12))


async def test_assigning_again_keeps_the_positions_of_what_stays() -> None:
    async with consumer_of(filled(partitions=2)) as consumer:
        consumer.assign([ZERO])
        await consumer.poll(max_records=5)
        consumer.assign([ZERO, ONE])
        assert consumer.assignment() == [ZERO, ONE]
        assert await consumer.position(ZERO) == 5
        consumer.assign([])
        assert await consumer.poll(50) == []


async def test_without_reset_a_missing_position_is_the_readers_business() -> None:
    cluster = filled()
    async with consumer_of(cluster, auto_offset_reset="none") as consumer:
        consumer.assign([ZERO])
        with pytest.raises(OffsetOutOfRange):
            await consumer.poll()
        await consumer.seek(ZERO, 500)
        with pytest.raises(OffsetOutOfRange, match="no offset 500") as raised:
            await consumer.poll()
        assert raised.value.offset == 500
        await consumer.seek(ZERO, 11)
        assert len(await consumer.poll()) == 1


async def test_a_corrupt_batch_stops_the_reader_before_it_until_it_seeks_past() -> None:
    cluster = filled()
    log = cluster.topics["orders"].logs[0]
    whole = bytes(log.batches[1])
    log.batches[1][-1] ^= 0xFF
    async with consumer_of(cluster) as consumer:
        consumer.assign([ZERO])
        assert [record.offset for record in await consumer.poll()] == [0, 1, 2], "what is good comes first"
        for _ in range(2):
            with pytest.raises(CorruptRecords):
                await consumer.poll()
        assert await consumer.position(ZERO) == 3
        await consumer.seek(ZERO, 6)
        assert len(await consumer.poll()) == 6
        log.batches[1][:] = whole
        await consumer.seek(ZERO, 3)
        assert len(await consumer.poll()) == 9, "a batch that was only broken on its way is read in the end"


async def test_a_topic_that_is_not_there_is_said() -> None:
    cluster = FakeCluster(auto_create=False)
    async with consumer_of(cluster) as consumer:
        with pytest.raises(KafkaError, match="no such topic"):
            await consumer.partitions("orders")
        consumer.assign([ZERO])
        with pytest.raises(KafkaError, match="no such topic") as raised:
            await consumer.poll(10_000)
        assert raised.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        cluster.create_topic("orders")
        cluster.write("orders", 0, b"x")
        assert len(await consumer.poll(10_000)) == 1


async def test_offsets_at_both_ends() -> None:
    cluster = filled(partitions=2)
    cluster.topics["orders"].logs[1].start = 5
    async with consumer_of(cluster) as consumer:
        assert await consumer.beginning_offsets([ZERO, ONE]) == {ZERO: 0, ONE: 5}
        assert await consumer.end_offsets([ZERO, ONE]) == {ZERO: 12, ONE: 12}


async def test_closing_ends_a_waiting_reader() -> None:
    consumer = await consumer_of(filled(batches=0)).start()
    consumer.assign([ZERO])
    waiting = asyncio.create_task(anext(consumer))
    await asyncio.sleep(1)
    await consumer.close()
    with pytest.raises(Closed):
        await waiting


async def test_a_consumer_that_was_not_started_says_how() -> None:
    consumer = consumer_of(filled())
    consumer.assign([ZERO])
    with pytest.raises(KafkaError, match="async with Consumer"):
        await consumer.poll()
    assert "orders-0" in repr(consumer)


@pytest.mark.parametrize("settings", [{"auto_offset_reset": "smallest"}, {"isolation_level": "serializable"}])
def test_senseless_settings_are_refused(settings: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="choose"):
        Consumer("a:1", **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["x" * 40_000, "\ud800", b"orders", 5])
async def test_what_no_request_can_name_is_refused_at_the_call(name: object) -> None:
    cluster = filled()
    for settings in ({"group": name}, {"client_id": name}, {"group": "g", "group_instance_id": name}):
        with pytest.raises((TypeError, ValueError)):
            consumer_of(cluster, **settings)
    async with consumer_of(cluster, group="g") as consumer:
        with pytest.raises((TypeError, ValueError)):
            consumer.subscribe([name])  # type: ignore[list-item]
        with pytest.raises((TypeError, ValueError)):
            consumer.assign([TopicPartition(name, 0)])  # type: ignore[arg-type]
        with pytest.raises((TypeError, ValueError)):
            await consumer.partitions(name)  # type: ignore[arg-type]


async def test_a_mistake_of_our_own_while_a_start_is_looked_up_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    async def mistaken(*_given: object, **_named: object) -> None:
        raise LookupError("ours")

    async with consumer_of(filled()) as consumer:
        monkeypatch.setattr("riverlog.client.consumer.fetcher.list_offsets", mistaken)
        consumer.assign([ZERO])
        with pytest.raises(LookupError, match="ours"):
            await consumer.poll(1_000)
