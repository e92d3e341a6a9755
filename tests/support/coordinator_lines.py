"""Transactions over a raw line: what a producer says to its coordinator, in any version."""

from typing import Any

from riverlog.model.errors import ErrorCode
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from riverlog.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from riverlog.wire.messages.describe_transactions import DescribeTransactionsRequest
from riverlog.wire.messages.end_txn import EndTxnRequest
from riverlog.wire.messages.find_coordinator import FindCoordinatorRequest
from riverlog.wire.messages.init_producer_id import InitProducerIdRequest
from riverlog.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.support.asking import Line

ID = "payments"
TRANSACTIONAL_ID = 1


async def prepared(line: Line, *topics: str) -> None:
    """Find the coordinator, which creates its topic, and create others."""
    request = FindCoordinatorRequest(key_type=TRANSACTIONAL_ID, coordinator_keys=[ID])
    (found,) = (await line.ask(ApiKey.FIND_COORDINATOR, 6, request)).coordinators
    assert found.error_code == ErrorCode.NONE
    await line.ask(ApiKey.METADATA, 12, MetadataRequest([MetadataRequestTopic(name=topic) for topic in topics]))


async def init(line: Line, version: int = 5, **more: Any) -> Any:
    """Ask for the right to write."""
    request = InitProducerIdRequest(**{"transactional_id": ID, "transaction_timeout_ms": 60_000} | more)
    return await line.ask(ApiKey.INIT_PRODUCER_ID, version, request)


async def add(line: Line, producer: Any, *partitions: int, topic: str = "t", version: int = 3) -> list[ErrorCode]:
    """Take partitions of a topic into the transaction."""
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=ID,
        v3_and_below_producer_id=producer.producer_id,
        v3_and_below_producer_epoch=producer.producer_epoch,
        v3_and_below_topics=[AddPartitionsToTxnTopic(topic, list(partitions or (0,)))],
    )
    response = await line.ask(ApiKey.ADD_PARTITIONS_TO_TXN, version, request)
    (result,) = response.results_by_topic_v3_and_below
    return [ErrorCode(each.partition_error_code) for each in result.results_by_partition]


async def add_offsets(line: Line, producer: Any, group_id: str, version: int = 4) -> ErrorCode:
    """Make the transaction commit offsets of a group."""
    request = AddOffsetsToTxnRequest(ID, producer.producer_id, producer.producer_epoch, group_id)
    return ErrorCode((await line.ask(ApiKey.ADD_OFFSETS_TO_TXN, version, request)).error_code)


async def end(line: Line, producer: Any, *, committed: bool = True, version: int = 5) -> Any:
    """Commit or abort."""
    request = EndTxnRequest(ID, producer.producer_id, producer.producer_epoch, committed)
    return await line.ask(ApiKey.END_TXN, version, request)


async def described(line: Line, transactional_id: str = ID) -> Any:
    """Ask what a transactional id is doing."""
    request = DescribeTransactionsRequest([transactional_id])
    (state,) = (await line.ask(ApiKey.DESCRIBE_TRANSACTIONS, 0, request)).transaction_states
    return state
