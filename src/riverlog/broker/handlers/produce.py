"""Produce: append now, in arrival order; answer once the requested acknowledgements are in.

A request is read by the general codec or, in its commonest form, by hand (`produce_one`). Both find a partition with
`_find`, hold a batch against the request's `Terms`, and have transactions verified by `_verify` before they begin.
"""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final, Self
from uuid import UUID

from riverlog.broker.requests.context import Context, HandlerResult, Hangup, Later, Parts, PendingResponse
from riverlog.broker.requests.dispatch import encoded, told
from riverlog.broker.requests.leaders import WRONG_LEADER, current_leader, endpoints_of
from riverlog.coordination.verification import Verifying, verify
from riverlog.log.segments.gathered_write import AppendResult
from riverlog.model.access import Operation, ResourceType
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import NO_OFFSET, NO_TIMESTAMP, NO_TOPIC_ID, NodeId, Offset, TopicId
from riverlog.model.transactions import ProducerIdentity, VerifyTransaction
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
from riverlog.transactions.verification import Question
from riverlog.wire.apis import API_BY_KEY, ApiKey
from riverlog.wire.handwritten_codec import (
    FIRST_VERSION_BY_HAND,
    FIRST_VERSION_BY_ID,
    OneHead,
    one_answer,
    read_last_batch,
    read_one_head,
)
from riverlog.wire.headers import RequestHeader
from riverlog.wire.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
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


@dataclass(frozen=True, slots=True)
class Terms:
    """What a request's batches must comply with."""

    version: int
    transactional_id: str | None
    may_transact: bool
    """Whether they may belong to transactions of this id."""

    @classmethod
    def of(cls, transactional_id: str | None, context: Context) -> Self:
        """Find out what the client may do."""
        may_transact = transactional_id is not None and context.allows(
            Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id
        )
        return cls(context.version, transactional_id, may_transact)

    def check(self, batch: memoryview) -> None:
        """Refuse what this request may not carry; what is in the batch is checked when it is appended."""
        if len(batch) < HEADER_BYTES:
            return
        attributes = batch[ATTRIBUTES_POSITION + 1]
        if attributes & COMPRESSION_MASK == Compression.ZSTD and self.version < _FIRST_VERSION_WITH_ZSTD:
            raise Refusal(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, "zstd needs Produce version 7 or later")
        if attributes & TRANSACTIONAL and not self.may_transact:
            raise Refusal(
                ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
                f"not allowed to write in transactions of {self.transactional_id!r}",
            )


def produce(request: ProduceRequest, context: Context) -> HandlerResult[ProduceResponse]:
    """Append every batch that may be appended; a refused one does not spoil its neighbours."""
    terms = Terms.of(request.transactional_id, context)
    if context.services.registry.has_unopened:
        _check_recovered(request, context)
    if terms.may_transact:
        _check_verified(request, terms, context)
    response = ProduceResponse()
    waiting: list[tuple[PartitionProduceResponse, Partition, Offset]] = []
    for topic in request.topic_data:
        answer = TopicProduceResponse(name=topic.name, topic_id=topic.topic_id)
        response.responses.append(answer)
        for part in topic.partition_data:
            try:
                partition = _find(context, topic.name, topic.topic_id, part.index, request.acks)
                batch = _one_batch(part)
                terms.check(batch)
                appended = partition.append(batch, now_ms=context.now_ms)
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
    _name_leaders(response, context)
    if not waiting:
        return response
    return Later(_committed(response, waiting, timeout_ms=request.timeout_ms, context=context))


def produce_one(frame: memoryview, position: int, header: RequestHeader, context: Context) -> PendingResponse | None:
    """Do a request of the commonest form, one batch for one partition, and remember its route for the next one like it.

    None, with nothing done, for every other form: `produce` does those.
    """
    version = header.api_version
    head = read_one_head(frame, position, version) if version >= FIRST_VERSION_BY_HAND else None
    if head is None or head.acks not in (ALL, LEADER) or read_last_batch(frame, head.end) is None:
        return None
    name, topic_id = "", NO_TOPIC_ID
    try:
        if version >= FIRST_VERSION_BY_ID:
            topic_id = TopicId(UUID(bytes=head.topic))
        else:
            name = str(head.topic, "utf-8")
        transactional_id = None if head.transactional_id is None else str(head.transactional_id, "utf-8")
    except UnicodeDecodeError:
        return None
    try:
        partition = _find(context, name, topic_id, head.partition, head.acks)
    except Refusal as refusal:
        context.stats.failed(refusal.code)
        answer = TopicProduceResponse(name, topic_id, [_refused(head.partition, refusal)])
        response = ProduceResponse([answer])
        _name_leaders(response, context)
        return PendingResponse(encoded(_API, context, response))
    route = ProduceRoute(head, partition, Terms.of(transactional_id, context), header.api_key, context)
    context.client.routes.learn(frame, head.end, route, context.services.authorizer.version)
    return route.take(frame, head.end, header.correlation_id)


class ProduceRoute:
    """The route of Produce requests with one batch for one partition, from the batch to the whole response.

    It holds as long as this node leads the partition: a batch does not say in which epoch its sender believes.
    """

    __slots__ = (
        "_acks", "_answer", "_context", "_index", "_partition", "_seconds_max", "_terms", "_transactions", "_wall_ms",
        "kind", "stats",
    )  # fmt: skip

    def __init__(self, head: OneHead, partition: Partition, terms: Terms, api_key: int, context: Context) -> None:
        self.kind = api_key << 16 | context.version
        self.stats = context.stats
        self._acks = head.acks
        self._answer = one_answer(head.topic, context.version, head.partition)
        self._context = context
        self._index = head.partition
        self._partition = partition
        self._seconds_max = max(head.timeout_ms, 0) / 1000
        self._terms = terms
        self._transactions = context.services.transactions
        self._wall_ms = context.services.clock.wall_ms

    def take(self, frame: memoryview, position: int, correlation_id: int) -> PendingResponse | None:
        """Append the batch that stands at this position; None where the request is of another form."""
        partition = self._partition
        batch = read_last_batch(frame, position)
        if batch is None or not partition.is_led:
            return None
        try:
            if len(batch) < HEADER_BYTES or batch[ATTRIBUTES_POSITION + 1]:  # a plain batch complies with all terms
                self._terms.check(batch)
            try:
                appended = partition.gather(batch, now_ms=self._wall_ms())
            except Refusal as refusal:
                appended = self._gather_verified(batch, refusal)
        except Refusal as refusal:
            self.stats.failed(refusal.code)
            return PendingResponse(self._encode(correlation_id, _refused(self._index, refusal)))
        pending = PendingProduce(self, correlation_id, appended)
        if self._acks == ALL:
            partition.when_committed(appended.last_offset, pending.settle, seconds_max=self._seconds_max)
        else:
            partition.when_written(appended.last_offset, pending.settle)
        return pending

    def _gather_verified(self, batch: memoryview, refusal: Refusal) -> AppendResult:
        """Append a refused batch if it is the first of its transaction and the coordinator says yes; RetryLater
        where it has yet to."""
        now_ms = self._wall_ms()
        question = _question(self._partition, batch, self._terms, now_ms=now_ms)
        if question is None or question.is_answered:
            raise refusal
        _verify(self._transactions, [question])
        return self._partition.gather(batch, now_ms=now_ms)

    def response(self, correlation_id: int, appended: AppendResult, code: ErrorCode) -> Parts:
        """Return the whole response to a batch of which this became."""
        partition = self._partition
        if code is not _KEPT:
            code = _code_for(code, partition, self._terms.version)
            self.stats.failed(code)
            answer = _accepted(self._index, partition, appended)
            _take_back(answer, code)
            return self._encode(correlation_id, answer)
        log_start_offset = partition.log.log_start_offset
        response: Parts = [
            self._answer(correlation_id, appended.base_offset, appended.log_append_time_ms, log_start_offset)
        ]
        client = self._context.client
        return told(client, _API, self._terms.version, response) if client.takes_credits else response

    def _encode(self, correlation_id: int, answer: PartitionProduceResponse) -> Parts:
        topic = TopicProduceResponse(self._partition.name.topic, self._partition.topic_id, [answer])
        response = ProduceResponse([topic])
        _name_leaders(response, self._context)
        return encoded(_API, self._context, response, correlation_id)


class PendingProduce(PendingResponse):
    """The response to one batch; the partition settles it."""

    __slots__ = ("_appended", "_correlation_id", "_route")

    def __init__(self, route: ProduceRoute, correlation_id: int, appended: AppendResult) -> None:
        self.parts = None
        self.owner = None
        self._route = route
        self._correlation_id = correlation_id
        self._appended = appended

    def settle(self, code: ErrorCode) -> None:
        """Take the answer: the batch is acknowledged, or never will be."""
        try:
            self.parts = self._route.response(self._correlation_id, self._appended, code)
        except Exception as bug:
            if self.owner is None:  # its request is still being handled
                raise
            self.owner.fail(bug)
            return
        if self.owner is not None:
            self.owner.response_ready()


def _check_recovered(request: ProduceRequest, context: Context) -> None:
    """Come again, before anything is appended, if one of the partitions is being recovered."""
    for topic in request.topic_data:
        name = topic.name
        if context.version >= FIRST_VERSION_BY_ID and (found := context.image.topic_by_id(topic.topic_id)) is not None:
            name = found.name
        for part in topic.partition_data:
            with suppress(Refusal):  # each partition's own answer will say so
                context.services.replicas.check_recovered(name, part.index)


def _check_verified(request: ProduceRequest, terms: Terms, context: Context) -> None:
    """Come again, before anything is appended, once the coordinator has said which transactions may begin, unless it
    says yes at once."""
    questions: list[Question] = []
    for topic in request.topic_data:
        for part in topic.partition_data:
            with suppress(Refusal):  # each partition's own answer will say so
                partition = _find(context, topic.name, topic.topic_id, part.index, request.acks)
                question = _question(partition, part.records, terms, now_ms=context.now_ms)
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


def _question(partition: Partition, batch: memoryview | None, terms: Terms, *, now_ms: int) -> Question | None:
    """Return what is to be verified before a batch may begin its transaction; None where there is nothing to ask.

    A no that was given and not forgotten yet is part of it.
    """
    if batch is None or len(batch) < HEADER_BYTES or terms.transactional_id is None:
        return None
    header = read_header(batch)
    if not header.is_transactional or not partition.begins_transaction(header):
        return None
    verification = partition.verifications.begin(
        ProducerIdentity(header.producer_id, header.producer_epoch),
        header.base_sequence,
        begins_epoch=terms.version >= _FIRST_VERSION_WITH_TRANSACTIONS_2,
        now_ms=now_ms,
    )
    if verification is None or verification.is_verified:
        return None
    knows_abortable = terms.version >= _FIRST_VERSION_WITH_ABORTABLE
    return Question(partition.name, terms.transactional_id, partition.verifications, verification, knows_abortable)


def _find(context: Context, name: str, topic_id: UUID, index: int, acks: int) -> Partition:
    """Find the partition to append to, by its topic's name or, in later versions, its id; or refuse."""
    if acks not in (ALL, LEADER, NONE):
        raise Refusal(ErrorCode.INVALID_REQUIRED_ACKS, f"acks may be -1, 0 or 1, not {acks}")
    if context.version >= FIRST_VERSION_BY_ID:
        name = context.name_of(topic_id)
    return context.partition(Operation.WRITE, name, index)


def _one_batch(part: PartitionProduceData) -> memoryview:
    """Return the partition's records."""
    records = part.records
    if records is None or len(records) == 0:
        raise Refusal(ErrorCode.INVALID_RECORD, "a request must carry exactly one record batch for each partition")
    assert isinstance(records, memoryview)
    return records


def _accepted(index: int, partition: Partition, appended: AppendResult) -> PartitionProduceResponse:
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
    """Return the response once every batch in `waiting` is committed, or the client's patience ends."""
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
            _name_leaders(response, context)
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


def _name_leaders(response: ProduceResponse, context: Context) -> None:
    """Name the leaders of the partitions that this node does not lead."""
    leaders: set[NodeId] = set()
    for topic in response.responses:
        for answer in topic.partition_responses:
            if answer.error_code in WRONG_LEADER:
                facts = current_leader(context, topic.name, topic.topic_id, answer.index)
                if facts is not None:
                    answer.current_leader = LeaderIdAndEpoch(facts.leader, facts.leader_epoch)
                    leaders.add(facts.leader)
    response.node_endpoints = list(endpoints_of(context, leaders, NodeEndpoint))


def _each(response: ProduceResponse) -> Iterator[PartitionProduceResponse]:
    for topic in response.responses:
        yield from topic.partition_responses
