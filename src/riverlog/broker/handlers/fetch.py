"""Fetch: read what is there now; if it is too little, answer later, woken by the partitions' high watermarks.

Every fetch is a full fetch: the session id in the answer is always 0, which tells clients to send their whole list
of partitions again (KIP-227 allows it).
"""

import asyncio
from dataclasses import dataclass
from typing import Final

from riverlog.broker.context import Answer, Context, Later
from riverlog.drivers.partition import Partition
from riverlog.log.reading import NOTHING, LogRead
from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import NO_OFFSET, Offset
from riverlog.model.limits import FETCH_WAIT_MS_MAX
from riverlog.wire.messages.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)

_FIRST_VERSION_BY_TOPIC_ID: Final = 13
_READ_COMMITTED: Final = 1


@dataclass(slots=True)
class Wanted:
    """One partition of a fetch: where it is to be read from, or why it cannot be; and what was read last."""

    part: FetchPartition
    partition: Partition | None
    refusal: Refusal | None
    read: LogRead = NOTHING


Plan = list[tuple[FetchTopic, list[Wanted]]]


def fetch(request: FetchRequest, context: Context) -> Answer[FetchResponse]:
    """Give what is there if it is enough, or if an error must be told; otherwise wait for more."""
    if request.session_epoch > 0:
        context.stats.failed(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        return FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    plan = [(topic, [_wanted(topic, part, context) for part in topic.partitions]) for topic in request.topics]
    response, enough = _read(request, plan, context)
    if enough or request.max_wait_ms <= 0 or not plan:
        _count(response, plan, context)
        return response
    return Later(DelayedFetch(request, plan, context).answered)


class DelayedFetch:
    """A fetch that waits until there is enough to read or its time is up."""

    __slots__ = ("_context", "_due", "_loop", "_patience", "_plan", "_request", "_unwatch", "answered")

    def __init__(self, request: FetchRequest, plan: Plan, context: Context) -> None:
        self._request = request
        self._plan = plan
        self._context = context
        self._loop = asyncio.get_running_loop()
        self._due = False  # a look is already scheduled for the end of this turn
        self.answered: asyncio.Future[FetchResponse] = self._loop.create_future()
        self.answered.add_done_callback(self._stop)
        self._unwatch = [
            wanted.partition.when_readable(self._woken)
            for _topic, parts in plan
            for wanted in parts
            if wanted.partition is not None
        ]
        wait_ms = min(request.max_wait_ms, FETCH_WAIT_MS_MAX)
        self._patience = self._loop.call_later(wait_ms / 1000, self._look, True)

    def _woken(self) -> None:
        """Look at the end of the turn: whatever else is appended in it goes into the same answer."""
        if not self._due:
            self._due = True
            self._loop.call_soon(self._look, False)

    def _look(self, time_is_up: bool) -> None:
        self._due = False
        if self.answered.done():
            return
        response, enough = _read(self._request, self._plan, self._context)
        if enough or time_is_up or self._context.services.replicas.stopping:
            _count(response, self._plan, self._context)
            self.answered.set_result(response)

    def _stop(self, _answered: object) -> None:
        """Let go of the partitions; also when the connection ended and nobody waits any more."""
        self._patience.cancel()
        for unwatch in self._unwatch:
            unwatch()


def _wanted(topic: FetchTopic, part: FetchPartition, context: Context) -> Wanted:
    """Find the partition that a client names, or say why it may not be read."""
    try:
        name = topic.topic
        if context.version >= _FIRST_VERSION_BY_TOPIC_ID:
            found = context.image.topic_by_id(topic.topic_id)
            if found is None:
                raise Refusal(ErrorCode.UNKNOWN_TOPIC_ID, f"no topic has the id {topic.topic_id}")
            name = found.name
        if not context.allows_on_topic(Operation.READ, name):
            raise Refusal(ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"not allowed to read {name}")
        partition = context.services.replicas.get(name, part.partition)
        if partition is None:
            raise Refusal(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {part.partition} of {name} here"
            )
        partition.check_epoch(part.current_leader_epoch)
        return Wanted(part, partition, None)
    except Refusal as refusal:
        return Wanted(part, None, refusal)


def _read(request: FetchRequest, plan: Plan, context: Context) -> tuple[FetchResponse, bool]:
    """Read every partition in the order asked for, within all limits; tell whether that is enough to answer."""
    response = FetchResponse()
    left = min(request.max_bytes, context.services.metadata.settings.fetch_max_bytes)
    size = 0
    enough = False
    for topic, parts in plan:
        answer = FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id)
        response.responses.append(answer)
        for wanted in parts:
            data, taken = _read_partition(wanted, request, bytes_left=left, at_least_one=size == 0)
            answer.partitions.append(data)
            size += taken
            left -= taken
            # Damage does not go away: a client that asks again at once, as some do, is answered when its time is up.
            enough = enough or data.error_code not in (ErrorCode.NONE, ErrorCode.CORRUPT_MESSAGE)
    return response, enough or size >= request.min_bytes


def _read_partition(
    wanted: Wanted, request: FetchRequest, *, bytes_left: int, at_least_one: bool
) -> tuple[PartitionData, int]:
    part, partition = wanted.part, wanted.partition
    if partition is None:
        assert wanted.refusal is not None
        return _refused(part, wanted.refusal.code, None), 0
    committed = request.isolation_level == _READ_COMMITTED
    upto = partition.last_stable_offset if committed else partition.high_watermark
    try:
        read = partition.read(
            Offset(part.fetch_offset),
            bytes_max=max(min(part.partition_max_bytes, bytes_left), 0),
            upto=upto,
            at_least_one=at_least_one,
        )
        records = b"" if read.records is None else partition.content(read.records)
        aborted = partition.aborted_in(read, Offset(part.fetch_offset)) if committed else None
    except Refusal as refusal:
        return _refused(part, refusal.code, partition), 0
    wanted.read = read
    data = PartitionData(
        partition_index=part.partition,
        high_watermark=partition.high_watermark,
        last_stable_offset=partition.last_stable_offset,
        log_start_offset=partition.log.log_start_offset,
        aborted_transactions=None
        if aborted is None
        else [AbortedTransaction(each.producer_id, each.first_offset) for each in aborted],
        records=records,
    )
    return data, read.size


def _refused(part: FetchPartition, code: ErrorCode, partition: Partition | None) -> PartitionData:
    return PartitionData(
        partition_index=part.partition,
        error_code=code,
        high_watermark=NO_OFFSET,
        last_stable_offset=NO_OFFSET,
        log_start_offset=NO_OFFSET if partition is None else partition.log.log_start_offset,
        records=b"",
    )


def _count(response: FetchResponse, plan: Plan, context: Context) -> None:
    """Count what goes out, once, when it is known."""
    for answer, (_topic, parts) in zip(response.responses, plan, strict=True):
        for data, wanted in zip(answer.partitions, parts, strict=True):
            if data.error_code:
                context.stats.failed(ErrorCode(data.error_code))
            elif wanted.partition is not None:
                stats = wanted.partition.stats
                stats.fetches += 1
                if wanted.read.size:
                    stats.bytes_out += wanted.read.size
                    stats.messages_out += wanted.read.next_offset - wanted.part.fetch_offset
