"""Large requests in portions: the answer is as if it had been one, and others get their turn."""

import asyncio
from collections.abc import Awaitable
from typing import Any

import pytest

from riverlog.broker.handlers import CONTROLLER_HANDLERS, HANDLERS
from riverlog.broker.limits import OFFSETS_COMMITTED_AT_ONCE_MAX, REQUEST_PORTION
from riverlog.broker.requests.context import Later
from riverlog.broker.requests.portions import PORTIONED, in_portions, is_large, kind_of
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import Offset
from riverlog.model.limits import PARTITIONS_PER_REQUEST_MAX
from riverlog.partitions.recovery import Recovering
from riverlog.records.record import read_batches
from riverlog.wire.apis import API_BY_KEY, ApiKey
from riverlog.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignableTopic,
    ReassignableTopicResponse,
)
from riverlog.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
    DeleteRecordsTopicResult,
)
from riverlog.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from riverlog.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from riverlog.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponseTopic,
)
from riverlog.wire.types import fields_of
from tests.support.asking import serving
from tests.support.batches import batch_of
from tests.unit.broker.handlers.test_produce import create, request

DELETE = PORTIONED[ApiKey.DELETE_RECORDS]


def delete(*counts: int) -> DeleteRecordsRequest:
    return DeleteRecordsRequest(
        topics=[
            DeleteRecordsTopic(name=f"t{number}", partitions=[DeleteRecordsPartition(each, 0) for each in range(count)])
            for number, count in enumerate(counts)
        ]
    )


class Handler:
    """Answers each partition, in one of the ways in which handlers answer."""

    def __init__(self, way: str) -> None:
        self.way = way
        self.sizes: list[int] = []
        self.recovered = asyncio.get_running_loop().create_future()

    def __call__(self, request: DeleteRecordsRequest) -> Any:
        if self.way == "recovering" and not self.recovered.done():
            asyncio.get_running_loop().call_soon(self.recovered.set_result, None)
            raise Recovering(self.recovered)
        self.sizes.append(sum(len(topic.partitions) for topic in request.topics))
        response = DeleteRecordsResponse(
            topics=[
                DeleteRecordsTopicResult(
                    name=topic.name,
                    partitions=[DeleteRecordsPartitionResult(each.partition_index, 7) for each in topic.partitions],
                )
                for topic in request.topics
            ]
        )
        if self.way == "async":
            return _soon(response)
        return Later(_soon(response)) if self.way == "later" else response


async def _soon(response: Any) -> Any:
    await asyncio.sleep(0)
    return response


@pytest.mark.parametrize("way", ["now", "later", "async", "recovering"])
@pytest.mark.parametrize("counts", [(5_000,), (1,) * 1_000, (0,) * 1_000, (399, 1, 0, 900, 3), (3, 5_000, 3)])
async def test_the_answer_is_the_same(way: str, counts: tuple[int, ...]) -> None:
    handler = Handler(way)
    assert is_large(delete(*counts), DELETE)
    response = await in_portions(delete(*counts), DELETE, handler, asyncio.Semaphore())
    assert [topic.name for topic in response.topics] == [f"t{number}" for number in range(len(counts))]
    given = [[each.partition_index for each in topic.partitions] for topic in response.topics]
    assert given == [list(range(count)) for count in counts]
    assert max(handler.sizes) < 2 * REQUEST_PORTION
    assert len(handler.sizes) > 1


async def test_others_get_their_turn_in_between() -> None:
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    await in_portions(delete(REQUEST_PORTION * 10), DELETE, Handler("now"), asyncio.Semaphore())
    task.cancel()
    assert turns >= 10


async def test_portions_of_several_requests_are_done_one_in_a_turn_of_the_loop() -> None:
    """Else a client with a hundred connections would have a hundred portions done before anybody else's request."""
    done, most = 0, 0

    async def other() -> None:
        nonlocal done, most
        while True:
            most, done = max(most, done), 0
            await asyncio.sleep(0)

    def handle(request: DeleteRecordsRequest) -> DeleteRecordsResponse:
        nonlocal done
        done += 1
        return DeleteRecordsResponse(topics=[])

    task = asyncio.create_task(other())
    turns = asyncio.Semaphore()
    await asyncio.gather(*(in_portions(delete(REQUEST_PORTION * 3), DELETE, handle, turns) for _ in range(10)))
    task.cancel()
    assert most == 1


async def test_offsets_of_many_groups_are_fetched_in_portions() -> None:
    kind = kind_of(ApiKey.OFFSET_FETCH, 8)
    topics = [OffsetFetchRequestTopic(name=f"t{number}") for number in range(3 * REQUEST_PORTION)]
    groups = [OffsetFetchRequestGroup("all"), OffsetFetchRequestGroup("some", topics=topics)]
    asked = OffsetFetchRequest(groups=groups)
    assert is_large(asked, kind)
    sizes: list[int] = []

    def handle(request: OffsetFetchRequest) -> OffsetFetchResponse:
        sizes.append(sum(len(group.topics or ()) for group in request.groups))
        return OffsetFetchResponse(
            groups=[
                OffsetFetchResponseGroup(
                    group.group_id, [OffsetFetchResponseTopic(name=topic.name) for topic in group.topics or ()]
                )
                for group in request.groups
            ]
        )

    response = await in_portions(asked, kind, handle, asyncio.Semaphore())
    assert [group.group_id for group in response.groups] == ["all", "some"]
    assert [topic.name for topic in response.groups[1].topics] == [topic.name for topic in topics]
    assert max(sizes) <= REQUEST_PORTION
    assert {field.name for field in fields_of(OffsetFetchResponseGroup)} >= {kind.answered_nested}


def test_small_requests_are_left_alone() -> None:
    assert not is_large(delete(1, 2, 3), DELETE)
    assert not is_large(MetadataRequest(topics=None), PORTIONED[ApiKey.METADATA])


async def test_no_more_topics_are_made_by_many_names_than_by_one_request() -> None:
    seen: set[bool] = set()

    def handle(request: MetadataRequest) -> Awaitable[Any]:
        seen.add(request.allow_auto_topic_creation)
        return _soon(MetadataResponse())

    for count in (PARTITIONS_PER_REQUEST_MAX, PARTITIONS_PER_REQUEST_MAX + 1):
        topics = [MetadataRequestTopic(name=str(number)) for number in range(count)]
        asked = MetadataRequest(topics=topics, allow_auto_topic_creation=True)
        seen.clear()
        await in_portions(asked, PORTIONED[ApiKey.METADATA], handle, asyncio.Semaphore())
        assert seen == {count <= PARTITIONS_PER_REQUEST_MAX}


def test_a_batch_that_may_begin_a_transaction_is_not_kept_waiting_for_its_turn() -> None:
    """The coordinator's no is forgotten behind those who come again at once: it would be asked for ever."""
    asked = request(*[None] * (2 * REQUEST_PORTION))
    assert is_large(asked, PORTIONED[ApiKey.PRODUCE])
    asked.transactional_id = "mine"
    assert not is_large(asked, PORTIONED[ApiKey.PRODUCE])


@pytest.mark.parametrize("key", PORTIONED)
def test_the_table_names_fields_of_the_messages(key: ApiKey) -> None:
    assert key in {**HANDLERS, **CONTROLLER_HANDLERS}
    api, kind = API_BY_KEY[key], PORTIONED[key]
    assert set(kind.asked) <= {field.name for field in fields_of(api.request)}
    assert kind.answered in {field.name for field in fields_of(api.response)}


async def test_a_node_answers_many_names_in_order() -> None:
    async with serving() as (line, _node):
        names = [f"t{number}" for number in range(3 * REQUEST_PORTION)]
        topics = [MetadataRequestTopic(name=name) for name in names]
        asked = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
        large = line.send(ApiKey.METADATA, 12, asked)
        small = line.send(ApiKey.METADATA, 12, MetadataRequest(topics=[]))
        answer = await large
        assert [topic.name for topic in answer.topics] == names
        assert {topic.error_code for topic in answer.topics} == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        assert (await small).brokers == answer.brokers


@pytest.mark.parametrize("acks", [-1, 0])
async def test_each_batch_of_a_large_request_is_written_once_and_in_order(acks: int) -> None:
    """With requests behind it, whose bytes come to lie where its own were received."""
    async with serving() as (line, node):
        await create(line)
        count = 2 * REQUEST_PORTION + 7
        values = [b"%06d" % number for number in range(2 * count)]
        for part in (values[:count], values[count:]):
            asked = request(*(batch_of([value]) for value in part), acks=acks)
            assert is_large(asked, PORTIONED[ApiKey.PRODUCE])
            answered = line.send(ApiKey.PRODUCE, 9, asked)
            if not acks:
                line.forget(answered)
        await line.ask(ApiKey.METADATA, 12, MetadataRequest(topics=[]))
        if acks:
            parts = answered.result().responses[0].partition_responses
            assert [part.base_offset for part in parts] == list(range(count, 2 * count))
        log = node.parts.replicas.get("orders", 0)
        assert log is not None
        found = log.read(Offset(0), bytes_max=1 << 20, upto=Offset(2 * count), at_least_one=True).records
        assert found is not None
        batches = read_batches(found.file.read(found.position, found.size))
        assert [record.value for _header, records in batches for record in records] == values


def test_offsets_of_a_member_with_many_partitions_are_one_batch() -> None:
    def commit(count: int) -> OffsetCommitRequest:
        parts = [OffsetCommitRequestPartition(partition_index=index) for index in range(count)]
        return OffsetCommitRequest(group_id="g", topics=[OffsetCommitRequestTopic(name="t", partitions=parts)])

    kind = PORTIONED[ApiKey.OFFSET_COMMIT]
    assert not is_large(commit(OFFSETS_COMMITTED_AT_ONCE_MAX - 1), kind)
    assert is_large(commit(OFFSETS_COMMITTED_AT_ONCE_MAX), kind)


async def test_a_later_portion_that_is_refused_refuses_the_whole() -> None:
    kind, said = PORTIONED[ApiKey.ALTER_PARTITION_REASSIGNMENTS], "It leads no more."
    topics = [ReassignableTopic(f"t{number}") for number in range(kind.size + 1)]

    def handle(portion: AlterPartitionReassignmentsRequest) -> AlterPartitionReassignmentsResponse:
        if len(portion.topics) == 1:
            return AlterPartitionReassignmentsResponse(error_code=ErrorCode.NOT_CONTROLLER, error_message=said)
        return AlterPartitionReassignmentsResponse(
            responses=[ReassignableTopicResponse(each.name) for each in portion.topics]
        )

    whole = await in_portions(AlterPartitionReassignmentsRequest(topics=topics), kind, handle, asyncio.Semaphore(1))
    assert (whole.error_code, whole.error_message) == (ErrorCode.NOT_CONTROLLER, said)
    assert len(whole.responses) == kind.size
