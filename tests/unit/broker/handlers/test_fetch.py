"""Fetch: limits, waiting, and refusals."""

import asyncio
import errno
from dataclasses import replace
from typing import Any

import pytest

from riverlog import Admin, Producer
from riverlog.broker.limits import COPIED_BYTES_PER_ANSWER_MAX, REQUEST_PORTION
from riverlog.log.segments.flaws import Flaw
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import Offset
from riverlog.records.record import read_batches
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from tests.support.asking import Line, connected, serving
from tests.support.batches import batch_of
from tests.support.world import Universe
from tests.unit.broker.handlers.test_produce import create, produced, request

VERSION = 12
MINUTE_MS = 60_000


def asking(offset: int = 0, *, wait_ms: int = 0, bytes_min: int = 1, bytes_max: int = 1 << 20, **fields: int) -> Any:
    part = FetchPartition(
        partition=fields.pop("partition", 0), fetch_offset=offset, partition_max_bytes=bytes_max, **fields
    )
    topics = [FetchTopic(topic="orders", partitions=[part])]
    return FetchRequest(max_wait_ms=wait_ms, min_bytes=bytes_min, max_bytes=bytes_max, topics=topics)


async def fetched(line: Line, asked: FetchRequest, version: int = VERSION) -> Any:
    return (await line.ask(ApiKey.FETCH, version, asked)).responses[0].partitions[0]


def values(answer: Any) -> list[bytes | None]:
    return [record.value for _header, records in read_batches(answer.records) for record in records]


async def test_records_come_back_in_order_with_all_offsets_named() -> None:
    async with serving() as (line, _node):
        await create(line)
        for each in (b"a", b"b", b"c"):
            await produced(line, request(batch_of([each])))
        answer = await fetched(line, asking())
        assert values(answer) == [b"a", b"b", b"c"]
        assert (answer.high_watermark, answer.last_stable_offset, answer.log_start_offset) == (3, 3, 0)
        assert values(await fetched(line, asking(2))) == [b"c"]


async def test_the_first_batch_is_whole_even_if_it_is_too_large() -> None:
    async with serving() as (line, _node):
        await create(line)
        for each in (b"a" * 1_000, b"b"):
            await produced(line, request(batch_of([each])))
        assert values(await fetched(line, asking(bytes_max=10))) == [b"a" * 1_000]


async def test_a_fetch_waits_for_enough_bytes_and_no_longer_than_it_was_told() -> None:
    universe = Universe()
    loop = asyncio.get_running_loop()
    async with serving(universe) as (line, _node):
        await create(line)
        before = loop.time()
        assert values(await fetched(line, asking(wait_ms=5_000))) == []
        assert loop.time() - before == pytest.approx(5, abs=0.1)

        waiting = line.send(ApiKey.FETCH, VERSION, asking(wait_ms=MINUTE_MS, bytes_min=150))
        other = await connected(universe)
        await produced(other, request(batch_of([b"a"])))
        await asyncio.sleep(1)
        assert not waiting.done()
        await produced(other, request(batch_of([b"b" * 100])))
        await asyncio.sleep(0.1)
        assert values(waiting.result().responses[0].partitions[0]) == [b"a", b"b" * 100]


async def test_answers_behind_a_waiting_fetch_wait_too_but_their_work_is_done() -> None:
    async with serving() as (line, _node):
        await create(line)
        waiting = line.send(ApiKey.FETCH, VERSION, asking(wait_ms=MINUTE_MS))
        behind = line.send(ApiKey.PRODUCE, 9, request(batch_of([b"a"])))
        await asyncio.wait([behind])
        assert values(waiting.result().responses[0].partitions[0]) == [b"a"]


async def test_nothing_is_read_that_is_not_committed() -> None:
    universe = Universe()
    async with serving(universe, durability="fsync") as (line, _node):
        await create(line)
        pending = line.send(ApiKey.PRODUCE, 9, request(batch_of([b"a"])))
        other = await connected(universe)
        seen = await fetched(other, asking())
        assert len(values(seen)) == seen.high_watermark
        await pending
        assert values(await fetched(other, asking())) == [b"a"]


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (asking(1), ErrorCode.OFFSET_OUT_OF_RANGE),
        (asking(-1), ErrorCode.OFFSET_OUT_OF_RANGE),
        (asking(partition=9), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (asking(current_leader_epoch=7), ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
async def test_what_cannot_be_read_is_told_at_once(asked: FetchRequest, code: ErrorCode) -> None:
    async with serving() as (line, _node):
        await create(line)
        asked.max_wait_ms = MINUTE_MS
        before = asyncio.get_running_loop().time()
        answer = await fetched(line, asked)
        assert answer.error_code == code
        assert asyncio.get_running_loop().time() - before < 1


@pytest.mark.parametrize("version", [11, 12, 13, 16])
@pytest.mark.parametrize("isolation_level", [0, 1])
async def test_the_short_cut_and_the_long_way_come_to_the_same(version: int, isolation_level: int) -> None:
    """One partition takes the short cut from version 12 on; two never do."""
    universe = Universe()
    async with serving(universe, num_partitions="2") as (line, _node):
        topic = await create(line)
        other = await connected(universe)
        for offset, value in enumerate((b"a", b"b", b"c")):
            waiting = []
            for indexes in ([0], [0, 1]):
                parts = [
                    FetchPartition(each, fetch_offset=0 if each else offset, partition_max_bytes=90) for each in indexes
                ]
                asked = FetchRequest(
                    max_wait_ms=MINUTE_MS,
                    min_bytes=1,
                    isolation_level=isolation_level,
                    topics=[FetchTopic("orders", topic.topic_id, parts)],
                )
                waiting.append(line.send(ApiKey.FETCH, version, asked))
            await produced(other, request(batch_of([value])))
            short, long = [(await each).responses[0] for each in waiting]
            assert (short.topic, short.topic_id) == (long.topic, long.topic_id)
            assert short.partitions[0] == long.partitions[0]
            assert values(short.partitions[0]) == [value]


@pytest.mark.parametrize("version", [11, 16])
async def test_who_waits_is_told_what_is_in_the_way_when_it_comes(version: int) -> None:
    universe = Universe()
    async with serving(universe) as (line, node):
        topic = await create(line)
        other = await connected(universe)
        partition = node.parts.replicas.get("orders", 0)
        assert partition is not None
        for _ in range(2):  # the second one is known by its bytes
            asked = asking(partition.high_watermark, wait_ms=MINUTE_MS)
            asked.topics[0].topic_id = topic.topic_id
            waiting = line.send(ApiKey.FETCH, version, asked)
            await produced(other, request(batch_of([b"a"])))
            assert values((await waiting).responses[0].partitions[0]) == [b"a"]
        asked.topics[0].partitions[0].fetch_offset = partition.high_watermark
        waiting = line.send(ApiKey.FETCH, version, asked)
        await asyncio.sleep(0.1)
        universe.disk.fail(0, errno.EIO, on=("read",))
        await produced(other, request(batch_of([b"b"])))
        answer = (await waiting).responses[0].partitions[0]
        assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert answer.records == b""


async def test_damage_is_told_when_the_time_is_up() -> None:
    async with serving() as (line, node):
        await create(line)
        for each in (b"a", b"b"):
            await produced(line, request(batch_of([each])))
        partition = node.parts.replicas.get("orders", 0)
        assert partition is not None
        flaw = Flaw(0, 1, Offset(0), Offset(1), "the checksum does not match")
        partition.log.quarantine.add(Offset(0), flaw)
        began = asyncio.get_running_loop().time()
        assert (await fetched(line, asking(wait_ms=500))).error_code == ErrorCode.CORRUPT_MESSAGE
        assert asyncio.get_running_loop().time() - began >= 0.5
        assert values(await fetched(line, asking(1))) == [b"b"]


async def test_sessions_are_not_kept() -> None:
    async with serving() as (line, _node):
        await create(line)
        asked = asking()
        asked.session_epoch = 0
        assert (await line.ask(ApiKey.FETCH, VERSION, asked)).session_id == 0
        asked.session_id, asked.session_epoch = 7, 1
        response = await line.ask(ApiKey.FETCH, VERSION, asked)
        assert response.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


async def test_a_client_that_goes_away_leaves_nothing_behind() -> None:
    universe = Universe()
    async with serving(universe) as (line, node):
        await create(line)
        other = await connected(universe)
        other.send(ApiKey.FETCH, VERSION, asking(wait_ms=MINUTE_MS))
        await asyncio.sleep(0.1)
        partition = node.parts.replicas.get("orders", 0)
        assert partition is not None
        assert len(partition._readers) == 1
        other.close()
        await asyncio.sleep(5)
        assert not partition._readers


async def test_what_goes_out_is_counted_in_records_and_bytes() -> None:
    async with serving() as (line, node):
        await create(line)
        for _ in range(200):
            await produced(line, request(batch_of([b"x" * 100, b"y" * 100])))
        partition = node.parts.replicas.get("orders", 0)
        assert partition is not None
        offset = size = 0
        while offset < 400:
            answer = await fetched(line, asking(offset, bytes_max=5_000))
            offset += len(values(answer))
            size += len(answer.records)
        assert partition.stats.messages_out == 400
        assert partition.stats.bytes_out == size


@pytest.mark.parametrize("version", [11, 12])
async def test_a_fetch_does_not_wait_at_the_end_of_a_segment(version: int) -> None:
    """Version 11 takes the long way, 12 the short cut."""
    async with serving(log_segment_bytes="1024") as (line, node):
        await create(line)
        for _ in range(8):
            await produced(line, request(batch_of([b"a" * 300])))
        partition = node.parts.replicas.get("orders", 0)
        assert partition is not None
        assert len(partition.log.segments) > 1
        before = asyncio.get_running_loop().time()
        offset = 0
        while offset < 6:
            answer = await fetched(line, asking(offset, wait_ms=MINUTE_MS, bytes_min=5_000), version)
            assert answer.records
            offset += len(values(answer))
        assert asyncio.get_running_loop().time() - before < 1


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize(
    ("version", "parts", "code"),
    [
        (12, 1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (12, 2, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (13, 1, ErrorCode.UNKNOWN_TOPIC_ID),
        (13, 2, ErrorCode.UNKNOWN_TOPIC_ID),
    ],
)
async def test_a_fetch_that_waits_is_told_at_once_that_its_topic_was_deleted(
    version: int, parts: int, code: ErrorCode, again: bool
) -> None:
    universe = Universe()
    async with serving(universe) as (line, node):
        async with Admin("node:9092", ports=universe.ports) as admin:
            await admin.create_topic("orders", partitions=2)
        topic = node.parts.metadata.image.topic("orders")
        assert topic is not None
        other = await connected(universe)
        asked = FetchRequest(
            max_wait_ms=MINUTE_MS,
            min_bytes=1_000,
            max_bytes=1 << 20,
            topics=[
                FetchTopic(
                    topic="orders",
                    topic_id=topic.id,
                    partitions=[
                        FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1 << 20)
                        for index in range(parts)
                    ],
                )
            ],
        )
        await produced(other, request(batch_of([b"old"])))
        await line.ask(ApiKey.FETCH, version, replace(asked, max_wait_ms=0))
        waiting = line.send(ApiKey.FETCH, version, asked)
        await asyncio.sleep(1)
        assert not waiting.done()
        async with Admin("node:9092", ports=universe.ports) as admin:
            await admin.delete_topics(["orders"])
            if again:
                await admin.create_topic("orders", partitions=2)
                async with Producer("node:9092", ports=universe.ports) as producer:
                    await producer.send("orders", value=b"new" * 1_000, partition=0)
        answer = (await waiting).responses[0].partitions
        assert [part.error_code for part in answer] == [code] * parts
        assert [bytes(part.records or b"") for part in answer] == [b""] * parts
        assert not node.parts.registry.directories[0].health.offline


def many(*, wait_ms: int, bytes_min: int = 1) -> FetchRequest:
    """Ask for one partition often, among topics that are not there or have no partitions named."""
    parts = [FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1)]
    topics = [
        FetchTopic(topic="orders", partitions=parts * 3 * REQUEST_PORTION),
        FetchTopic(topic="orders", partitions=[]),
        *(FetchTopic(topic="orders", partitions=parts) for _ in range(2 * REQUEST_PORTION)),
    ]
    return FetchRequest(max_wait_ms=wait_ms, min_bytes=bytes_min, max_bytes=1, topics=topics)


async def test_a_fetch_of_many_partitions_is_done_in_portions() -> None:
    universe = Universe()
    loop = asyncio.get_running_loop()
    async with serving(universe) as (line, node):
        await create(line)
        asked = many(wait_ms=MINUTE_MS)
        before = loop.time()
        waiting = line.send(ApiKey.FETCH, VERSION, asked)
        other = await connected(universe)
        await asyncio.sleep(1)
        assert not waiting.done()
        await produced(other, request(batch_of([b"a"])))
        answer = await waiting
        assert loop.time() - before < 2
        assert [len(topic.partitions) for topic in answer.responses] == [
            len(topic.partitions) for topic in asked.topics
        ]
        read = [part for topic in answer.responses for part in topic.partitions]
        assert values(read[0]) == [b"a"]
        assert not any(part.records or part.error_code for part in read[1:])
        assert {part.high_watermark for part in read} == {1}

        before = loop.time()
        await line.ask(ApiKey.FETCH, VERSION, many(wait_ms=5_000, bytes_min=1_000))
        assert loop.time() - before == pytest.approx(5, abs=0.1)
        partition = node.parts.replicas.get("orders", 0)
        assert partition is not None
        assert not partition._readers


async def test_without_descriptors_only_so_much_is_copied_into_an_answer() -> None:
    async with serving() as (line, node):
        await create(line)
        for _ in range(5):
            await produced(line, request(batch_of([b"a" * 500_000])))
        partition = node.parts.replicas.get("orders", 0)
        assert partition is not None
        assert len((await fetched(line, asking(bytes_max=1 << 30))).records) > 2_500_000
        partition.log.segments.files._descriptors_max = 0
        assert 0 < len((await fetched(line, asking(bytes_max=1 << 30))).records) <= COPIED_BYTES_PER_ANSWER_MAX
