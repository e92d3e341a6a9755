"""OffsetForLeaderEpoch: where a leader epoch ended, so that a reader notices a log that was cut (KIP-320)."""

from riverlog.broker.requests.context import Context
from riverlog.model.access import Operation
from riverlog.model.errors import Refusal
from riverlog.model.ids import LeaderEpoch
from riverlog.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)


def offset_for_leader_epoch(request: OffsetForLeaderEpochRequest, context: Context) -> OffsetForLeaderEpochResponse:
    """Answer each partition on its own."""
    response = OffsetForLeaderEpochResponse()
    for topic in request.topics:
        answer = OffsetForLeaderTopicResult(topic=topic.topic)
        response.topics.append(answer)
        for part in topic.partitions:
            try:
                answer.partitions.append(_end(topic.topic, part, context))
            except Refusal as refusal:
                context.stats.failed(refusal.code)
                answer.partitions.append(EpochEndOffset(partition=part.partition, error_code=refusal.code))
    return response


def _end(topic: str, part: OffsetForLeaderPartition, context: Context) -> EpochEndOffset:
    partition = context.partition(Operation.DESCRIBE, topic, part.partition, part.current_leader_epoch)
    epoch, end_offset = partition.end_of_epoch(LeaderEpoch(part.leader_epoch))
    return EpochEndOffset(partition=part.partition, leader_epoch=epoch, end_offset=end_offset)
