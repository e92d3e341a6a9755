"""WriteTxnMarkers: write how transactions ended, now, in arrival order; answer once that is committed."""

from riverlog.broker.context import Answer, Context, Later
from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import ProducerEpoch, ProducerId, TopicPartition
from riverlog.model.transactions import TransactionMarkers, TransactionVersion
from riverlog.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)


def write_txn_markers(request: WriteTxnMarkersRequest, context: Context) -> Answer[WriteTxnMarkersResponse]:
    """Answer each partition of each producer on its own."""
    return Later(_written(request, context))


async def _written(request: WriteTxnMarkersRequest, context: Context) -> WriteTxnMarkersResponse:
    allowed = context.allows_on_cluster(Operation.CLUSTER_ACTION) or context.allows_on_cluster(Operation.ALTER)
    begun = [context.services.marking.begin(_markers(each)) if allowed else None for each in request.markers]
    response = WriteTxnMarkersResponse()
    for asked, under_way in zip(request.markers, begun, strict=True):
        result = WritableTxnMarkerResult(asked.producer_id)
        response.markers.append(result)
        for topic in asked.topics:
            answer = WritableTxnMarkerTopicResult(topic.name)
            result.topics.append(answer)
            for index in topic.partition_indexes:
                code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
                if under_way is not None:
                    code = await under_way[TopicPartition(topic.name, index)]
                if code is not ErrorCode.NONE:
                    context.stats.failed(code)
                answer.partitions.append(WritableTxnMarkerPartitionResult(index, code))
    return response


def _markers(asked: WritableTxnMarker) -> TransactionMarkers:
    version = TransactionVersion.EPOCH_PER_TRANSACTION
    return TransactionMarkers(
        producer_id=ProducerId(asked.producer_id),
        producer_epoch=ProducerEpoch(asked.producer_epoch),
        coordinator_epoch=asked.coordinator_epoch,
        committed=asked.transaction_result,
        partitions=tuple(
            TopicPartition(topic.name, index) for topic in asked.topics for index in topic.partition_indexes
        ),
        version=version if asked.transaction_version >= version else TransactionVersion.CLASSIC,
    )
