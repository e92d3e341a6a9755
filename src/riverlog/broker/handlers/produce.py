"""Produce: append now, in arrival order; answer once the requested acknowledgements are in."""

import asyncio
from collections.abc import Iterator
from functools import partial
from typing import Final

from riverlog.broker.context import Answer, Context, Hangup, Later, ShortAnswer
from riverlog.drivers.partition import Partition
from riverlog.log.log import Appended
from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import NO_OFFSET, NO_TIMESTAMP, Offset
from riverlog.records.batch import ATTRIBUTES_POSITION, COMPRESSION_MASK, HEADER_BYTES, TRANSACTIONAL, Compression
from riverlog.wire.by_hand import FIRST_VERSION_BY_ID, OneBatch, read_one_batch, write_one_answer
from riverlog.wire.headers import RequestHeader
from riverlog.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)

NONE: Final = 0
LEADER: Final = 1
ALL: Final = -1

_FIRST_VERSION_WITH_ZSTD: Final = 7


def produce(request: ProduceRequest, context: Context) -> Answer[ProduceResponse]:
    """Append every batch that may be appended; a refused one does not spoil its neighbours."""
    response = ProduceResponse()
    waiting: list[tuple[PartitionProduceResponse, Partition, Offset]] = []
    for topic in request.topic_data:
        answer = TopicProduceResponse(name=topic.name, topic_id=topic.topic_id)
        response.responses.append(answer)
        for part in topic.partition_data:
            try:
                partition = _partition(request, topic, part, context)
                appended = partition.append(_one_batch(part, context), now_ms=context.now_ms)
            except Refusal as refusal:
                context.stats.failed(refusal.code)
                answer.partition_responses.append(_refused(part.index, refusal))
                continue
            accepted = _accepted(part.index, partition, appended)
            answer.partition_responses.append(accepted)
            if request.acks == ALL and appended.last_offset >= partition.high_watermark:
                waiting.append((accepted, partition, appended.last_offset))
    if request.acks == NONE:
        _hang_up_on_errors(response)
        return None
    if not waiting:
        return response
    return Later(_committed(response, waiting, timeout_ms=request.timeout_ms, context=context))


def produce_one(frame: memoryview, position: int, header: RequestHeader, context: Context) -> ShortAnswer:
    """Do the commonest request, one good batch for one open partition, without building messages on the way.

    None, with nothing done, for every other request: `produce` does those, and finds the words for what is wrong.
    """
    version = header.api_version
    one = read_one_batch(frame, position, version)
    if one is None or one.acks not in (ALL, LEADER) or len(one.records) < HEADER_BYTES:
        return None
    if one.records[ATTRIBUTES_POSITION + 1] & TRANSACTIONAL:
        return None
    replicas = context.services.replicas
    try:
        if version >= FIRST_VERSION_BY_ID:
            partition = replicas.get_opened(one.topic, one.partition)
        else:
            partition = replicas.get(str(one.topic, "utf-8"), one.partition)
        if partition is None or not context.allows_on_topic(Operation.WRITE, partition.name.topic):
            return None
        appended = partition.append(one.records, now_ms=context.now_ms)
    except (Refusal, UnicodeDecodeError):
        return None
    if one.acks == ALL and appended.last_offset >= partition.high_watermark:
        return Later(_one_committed(one, partition, appended, context))
    return write_one_answer(
        header.correlation_id,
        one.topic,
        version,
        one.partition,
        appended.base_offset,
        appended.log_append_time_ms,
        partition.log.log_start_offset,
    )


def _one_committed(
    one: OneBatch, partition: Partition, appended: Appended, context: Context
) -> asyncio.Future[ProduceResponse]:
    accepted = _accepted(one.partition, partition, appended)
    topic = TopicProduceResponse(partition.name.topic, partition.topic_id, [accepted])
    waiting = [(accepted, partition, appended.last_offset)]
    return _committed(ProduceResponse([topic]), waiting, timeout_ms=one.timeout_ms, context=context)


def _partition(
    request: ProduceRequest, topic: TopicProduceData, part: PartitionProduceData, context: Context
) -> Partition:
    """Find the partition to append to, or refuse."""
    if request.acks not in (ALL, LEADER, NONE):
        raise Refusal(ErrorCode.INVALID_REQUIRED_ACKS, f"acks may be -1, 0 or 1, not {request.acks}")
    name = topic.name
    if context.version >= FIRST_VERSION_BY_ID:
        found = context.image.topic_by_id(topic.topic_id)
        if found is None:
            raise Refusal(ErrorCode.UNKNOWN_TOPIC_ID, f"no topic has the id {topic.topic_id}")
        name = found.name
    if not context.allows_on_topic(Operation.WRITE, name):
        raise Refusal(ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"not allowed to write to {name}")
    partition = context.services.replicas.get(name, part.index)
    if partition is None:
        raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {part.index} of {name} here")
    return partition


def _one_batch(part: PartitionProduceData, context: Context) -> memoryview:
    """Give the partition's records; what is in them is checked at the append."""
    records = part.records
    if records is None or len(records) == 0:
        raise Refusal(ErrorCode.INVALID_RECORD, "a request must carry exactly one record batch for each partition")
    assert isinstance(records, memoryview)
    if len(records) >= HEADER_BYTES:
        attributes = records[ATTRIBUTES_POSITION + 1]
        if attributes & COMPRESSION_MASK == Compression.ZSTD and context.version < _FIRST_VERSION_WITH_ZSTD:
            raise Refusal(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, "zstd needs Produce version 7 or later")
        if attributes & TRANSACTIONAL:
            raise Refusal(ErrorCode.INVALID_TXN_STATE, "this node does not offer transactions")
    return records


def _accepted(index: int, partition: Partition, appended: Appended) -> PartitionProduceResponse:
    return PartitionProduceResponse(
        index=index,
        base_offset=appended.base_offset,
        log_append_time_ms=appended.log_append_time_ms,
        log_start_offset=partition.log.log_start_offset,
    )


def _refused(index: int, refusal: Refusal) -> PartitionProduceResponse:
    return PartitionProduceResponse(
        index=index,
        error_code=refusal.code,
        error_message=refusal.message,
        base_offset=NO_OFFSET,
        log_append_time_ms=NO_TIMESTAMP,
        log_start_offset=NO_OFFSET,
    )


def _hang_up_on_errors(response: ProduceResponse) -> None:
    """acks=0 asks for silence: an error can be told only by hanging up, so that the client looks again."""
    for answer in _each(response):
        if answer.error_code:
            raise Hangup(f"a batch sent with acks=0 was refused: {answer.error_message}")


def _committed(
    response: ProduceResponse,
    waiting: list[tuple[PartitionProduceResponse, Partition, Offset]],
    *,
    timeout_ms: int,
    context: Context,
) -> asyncio.Future[ProduceResponse]:
    """Give the response once every batch in `waiting` is committed, or the client's patience ends."""
    answered: asyncio.Future[ProduceResponse] = asyncio.get_running_loop().create_future()
    missing = len(waiting)

    def settle(answer: PartitionProduceResponse, code: ErrorCode) -> None:
        nonlocal missing
        missing -= 1
        if code is not ErrorCode.NONE:
            context.stats.failed(code)
            _take_back(answer, code)
        if not missing and not answered.done():  # done already if the connection has ended
            answered.set_result(response)

    seconds_max = max(timeout_ms, 0) / 1000
    for answer, partition, last_offset in waiting:
        partition.when_committed(last_offset, partial(settle, answer), seconds_max=seconds_max)
    return answered


def _take_back(answer: PartitionProduceResponse, code: ErrorCode) -> None:
    """Turn an accepted batch's answer into an error: it is in the log, but nobody may rely on it."""
    answer.error_code = code
    answer.error_message = f"the batch was appended but not committed: {code.title}"
    answer.base_offset = NO_OFFSET
    answer.log_append_time_ms = NO_TIMESTAMP
    answer.log_start_offset = NO_OFFSET


def _each(response: ProduceResponse) -> Iterator[PartitionProduceResponse]:
    for topic in response.responses:
        yield from topic.partition_responses
