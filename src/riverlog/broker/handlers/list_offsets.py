"""ListOffsets: where a partition begins and ends, and where a point in time lies in it."""

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Final

from riverlog.broker.requests.context import Context, HandlerResult, Later
from riverlog.broker.requests.portions import in_turn
from riverlog.log.times import FoundTime
from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import NO_EPOCH, NO_OFFSET, NO_TIMESTAMP, Offset
from riverlog.partitions.partition import Partition
from riverlog.partitions.retry_later import RetryLater
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


def list_offsets(request: ListOffsetsRequest, context: Context) -> HandlerResult[ListOffsetsResponse]:
    """Answer each partition on its own; one that is named twice is refused, as Kafka does. Looking for times may take
    long, so that others get their turn in between."""
    response = ListOffsetsResponse()
    named = Counter((topic.name, part.partition_index) for topic in request.topics for part in topic.partitions)
    looks: list[tuple[ListOffsetsPartitionResponse, Callable[[], FoundTime]]] = []
    for topic in request.topics:
        answer = ListOffsetsTopicResponse(name=topic.name)
        response.topics.append(answer)
        for part in topic.partitions:
            place = ListOffsetsPartitionResponse(partition_index=part.partition_index, timestamp=-1, offset=-1)
            answer.partitions.append(place)
            try:
                if named[topic.name, part.partition_index] > 1:
                    raise Refusal(ErrorCode.INVALID_REQUEST, f"{topic.name}-{part.partition_index} is named twice")
                partition = context.partition(
                    Operation.DESCRIBE, topic.name, part.partition_index, part.current_leader_epoch
                )
            except Refusal as refusal:
                _refuse(place, refusal, context)
                continue
            looks.append((place, partial(_find, partition, part.timestamp, request.isolation_level, context)))
    if sum(_takes_long(part) for topic in request.topics for part in topic.partitions) > 1:
        return Later(_look_in_turns(looks, response, context))
    for number, (place, find) in enumerate(looks):
        try:
            _look(place, find, context)
        except RetryLater:  # what it wants is being read from the disk
            return Later(_look_in_turns(looks[number:], response, context))
    return response


async def _look_in_turns(
    looks: list[tuple[ListOffsetsPartitionResponse, Callable[[], FoundTime]]],
    response: ListOffsetsResponse,
    context: Context,
) -> ListOffsetsResponse:
    for place, find in looks:
        await in_turn(partial(_look, place, find, context), context.services.portions)
    return response


def _look(place: ListOffsetsPartitionResponse, find: Callable[[], FoundTime], context: Context) -> None:
    try:
        found = find()
    except Refusal as refusal:
        _refuse(place, refusal, context)
    else:
        place.timestamp, place.offset, place.leader_epoch = found.timestamp_ms, found.offset, found.leader_epoch


def _refuse(place: ListOffsetsPartitionResponse, refusal: Refusal, context: Context) -> None:
    context.stats.failed(refusal.code)
    place.error_code = refusal.code


def _takes_long(part: ListOffsetsPartition) -> bool:
    """Return whether records have to be read for it."""
    return part.timestamp >= 0 or part.timestamp == MAX_TIMESTAMP


def _find(partition: Partition, timestamp: int, isolation_level: int, context: Context) -> FoundTime:
    if context.version < _FIRST_VERSION_OF.get(timestamp, 0):
        raise Refusal(ErrorCode.UNSUPPORTED_VERSION, f"timestamp {timestamp} needs a later version of ListOffsets")
    partition.check_here()  # other looks came before this one
    readable = partition.last_stable_offset if isolation_level == _READ_COMMITTED else partition.high_watermark
    if timestamp >= 0:
        return _readable(partition.offset_for_time(timestamp), readable)
    if timestamp == LATEST:
        return FoundTime(readable, NO_TIMESTAMP, partition.leader_epoch)
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return _at(partition, partition.log.log_start_offset)
    if timestamp == MAX_TIMESTAMP:
        return _readable(partition.max_timestamp(), readable)
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):  # nothing is tiered
        return _NOWHERE
    raise Refusal(ErrorCode.UNSUPPORTED_VERSION, f"{timestamp} is neither a time nor a known position")


def _at(partition: Partition, offset: Offset) -> FoundTime:
    epoch = partition.log.epochs.of(offset)
    return FoundTime(offset, NO_TIMESTAMP, partition.leader_epoch if epoch == NO_EPOCH else epoch)


def _readable(found: FoundTime | None, readable: Offset) -> FoundTime:
    """A position that the client could not read yet is as good as none."""
    return found if found is not None and found.offset < readable else _NOWHERE
