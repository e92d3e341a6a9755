"""Questions for coordinators on other brokers: which share a request, and what becomes of the answers."""

import asyncio

from riverlog.coordination.limits import VERIFIED_PER_REQUEST_MAX
from riverlog.coordination.other_brokers import OtherBrokers
from riverlog.coordination.remote_verification import Asked, Batch, Unsent, codes_in
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NodeId, TopicPartition
from riverlog.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)
from tests.support.asking import serving
from tests.support.second_broker import SecondBroker
from tests.support.transactions import P0, P1, producer_of
from tests.support.world import Universe

TX = Asked("tx", producer_of(7, 1), True)


def unsent(partition: TopicPartition = P0, asked: Asked = TX) -> Unsent:
    return Unsent(asked, partition, asyncio.get_running_loop().create_future())


async def test_a_transactional_id_stands_once_in_a_request() -> None:
    batch = Batch()
    assert batch.take(unsent(P0))
    assert batch.take(unsent(P0))
    assert batch.take(unsent(P1))
    assert not batch.take(unsent(P0, TX._replace(producer=producer_of(7, 2))))
    assert not batch.take(unsent(P0, TX._replace(adds=False)))
    assert batch.take(unsent(P0, Asked("other", producer_of(8, 1), False)))
    first, second = batch.request().transactions
    assert (first.transactional_id, first.producer_id, first.producer_epoch, first.verify_only) == ("tx", 7, 1, False)
    assert [(topic.name, topic.partitions) for topic in first.topics] == [(P0.topic, [0, 1])]
    assert (second.transactional_id, second.verify_only) == ("other", True)


async def test_a_request_has_a_bound() -> None:
    batch = Batch()
    assert all(batch.take(unsent(TopicPartition("t", index))) for index in range(VERIFIED_PER_REQUEST_MAX))
    assert not batch.take(unsent())


async def test_everybody_is_answered_and_what_was_not_looked_at_is_asked_again() -> None:
    results = [
        AddPartitionsToTxnPartitionResult(0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        AddPartitionsToTxnPartitionResult(1, ErrorCode.OPERATION_NOT_ATTEMPTED),
    ]
    response = AddPartitionsToTxnResponse(
        results_by_transaction=[AddPartitionsToTxnResult("tx", [AddPartitionsToTxnTopicResult(P0.topic, results)])]
    )
    batch = Batch()
    asked = [unsent(P0), unsent(P0), unsent(P1), unsent(TopicPartition(P0.topic, 2))]
    assert all(map(batch.take, asked))
    asked[1].answer.cancel()
    batch.settle(dict(codes_in(response)), ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert [each.answer.result() for each in (asked[0], *asked[2:])] == [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ]


async def test_a_coordinator_that_does_not_answer_is_asked_again_by_the_producer() -> None:
    universe = Universe()
    async with serving(universe) as (_line, node):
        await SecondBroker.join(node)
        parts = node.parts
        others = OtherBrokers(NodeId(1), universe.network, node.cluster_id, parts.metadata, universe.clock, "")
        asked = others.verification.verify(NodeId(2), "tx", producer_of(7, 1), P0, adds=True)
        assert await asked is ErrorCode.COORDINATOR_NOT_AVAILABLE
        await others.close()
