"""DescribeProducers: the idempotent producers that a partition remembers, and where each of them is."""

from riverlog.broker.requests.context import Context
from riverlog.model.access import Operation
from riverlog.model.errors import Refusal
from riverlog.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)


def describe_producers(request: DescribeProducersRequest, context: Context) -> DescribeProducersResponse:
    """Answer each partition on its own."""
    return DescribeProducersResponse(
        topics=[
            TopicResponse(topic.name, [_result(topic.name, index, context) for index in topic.partition_indexes])
            for topic in request.topics
        ]
    )


def _result(topic: str, index: int, context: Context) -> PartitionResponse:
    try:
        return PartitionResponse(partition_index=index, active_producers=_producers(topic, index, context))
    except Refusal as refusal:
        context.stats.failed(refusal.code)
        return PartitionResponse(partition_index=index, error_code=refusal.code, error_message=refusal.message)


def _producers(topic: str, index: int, context: Context) -> list[ProducerState]:
    partition = context.partition(Operation.READ, topic, index)
    return [
        ProducerState(
            producer_id=producer_id,
            producer_epoch=producer.epoch,
            last_sequence=producer.batches[-1].last_sequence if producer.batches else -1,
            last_timestamp=producer.heard_ms,
            coordinator_epoch=producer.coordinator_epoch,
            current_txn_start_offset=producer.transaction_offset,
        )
        for producer_id, producer in partition.log.producers.items()
    ]
