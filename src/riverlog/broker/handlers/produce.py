"""Produce: append now, in arrival order; answer once the requested acknowledgements are in."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Final

from riverlog.broker.requests.context import Answer, Context, Hangup, Later, Parts, Place
from riverlog.broker.requests.dispatch import told
from riverlog.drivers.verification import Question, Verifying, verify
from riverlog.log.segments.gathered_write import Appended
from riverlog.model.access import Operation, ResourceType
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import NO_OFFSET, NO_TIMESTAMP, Offset
from riverlog.model.transactions import Producer, VerifyTransaction
from riverlog.partitions.partition import Partition
from riverlog.records.batch import (
    ATTRIBUTES_POSITION,
    COMPRESSION_MASK,
    HEADER_BYTES,
    TRANSACTIONAL,
    Compression,
    read_header,
)
from riverlog.records.errors import BadRecords
from riverlog.wire.apis import API_BY_KEY, ApiKey
from riverlog.wire.handwritten_codec import (
    FIRST_VERSION_BY_HAND,
    FIRST_VERSION_BY_ID,
    OneHead,
    one_answer,
    read_last_batch,
    read_one_head,
)
from riverlog.wire.headers import RequestHeader, encode_response
from riverlog.wire.messages.produce import (
    BatchIndexAndErrorMessage,
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
_FIRST_VERSION_WITH_ABORTABLE: Final = 11
_FIRST_VERSION_WITH_TRANSACTIONS_2: Final = 12
"""From this version on a client leaves it to the partition to join its transaction (KIP-890)."""
_KEPT: Final = ErrorCode.NONE
_API: Final = API_BY_KEY[ApiKey.PRODUCE]


def produce(request: ProduceRequest, context: Context) -> Answer[ProduceResponse]:
    """Append every batch that may be appended; a refused one does not spoil its neighbours."""
    if context.services.replicas.has_unopened:
        _check_recovered(request, context)
    if request.transactional_id is not None:
        _check_verified(request, request.transactional_id, context)
    response = ProduceResponse()
    waiting: list[tuple[PartitionProduceResponse, Partition, Offset]] = []
    for topic in request.topic_data:
        answer = TopicProduceResponse(name=topic.name, topic_id=topic.topic_id)
        response.responses.append(answer)
        for part in topic.partition_data:
            try:
                partition = _partition(request, topic, part, context)
                appended = partition.append(_one_batch(request, part, context), now_ms=context.now_ms)
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


def produce_one(frame: memoryview, position: int, header: RequestHeader, context: Context) -> Place | None:
    """Do the commonest request, one good batch for one open partition, and remember the way for the next.

    None, with nothing done, for every other request: `produce` does those, and finds the words for what is wrong.
    """
    version = header.api_version
    if version < FIRST_VERSION_BY_HAND:
        return None
    head = read_one_head(frame, position, version)
    if head is None or head.acks not in (ALL, LEADER):
        return None
    replicas = context.services.replicas
    try:
        if version >= FIRST_VERSION_BY_ID:
            partition = replicas.get_opened(head.topic, head.partition)
        else:
            partition = replicas.get(str(head.topic, "utf-8"), head.partition)
        transactional_id = None if head.transactional_id is None else str(head.transactional_id, "utf-8")
    except (Refusal, UnicodeDecodeError):
        return None
    if partition is None or not context.allows_on_topic(Operation.WRITE, partition.name.topic):
        return None
    if transactional_id is not None and not _allows_transactions(transactional_id, context):
        return None
    route = OneBatchRoute(head, partition, header, context)
    place = route.take(frame, head.end, header.correlation_id)
    if place is not None:
        context.client.routes.learn(frame, head.end, context.image, route)
    return place


class OneBatchRoute:
    """The way of Produce requests with one batch for one partition, from the batch to the whole response."""

    __slots__ = (
        "_acks", "_client", "_header", "_index", "_partition", "_seconds_max", "_transactional_id", "_transactions",
        "_wall_ms", "answer", "kind", "stats",
    )  # fmt: skip

    def __init__(self, head: OneHead, partition: Partition, header: RequestHeader, context: Context) -> None:
        self.kind = header.api_key << 16 | header.api_version
        self.stats = context.stats
        self.answer = one_answer(head.topic, header.api_version, head.partition)
        self._acks = head.acks
        self._client = context.client
        self._header = header
        self._index = head.partition
        self._partition = partition
        self._seconds_max = max(head.timeout_ms, 0) / 1000
        self._transactional_id = None if head.transactional_id is None else str(head.transactional_id, "utf-8")
        self._transactions = context.services.transactions
        self._wall_ms = context.services.clock.wall_ms

    def take(self, frame: memoryview, position: int, correlation_id: int) -> Place | None:
        """Append the batch that stands at this position, as `produce_one` says."""
        batch = read_last_batch(frame, position)
        if batch is None or len(batch) < HEADER_BYTES:
            return None
        if batch[ATTRIBUTES_POSITION + 1] & TRANSACTIONAL and self._transactional_id is None:
            return None
        partition = self._partition
        try:
            appended = partition.gather(batch, now_ms=self._wall_ms())
        except Refusal:
            verified = self._gather_verified(batch)
            if verified is None:
                return None
            appended = verified
        place = OneBatchPlace(self, correlation_id, appended)
        if self._acks == ALL:
            partition.when_committed(appended.last_offset, place.settle, seconds_max=self._seconds_max)
        else:
            partition.when_written(appended.last_offset, place.settle)
        return place

    def _gather_verified(self, batch: memoryview) -> Appended | None:
        """Append the first batch of a transaction if the coordinator says yes; come again where it has yet to say."""
        if self._transactional_id is None:
            return None
        now_ms = self._wall_ms()
        question = _question(
            self._partition, batch, self._transactional_id, version=self._header.api_version, now_ms=now_ms
        )
        if question is None or question.is_answered:
            return None
        _verify(self._transactions, [question])
        try:
            return self._partition.gather(batch, now_ms=now_ms)
        except Refusal:
            return None

    def response(self, correlation_id: int, appended: Appended, code: ErrorCode) -> Parts:
        """Write the whole response to a batch of which this became."""
        log_start_offset = self._partition.log.log_start_offset
        if code is _KEPT:
            response: Parts = [
                self.answer(correlation_id, appended.base_offset, appended.log_append_time_ms, log_start_offset)
            ]
        else:
            code = _code_for(code, self._partition, self._header.api_version)
            self.stats.failed(code)
            answer = _accepted(self._index, self._partition, appended)
            _take_back(answer, code)
            topic = TopicProduceResponse(self._partition.name.topic, self._partition.topic_id, [answer])
            response = encode_response(_API, self._header.api_version, correlation_id, ProduceResponse([topic]))
        client = self._client
        return told(client, _API, self._header.api_version, response) if client.takes_credits else response


class OneBatchPlace(Place):
    """The place of the answer to one batch; the partition settles it."""

    __slots__ = ("_appended", "_correlation_id", "_route")

    def __init__(self, route: OneBatchRoute, correlation_id: int, appended: Appended) -> None:
        self.parts = None
        self.line = None
        self._route = route
        self._correlation_id = correlation_id
        self._appended = appended

    def settle(self, code: ErrorCode) -> None:
        """Take the answer: the batch is acknowledged, or never will be."""
        try:
            self.parts = self._route.response(self._correlation_id, self._appended, code)
        except Exception as bug:
            if self.line is None:  # its request is still being handled
                raise
            self.line.broken(bug)
            return
        if self.line is not None:
            self.line.kept()


def _check_recovered(request: ProduceRequest, context: Context) -> None:
    """Come again, before anything is appended, if one of the partitions is being recovered."""
    for topic in request.topic_data:
        name = topic.name
        if context.version >= FIRST_VERSION_BY_ID and (found := context.image.topic_by_id(topic.topic_id)) is not None:
            name = found.name
        for part in topic.partition_data:
            with suppress(Refusal):  # each partition's own answer will say so
                context.services.replicas.check_recovered(name, part.index)


def _check_verified(request: ProduceRequest, transactional_id: str, context: Context) -> None:
    """Come again, before anything is appended, once the coordinator has said which transactions may begin, unless it
    says yes at once."""
    if not _allows_transactions(transactional_id, context):
        return
    questions: list[Question] = []
    for topic in request.topic_data:
        for part in topic.partition_data:
            with suppress(Refusal):  # each partition's own answer will say so
                partition = _partition(request, topic, part, context)
                question = _question(
                    partition, part.records, transactional_id, version=context.version, now_ms=context.now_ms
                )
                if question is not None:
                    questions.append(question)
    # With the answered ones: a no that is forgotten while another is awaited would let the request come again for ever.
    if not all(question.is_answered for question in questions):
        _verify(context.services.transactions, questions)


def _verify(port: VerifyTransaction, questions: list[Question]) -> None:
    """Ask the coordinator; come again when it has answered, unless it says yes at once."""
    verified = verify(port, questions)
    if not verified.done():
        raise Verifying(verified)


def _question(
    partition: Partition, batch: memoryview | None, transactional_id: str, *, version: int, now_ms: int
) -> Question | None:
    """Say what is to be verified before a batch may begin its transaction; None where there is nothing to ask.

    A no that was given and not forgotten yet is part of it.
    """
    if batch is None or len(batch) < HEADER_BYTES:
        return None
    header = read_header(batch)
    if not header.is_transactional or not partition.begins_transaction(header):
        return None
    verification = partition.verifications.begin(
        Producer(header.producer_id, header.producer_epoch),
        header.base_sequence,
        begins_epoch=version >= _FIRST_VERSION_WITH_TRANSACTIONS_2,
        now_ms=now_ms,
    )
    if verification is None or verification.answer is True:
        return None
    knows_abortable = version >= _FIRST_VERSION_WITH_ABORTABLE
    return Question(partition.name, transactional_id, partition.verifications, verification, knows_abortable)


def _allows_transactions(transactional_id: str, context: Context) -> bool:
    return context.allows(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id)


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


def _one_batch(request: ProduceRequest, part: PartitionProduceData, context: Context) -> memoryview:
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
            transactional_id = request.transactional_id
            if transactional_id is None or not _allows_transactions(transactional_id, context):
                raise Refusal(
                    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
                    f"not allowed to write in transactions of {transactional_id!r}",
                )
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
        record_errors=[BatchIndexAndErrorMessage(place, reason) for place, reason in refusal.reasons.items()]
        if isinstance(refusal, BadRecords)
        else [],
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

    def settle(answer: PartitionProduceResponse, partition: Partition, code: ErrorCode) -> None:
        nonlocal missing
        missing -= 1
        if code is not ErrorCode.NONE:
            code = _code_for(code, partition, context.version)
            context.stats.failed(code)
            _take_back(answer, code)
        if not missing and not answered.done():  # done already if the connection has ended
            answered.set_result(response)

    seconds_max = max(timeout_ms, 0) / 1000
    for answer, partition, last_offset in waiting:
        partition.when_committed(last_offset, partial(settle, answer, partition), seconds_max=seconds_max)
    return answered


def _code_for(code: ErrorCode, partition: Partition, version: int) -> ErrorCode:
    """Return the code for a batch that was not committed; a topic that was deleted is named as it was asked for."""
    if partition.removed and code is ErrorCode.NOT_LEADER_OR_FOLLOWER and version >= FIRST_VERSION_BY_ID:
        return ErrorCode.UNKNOWN_TOPIC_ID
    return code


def _take_back(answer: PartitionProduceResponse, code: ErrorCode) -> None:
    """Turn an accepted batch's answer into an error: it is in the log, but nobody may rely on it."""
    answer.error_code = code
    answer.error_message = f"the batch is not committed: {code.title}"
    answer.base_offset = NO_OFFSET
    answer.log_append_time_ms = NO_TIMESTAMP
    answer.log_start_offset = NO_OFFSET


def _each(response: ProduceResponse) -> Iterator[PartitionProduceResponse]:
    for topic in response.responses:
        yield from topic.partition_responses
