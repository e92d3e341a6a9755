"""WriteTxnMarkers: transactions are ended from outside, partition by partition."""

import asyncio

import pytest

from riverlog.broker.limits import REQUEST_PORTION
from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.write_txn_markers import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest
from tests.support.asking import Line, serving
from tests.support.denial import deny
from tests.support.group_lines import prepared
from tests.support.transaction_lines import begun, fetching, sent
from tests.support.world import PatientWorkers, Universe


def marker(producer: int, epoch: int, *partitions: int, version: int = 0) -> WritableTxnMarker:
    topics = [WritableTxnMarkerTopic("orders", list(partitions))]
    return WritableTxnMarker(producer, epoch, False, topics, coordinator_epoch=0, transaction_version=version)


async def codes(line: Line, *markers: WritableTxnMarker, version: int = 2) -> list[list[int]]:
    answer = await line.ask(ApiKey.WRITE_TXN_MARKERS, version, WriteTxnMarkersRequest(list(markers)))
    return [[part.error_code for topic in each.topics for part in topic.partitions] for each in answer.markers]


async def test_what_was_left_open_is_aborted() -> None:
    async with serving() as (line, node):
        await prepared(line, "orders")
        producer = await begun(node)
        assert (await sent(line, producer, 0, b"value")).error_code == ErrorCode.NONE
        partition = node.parts.replicas.get("orders", 0)
        assert partition is not None
        assert partition.last_stable_offset == 0
        assert await codes(line, marker(producer.id, producer.epoch, 0, 1, 99), version=1) == [
            [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        ]
        assert partition.last_stable_offset == 2


async def test_a_late_marker_of_the_second_version_ends_nothing() -> None:
    async with serving() as (line, node):
        await prepared(line, "orders")
        producer = await begun(node)
        await sent(line, producer, 0, b"value")
        late, right = (marker(producer.id, producer.epoch + bump, 0, version=2) for bump in (0, 1))
        assert await codes(line, late, right, right) == [
            [ErrorCode.INVALID_PRODUCER_EPOCH],
            [ErrorCode.NONE],
            [ErrorCode.NONE],
        ]
        partition = node.parts.replicas.get("orders", 0)
        assert partition is not None
        assert partition.high_watermark == 2, "what was repeated was not written again"


async def test_a_partition_that_is_named_again_gets_one_marker_and_the_same_answer() -> None:
    async with serving() as (line, node):
        await prepared(line, "orders")
        producer = await begun(node)
        await sent(line, producer, 0, b"value")
        assert await codes(line, marker(producer.id, producer.epoch, *[0] * 1_000)) == [[ErrorCode.NONE] * 1_000]
        partition = node.parts.replicas.get("orders", 0)
        assert partition is not None
        assert partition.high_watermark == 2


async def test_not_everybody_may_end_transactions(monkeypatch: pytest.MonkeyPatch) -> None:
    deny(monkeypatch, Operation.CLUSTER_ACTION, Operation.ALTER)
    async with serving() as (line, _node):
        assert await codes(line, marker(7, 0, 0)) == [[ErrorCode.CLUSTER_AUTHORIZATION_FAILED]]


@pytest.mark.parametrize("named", [1, 3 * REQUEST_PORTION])
async def test_requests_behind_markers_find_them_written(named: int) -> None:
    async with serving() as (line, node):
        await prepared(line, "orders")
        producer = await begun(node)
        await sent(line, producer, 0, b"value")
        request = WriteTxnMarkersRequest([marker(producer.id, producer.epoch, *range(named - 1, -1, -1))])
        written = line.send(ApiKey.WRITE_TXN_MARKERS, 1, request)
        behind = line.send(ApiKey.FETCH, 12, fetching())
        (part,) = (await behind).responses[0].partitions
        assert part.last_stable_offset == 2
        assert written.done()


async def test_while_coordinators_read_their_logs_senders_look_for_the_leader_again() -> None:
    universe = Universe()
    async with serving(universe, durability="fsync") as (line, node):
        await prepared(line, "orders")
        producer = await begun(node)
        await asyncio.sleep(1)
        await universe.lose_power()
    universe.workers = PatientWorkers(universe.random, seconds_max=60.0)
    async with serving(universe, durability="fsync") as (line, node):
        assert node.parts.transactions.loading() > 0
        late = marker(producer.id, producer.epoch, 1)
        assert await codes(line, late) == [[ErrorCode.NOT_LEADER_OR_FOLLOWER]]
        await asyncio.sleep(300)
        assert await codes(line, late) == [[ErrorCode.NONE]]
