"""Produce: what is appended, what is refused and how, and when the answer comes."""

import asyncio
import errno
from typing import Any

import pytest

from riverlog.broker.handlers import produce
from riverlog.coordination.transactions import TransactionCoordinator
from riverlog.model.errors import ErrorCode
from riverlog.partitions.partition import Partition
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.delete_topics import DeleteTopicsRequest
from riverlog.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from riverlog.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.support.asking import Line, connected, serving
from tests.support.batches import batch_of
from tests.support.coordinator_lines import ID, init, prepared
from tests.support.reading_committed import transactional_batch
from tests.support.virtual_time import run
from tests.support.world import Universe

VERSION = 12


def request(
    *batches: bytes | memoryview | None, acks: int = -1, topic: str = "orders", index: int = 0
) -> ProduceRequest:
    parts = [PartitionProduceData(index=index, records=batch) for batch in batches]  # type: ignore[arg-type]
    return ProduceRequest(acks=acks, timeout_ms=1_000, topic_data=[TopicProduceData(name=topic, partition_data=parts)])


async def create(line: Line) -> Any:
    topics = [MetadataRequestTopic(name="orders")]
    return (await line.ask(ApiKey.METADATA, 12, MetadataRequest(topics=topics))).topics[0]


async def produced(line: Line, asked: ProduceRequest, version: int = VERSION) -> Any:
    response = await line.ask(ApiKey.PRODUCE, version, asked)
    return response.responses[0].partition_responses[0]


def refusal(batch: bytes | memoryview | None, **how: Any) -> tuple[ErrorCode, str]:
    """Send one batch to a fresh node; give the error."""

    async def scenario() -> tuple[ErrorCode, str]:
        async with serving() as (line, _node):
            await create(line)
            version = how.pop("version", VERSION)
            answer = await produced(line, request(batch, **how), version)
            assert answer.base_offset == -1
            return ErrorCode(answer.error_code), answer.error_message or ""

    return run(scenario())


def changed(position: int, value: bytes, *, valid: bool = True) -> bytearray:
    """Return a batch of two records with other bytes in its header, its checksum made right again or not."""
    batch = bytearray(batch_of([b"a", b"b"]))
    batch[position : position + len(value)] = value
    if valid:
        from riverlog.records.batch import CRC_POSITION, checksum

        batch[CRC_POSITION : CRC_POSITION + 4] = checksum(batch).to_bytes(4, "big")
    return batch


async def test_offsets_follow_each_other() -> None:
    async with serving() as (line, _node):
        await create(line)
        offsets = [(await produced(line, request(batch_of([b"a", b"b"])))).base_offset for _ in range(3)]
        assert offsets == [0, 2, 4]


async def test_pipelined_requests_take_effect_in_order() -> None:
    async with serving(durability="fsync") as (line, _node):
        await create(line)
        answers = await asyncio.gather(
            *(line.send(ApiKey.PRODUCE, VERSION, request(batch_of([b"%d" % each]))) for each in range(50))
        )
        offsets = [answer.responses[0].partition_responses[0].base_offset for answer in answers]
        assert offsets == list(range(50))


async def test_topics_are_found_by_id() -> None:
    async with serving() as (line, _node):
        topic = await create(line)
        asked = request(batch_of([b"a"]))
        asked.topic_data[0].topic_id = topic.topic_id
        assert (await produced(line, asked, 13)).error_code == ErrorCode.NONE
        assert (await produced(line, request(batch_of([b"a"])), 13)).error_code == ErrorCode.UNKNOWN_TOPIC_ID


@pytest.mark.parametrize(
    ("batch", "code"),
    [
        (None, ErrorCode.INVALID_RECORD),
        (b"", ErrorCode.INVALID_RECORD),
        (b"short", ErrorCode.INVALID_RECORD),
        (changed(30, b"\xff", valid=False), ErrorCode.CORRUPT_MESSAGE),
        (changed(16, b"\x00", valid=False), ErrorCode.INVALID_RECORD),
        (changed(16, b"\x01", valid=False), ErrorCode.INVALID_RECORD),
        (changed(57, (3).to_bytes(4, "big")), ErrorCode.INVALID_RECORD),
        (changed(21, b"\x00\x20"), ErrorCode.INVALID_RECORD),
        (changed(21, b"\x00\x10"), ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        (changed(21, b"\x00\x05"), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        (bytes(batch_of([b"a"])) * 2, ErrorCode.INVALID_RECORD),
    ],
)
def test_a_bad_batch_is_refused_with_kafkas_code(batch: bytes | None, code: ErrorCode) -> None:
    found, message = refusal(batch)
    assert found is code
    assert message


def test_other_refusals() -> None:
    good = batch_of([b"a"])
    assert refusal(good, acks=5)[0] is ErrorCode.INVALID_REQUIRED_ACKS
    assert refusal(good, topic="nowhere")[0] is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert refusal(good, index=7)[0] is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert refusal(changed(21, b"\x00\x04"), version=6)[0] is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


async def test_a_refused_batch_does_not_spoil_its_neighbour() -> None:
    async with serving(num_partitions="2") as (line, _node):
        await create(line)
        parts = [
            PartitionProduceData(index=0, records=memoryview(b"rubbish" * 20)),
            PartitionProduceData(index=1, records=memoryview(batch_of([b"a"]))),
        ]
        asked = ProduceRequest(acks=-1, topic_data=[TopicProduceData(name="orders", partition_data=parts)])
        response = await line.ask(ApiKey.PRODUCE, VERSION, asked)
        bad, good = response.responses[0].partition_responses
        assert bad.error_code != ErrorCode.NONE
        assert (good.error_code, good.base_offset) == (ErrorCode.NONE, 0)


async def test_without_acks_there_is_silence_and_for_an_error_the_line_goes_dead() -> None:
    universe = Universe()
    async with serving(universe) as (line, _node):
        await create(line)
        silent = line.send(ApiKey.PRODUCE, VERSION, request(batch_of([b"a"]), acks=0))
        line._waiting.pop()
        assert (await produced(line, request(batch_of([b"b"])))).base_offset == 1
        assert not silent.done()
        other = await connected(universe)
        other.send(ApiKey.PRODUCE, VERSION, request(b"rubbish" * 20, acks=0))
        await other.ended.wait()


async def test_a_commit_that_does_not_come_is_a_time_out_or_the_reason() -> None:
    universe = Universe()
    async with serving(universe, durability="fsync") as (line, _node):
        await create(line)
        universe.disk.fail(0, errno.EIO, on=("sync",))
        answer = await produced(line, request(batch_of([b"a"])))
        assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert answer.base_offset == -1


@pytest.mark.parametrize("version", [8, 9, 12, 13])
@pytest.mark.parametrize("durability", ["os", "fsync"])
async def test_the_short_cut_and_the_long_way_come_to_the_same(version: int, durability: str) -> None:
    """One batch for one partition takes the short cut from version 9 on; two partitions never do."""
    async with serving(durability=durability, num_partitions="2") as (line, _node):
        topic = await create(line)
        for expected in range(3):
            short = request(batch_of([b"a"]), index=0)
            parts = [PartitionProduceData(index=each, records=memoryview(batch_of([b"a"]))) for each in (1, 5)]
            long = ProduceRequest(
                acks=-1, timeout_ms=1_000, topic_data=[TopicProduceData(name="orders", partition_data=parts)]
            )
            for asked in (short, long):
                asked.topic_data[0].topic_id = topic.topic_id
            one = await produced(line, short, version)
            other = await produced(line, long, version)
            one.index = other.index
            assert one == other
            assert one.base_offset == expected


@pytest.mark.parametrize("acks", [-1, 1])
async def test_the_batches_of_one_turn_are_written_with_one_call_and_answered_in_order(acks: int) -> None:
    universe = Universe()
    async with serving(universe) as (line, _node):
        await create(line)
        other = await connected(universe)
        for each in (line, other):
            await produced(each, request(batch_of([b"first"]), acks=acks))
        writes = universe.disk.steps
        asked = [request(batch_of([b"%d" % number]), acks=acks) for number in range(20)]
        waiting = [each.send(ApiKey.PRODUCE, VERSION, one) for one in asked for each in (line, other)]
        answers = [(await answer).responses[0].partition_responses[0] for answer in waiting]
        assert universe.disk.steps - writes <= 2
        assert {answer.error_code for answer in answers} == {ErrorCode.NONE}
        for mine in (answers[::2], answers[1::2]):
            offsets = [answer.base_offset for answer in mine]
            assert offsets == sorted(offsets)
        assert sorted(answer.base_offset for answer in answers) == list(range(2, 42))


@pytest.mark.parametrize("acks", [-1, 1])
async def test_a_write_that_fails_is_told_to_all_who_took_part(acks: int) -> None:
    universe = Universe()
    async with serving(universe) as (line, node):
        await create(line)
        await produced(line, request(batch_of([b"first"]), acks=acks))
        universe.disk.fail(0, errno.EIO, on=("write",))
        waiting = [line.send(ApiKey.PRODUCE, VERSION, request(batch_of(), acks=acks)) for _ in range(3)]
        answers = [(await answer).responses[0].partition_responses[0] for answer in waiting]
        assert {answer.error_code for answer in answers} == {ErrorCode.KAFKA_STORAGE_ERROR}
        assert {answer.base_offset for answer in answers} == {-1}
        assert node.stats.requests["Produce"].errors == {ErrorCode.KAFKA_STORAGE_ERROR: 3}


@pytest.mark.parametrize("version", [12, 13])
async def test_a_repeated_request_does_not_outlive_its_topic(version: int) -> None:
    async with serving() as (line, _node):
        topic = await create(line)
        asked = request(batch_of())
        asked.topic_data[0].topic_id = topic.topic_id
        assert [(await produced(line, asked, version)).base_offset for _ in range(3)] == [0, 1, 2]
        await line.ask(ApiKey.DELETE_TOPICS, 5, DeleteTopicsRequest(topic_names=["orders"], timeout_ms=1_000))
        gone = ErrorCode.UNKNOWN_TOPIC_ID if version >= 13 else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert (await produced(line, asked, version)).error_code == gone


async def test_one_line_may_write_to_many_partitions_by_turns() -> None:
    async with serving(num_partitions="3") as (line, _node):
        await create(line)
        for expected in range(4):
            for index in range(3):
                answer = await produced(line, request(batch_of(), index=index))
                assert (answer.index, answer.base_offset) == (index, expected)


async def test_a_fenced_producer_is_refused_in_each_of_its_requests_that_are_under_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The second request finds the no to the first, has to ask for another partition, and must not ask for ever."""
    verify, asked = TransactionCoordinator.verify, iter(range(20))

    def count(*given: Any, **named: Any) -> "asyncio.Future[ErrorCode]":
        next(asked)
        return verify(*given, **named)

    monkeypatch.setattr(TransactionCoordinator, "verify", count)
    async with serving() as (line, _node):
        await prepared(line, "orders", "invoices")
        fenced = await init(line)
        await init(line)
        batch = transactional_batch(fenced.producer_id, 0, b"late", epoch=fenced.producer_epoch)
        part = PartitionProduceData(index=0, records=batch)
        under_way = [
            line.send(
                ApiKey.PRODUCE,
                12,
                ProduceRequest(ID, -1, 1_000, [TopicProduceData(name=each, partition_data=[part]) for each in topics]),
            )
            for topics in (["orders"], ["orders", "invoices"], ["invoices", "orders"])
        ]
        for answer in under_way:
            codes = [topic.partition_responses[0].error_code for topic in (await answer).responses]
            assert set(codes) == {ErrorCode.INVALID_PRODUCER_EPOCH}


async def test_a_repeated_request_that_is_refused_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []
    gather = Partition.gather

    def counted(self: Partition, batch: memoryview, *, now_ms: int) -> Any:
        tried.append(len(batch))
        return gather(self, batch, now_ms=now_ms)

    monkeypatch.setattr(Partition, "gather", counted)
    async with serving(message_max_bytes="1000") as (line, _node):
        await create(line)
        for size in (10, 2_000, 2_000, 10):
            answer = await produced(line, request(batch_of([b"x" * size])))
            assert answer.error_code == (ErrorCode.MESSAGE_TOO_LARGE if size > 1_000 else ErrorCode.NONE)
            assert "1000" in (answer.error_message or "1000")
        assert len(tried) == 4


async def test_a_route_outlives_changes_of_the_metadata_that_do_not_concern_it(monkeypatch: pytest.MonkeyPatch) -> None:
    taken_apart: list[int] = []
    read_one_head = produce.read_one_head

    def counted(frame: memoryview, position: int, version: int) -> Any:
        taken_apart.append(version)
        return read_one_head(frame, position, version)

    monkeypatch.setattr(produce, "read_one_head", counted)
    async with serving() as (line, _node):
        await create(line)
        for number in range(3):
            assert (await produced(line, request(batch_of([b"x"])))).base_offset == number
            topics = [MetadataRequestTopic(name=f"other-{number}")]
            await line.ask(ApiKey.METADATA, 12, MetadataRequest(topics=topics))
        assert len(taken_apart) == 1
        await line.ask(ApiKey.DELETE_TOPICS, 5, DeleteTopicsRequest(topic_names=["orders"]))
        assert (await produced(line, request(batch_of([b"x"])))).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        await create(line)
        await asyncio.sleep(1)
        assert (await produced(line, request(batch_of([b"y"])))).base_offset == 0
