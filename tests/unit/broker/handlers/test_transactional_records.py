"""Records of transactions on a whole node: who may write them, and who sees them when."""

import asyncio
from typing import Any

import pytest

from riverlog.log.producers.aborted_transactions import AbortedRange
from riverlog.model.access import ResourceType
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import Offset, TopicPartition
from riverlog.model.transactions import ProducerIdentity
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from riverlog.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tests.support.asking import Line, serving
from tests.support.group_lines import prepared
from tests.support.reading_committed import passed_over
from tests.support.transaction_lines import BUMPED, added, begun, ended, fetching, sent
from tests.support.world import Universe

ORDERS = TopicPartition("orders", 0)


async def fetched(line: Line, offset: int = 0, **how: Any) -> Any:
    return (await line.ask(ApiKey.FETCH, 12, fetching(offset, **how))).responses[0].partitions[0]


async def latest(line: Line, *, committed: bool) -> int:
    asked = ListOffsetsTopic(name="orders", partitions=[ListOffsetsPartition(partition_index=0, timestamp=-1)])
    request = ListOffsetsRequest(isolation_level=int(committed), topics=[asked])
    offset: int = (await line.ask(ApiKey.LIST_OFFSETS, 7, request)).topics[0].partitions[0].offset
    return offset


async def read_committed(line: Line) -> list[bytes | None]:
    """Read all that is committed, as clients do."""
    found: list[bytes | None] = []
    offset, end = 0, await latest(line, committed=True)
    while offset < end:
        answer = await fetched(line, offset)
        aborted = [
            AbortedRange(each.producer_id, each.first_offset, Offset(0), Offset(0))
            for each in answer.aborted_transactions
        ]
        for next_offset, records in passed_over(answer.records, aborted, offset):
            offset = next_offset
            found += [record.value for record in records]
    return found


async def settled(line: Line) -> None:
    """Wait until no transaction is open in the partition."""
    while await latest(line, committed=True) != await latest(line, committed=False):
        pass  # each question takes its time on the way


@pytest.mark.parametrize("version", [8, 10, 12])
async def test_a_batch_needs_a_transaction_that_its_partition_belongs_to(version: int) -> None:
    async with serving() as (line, node):
        await prepared(line, "orders")
        producer = await begun(node)
        if version < 12:
            answer = await sent(line, producer, 0, b"early", version=version)
            assert answer.error_code == ErrorCode.INVALID_TXN_STATE
            await added(node, producer, ORDERS)
        for number in range(3):
            answer = await sent(line, producer, number, b"value", version=version)
            assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, number)
        fenced = ProducerIdentity(producer.id, producer.epoch)
        producer = await begun(node)
        assert (await sent(line, fenced, 3, b"late", version=version)).error_code == (ErrorCode.INVALID_PRODUCER_EPOCH)


async def test_a_stranger_begins_no_transaction() -> None:
    async with serving() as (line, node):
        await prepared(line, "orders")
        producer = await begun(node)
        answer = await sent(line, producer, 0, b"value", transactional_id="other")
        assert answer.error_code == ErrorCode.INVALID_PRODUCER_ID_MAPPING
        answer = await sent(line, producer, 0, b"value", transactional_id=None)
        assert answer.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        assert await latest(line, committed=False) == 0


async def test_an_id_that_is_not_allowed_is_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving() as (line, node):
        await prepared(line, "orders")
        producer = await begun(node)
        monkeypatch.setattr(
            "riverlog.broker.requests.authorization.AllowEveryone.allows",
            lambda _self, _who, _operation, resource, _name: resource is not ResourceType.TRANSACTIONAL_ID,
        )
        answer = await sent(line, producer, 0, b"value")
        assert answer.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


@pytest.mark.parametrize("durability", ["os", "fsync"])
async def test_readers_of_committed_records_see_a_transaction_when_it_is_decided(durability: str) -> None:
    universe = Universe()
    async with serving(universe, durability=durability) as (line, node):
        await prepared(line, "orders")
        producer = await begun(node)
        for committed in (False, True):
            await sent(line, producer, 0, b"%d" % committed)
            offset = await latest(line, committed=True)
            assert offset < await latest(line, committed=False)
            assert (await fetched(line, offset)).records == b""
            waiting = line.send(ApiKey.FETCH, 12, fetching(offset, wait_ms=60_000))
            began = universe.clock.monotonic()
            producer = await ended(node, producer, committed=committed, version=BUMPED)
            answer = (await waiting).responses[0].partitions[0]
            assert universe.clock.monotonic() - began < 1
            assert bool(answer.aborted_transactions) is not committed
        assert (await fetched(line, committed=False)).aborted_transactions is None
        assert await read_committed(line) == [b"1"]


async def test_a_transaction_waits_for_the_end_of_the_one_before() -> None:
    async with serving(durability="fsync") as (line, node):
        await prepared(line, "orders")
        producer = await begun(node)
        for number in range(20):
            answer = await sent(line, producer, 0, b"%d" % number)
            assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, 2 * number)
            producer = await ended(node, producer, committed=number % 3 > 0, version=BUMPED)
        await settled(line)
        assert await read_committed(line) == [b"%d" % number for number in range(20) if number % 3]


async def test_requests_behind_a_verification_keep_their_order() -> None:
    async with serving() as (line, node):
        await prepared(line, "orders")
        producer = await begun(node)
        answers = await asyncio.gather(*(sent(line, producer, number, b"%d" % number) for number in range(9)))
        assert [(each.error_code, each.base_offset) for each in answers] == [(0, number) for number in range(9)]


async def test_an_open_transaction_is_described() -> None:
    async with serving() as (line, node):
        await prepared(line, "orders")
        producer = await begun(node)
        await sent(line, producer, 0, b"value")
        asked = DescribeProducersRequest([TopicRequest("orders", [0])])
        (topic,) = (await line.ask(ApiKey.DESCRIBE_PRODUCERS, 0, asked)).topics
        (described,) = topic.partitions[0].active_producers
        assert (described.coordinator_epoch, described.current_txn_start_offset) == (-1, 0)
        await ended(node, producer, committed=True, version=BUMPED)
        await settled(line)
        (topic,) = (await line.ask(ApiKey.DESCRIBE_PRODUCERS, 0, asked)).topics
        (described,) = topic.partitions[0].active_producers
        assert (described.coordinator_epoch, described.current_txn_start_offset) == (0, -1)
