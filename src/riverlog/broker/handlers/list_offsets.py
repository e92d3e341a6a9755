"""ListOffsets: where a partition begins and ends, and where a point in time lies in it."""

from typing import Final

from riverlog.broker.context import Context
from riverlog.drivers.partition import Partition
from riverlog.log.times import FoundTime
from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import NO_EPOCH, NO_OFFSET, NO_TIMESTAMP, Offset
from riverlog.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
EARLIEST_PENDING_UPLOAD: Final = -6

_FIRST_VERSION_OF: Final = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING_UPLOAD: 11}
_READ_COMMITTED: Final = 1
_NOWHERE: Final = FoundTime(NO_OFFSET, NO_TIMESTAMP, NO_EPOCH)


def list_offsets(request: ListOffsetsRequest, context: Context) -> ListOffsetsResponse:
    """Answer each partition on its own."""
    response = ListOffsetsResponse()
    for topic in request.topics:
        answer = ListOffsetsTopicResponse(name=topic.name)
        response.topics.append(answer)
        for part in topic.partitions:
            try:
                found = _find(topic.name, part, request.isolation_level, context)
            except Refusal as refusal:
                context.stats.failed(refusal.code)
                answer.partitions.append(
                    ListOffsetsPartitionResponse(
                        partition_index=part.partition_index, error_code=refusal.code, timestamp=-1, offset=-1
                    )
                )
                continue
            answer.partitions.append(
                ListOffsetsPartitionResponse(
                    partition_index=part.partition_index,
                    timestamp=found.timestamp_ms,
                    offset=found.offset,
                    leader_epoch=found.leader_epoch,
                )
            )
    return response


def _find(topic: str, part: ListOffsetsPartition, isolation_level: int, context: Context) -> FoundTime:
    if not context.allows_on_topic(Operation.DESCRIBE, topic):
        raise Refusal(ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"not allowed to describe {topic}")
    partition = context.services.replicas.get(topic, part.partition_index)
    if partition is None:
        raise Refusal(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {part.partition_index} of {topic} here"
        )
    partition.check_epoch(part.current_leader_epoch)
    timestamp = part.timestamp
    if context.version < _FIRST_VERSION_OF.get(timestamp, 0):
        raise Refusal(ErrorCode.UNSUPPORTED_VERSION, f"timestamp {timestamp} needs a later version of ListOffsets")
    readable = partition.last_stable_offset if isolation_level == _READ_COMMITTED else partition.high_watermark
    if timestamp >= 0:
        return _readable(partition.log.offset_for_time(timestamp), readable)
    if timestamp == LATEST:
        return FoundTime(readable, NO_TIMESTAMP, partition.leader_epoch)
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return _at(partition, partition.log.log_start_offset)
    if timestamp == MAX_TIMESTAMP:
        return _readable(partition.log.max_timestamp(), readable)
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):  # nothing is tiered
        return _NOWHERE
    raise Refusal(ErrorCode.UNSUPPORTED_VERSION, f"{timestamp} is neither a time nor a known position")


def _at(partition: Partition, offset: Offset) -> FoundTime:
    epoch = partition.log.epochs.of(offset)
    return FoundTime(offset, NO_TIMESTAMP, partition.leader_epoch if epoch == NO_EPOCH else epoch)


def _readable(found: FoundTime | None, readable: Offset) -> FoundTime:
    """A position that the client could not read yet is as good as none."""
    return found if found is not None and found.offset < readable else _NOWHERE
