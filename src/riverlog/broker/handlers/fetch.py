"""Fetch: read what is there now; if it is too little, answer later, woken by the partitions' high watermarks.

A request is read by the general codec or, in its commonest form, by hand (`fetch_one`); both find a partition with
`_find`, read it with `_read_partition` and wait as a `PendingFetch`. What is not in memory is read beside the loop
first: a request comes again after that (`RetryLater`), a fetch that waits looks again.

Every fetch is a full fetch: the session id in the answer is always 0, which tells clients to send their whole list
of partitions again (KIP-227 allows it).
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Final
from uuid import UUID

from riverlog.broker.limits import COPIED_BYTES_PER_ANSWER_MAX, FETCH_WAIT_MS_MAX, REQUEST_PORTION
from riverlog.broker.requests.context import Context, HandlerResult, Later, Parts, PendingResponse
from riverlog.broker.requests.dispatch import encoded, told
from riverlog.broker.requests.leaders import WRONG_LEADER, current_leader, endpoints_of
from riverlog.broker.requests.portions import in_turn
from riverlog.log.producers.aborted_transactions import AbortedRange
from riverlog.log.reading import LogRead
from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import NO_OFFSET, NO_TOPIC_ID, NodeId, Offset, TopicId
from riverlog.model.limits import SENDFILE_BYTES_MIN
from riverlog.model.ports import FileRange
from riverlog.partitions.partition import Partition
from riverlog.partitions.registry import PartitionRegistry
from riverlog.partitions.retry_later import RetryLater
from riverlog.wire.apis import API_BY_KEY, ApiKey
from riverlog.wire.handwritten_codec import (
    FIRST_FETCH_BY_HAND,
    FIRST_VERSION_BY_ID,
    OneFetch,
    one_fetched,
    read_fetch_end,
    read_one_fetch,
)
from riverlog.wire.headers import RequestHeader
from riverlog.wire.messages.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)

_READ_COMMITTED: Final = 1
_API: Final = API_BY_KEY[ApiKey.FETCH]


@dataclass(slots=True)
class Wanted:
    """One partition of a fetch: where it is to be read from, or why it cannot be; and how much was read last.

    No more is kept of that: a range keeps its file open.
    """

    part: FetchPartition
    partition: Partition | None
    refusal: Refusal | None
    size: int = 0
    next_offset: Offset = NO_OFFSET


FetchPlan = list[tuple[FetchTopic, list[Wanted]]]


PartitionRead = tuple[LogRead, bytes | FileRange, list[AbortedRange] | None, Offset, Offset]
"""What was found in a partition, the records, which of their transactions were aborted, the last stable offset, and
up to where this reader may read. A bare tuple: there is one for every request."""


def fetch(request: FetchRequest, context: Context) -> HandlerResult[FetchResponse]:
    """Answer with what is there if it is enough, or if an error must be told; otherwise wait for more."""
    if request.session_epoch > 0:
        context.stats.failed(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        return FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    answer_bytes_max = min(request.max_bytes, COPIED_BYTES_PER_ANSWER_MAX)
    if sum(1 + len(topic.partitions) for topic in request.topics) > REQUEST_PORTION:
        return Later(fetch_in_portions(request, context), answer_bytes_max)
    plan = [(topic, [_wanted(topic, part, context) for part in topic.partitions]) for topic in request.topics]
    read = partial(_read_plan, request, plan, context)
    parts = read(request.max_wait_ms <= 0 or not plan)
    if parts is not None:
        return PendingResponse(parts)
    partitions = [wanted.partition for _topic, parts in plan for wanted in parts if wanted.partition is not None]
    return PendingFetch(
        read,
        partitions,
        context.services.registry,
        wait_seconds=_wait_seconds(request.max_wait_ms),
        answer_bytes_max=answer_bytes_max,
    )


async def fetch_in_portions(request: FetchRequest, context: Context) -> FetchResponse:
    """Do a fetch of so many partitions that others must get their turn in between, and look again while it waits."""
    turns = context.services.portions
    plan: FetchPlan = []
    asked = ((topic, part) for topic in request.topics for part in (None, *topic.partitions))
    while some := list(islice(asked, REQUEST_PORTION)):
        await in_turn(partial(_plan, plan, some, context), turns)
    partitions = {each.partition for _topic, parts in plan for each in parts if each.partition is not None}
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _wait_seconds(max(request.max_wait_ms, 0))
    news = asyncio.Event()
    try:
        for partition in partitions:
            partition.watch(news.set)
        while True:
            news.clear()
            time_is_up = loop.time() >= deadline or context.services.registry.stopping
            reading = _Reading(request, plan, context)
            while await in_turn(partial(reading.read, REQUEST_PORTION), turns):
                pass
            if reading.cold:
                await asyncio.wait(reading.cold)
                continue
            if reading.enough or time_is_up:
                _finish(reading.response, plan, context)
                return reading.response
            with suppress(TimeoutError):
                async with asyncio.timeout_at(deadline):
                    await news.wait()
    finally:
        for partition in partitions:
            partition.unwatch(news.set)


class PendingFetch(PendingResponse):
    """A response that waits until there is enough to read, or its time is up."""

    __slots__ = ("_partitions", "_patience", "_read", "_registry", "answer_bytes_max")

    def __init__(
        self,
        read: Callable[[bool], Parts | None],
        partitions: Sequence[Partition],
        registry: PartitionRegistry,
        *,
        wait_seconds: float,
        answer_bytes_max: int,
    ) -> None:
        """Read again whenever there may be more in one of the partitions; `read` is told when it must answer."""
        self.parts = None
        self.owner = None
        self.answer_bytes_max = answer_bytes_max
        self._read = read
        self._partitions = partitions
        self._registry = registry
        for partition in partitions:
            partition.watch(self._look)
        self._patience = asyncio.get_running_loop().call_later(wait_seconds, self._look, True)

    def abandon(self) -> None:
        super().abandon()
        if self.parts is None:
            self._stop()

    def _look(self, time_is_up: bool = False) -> None:
        if self.owner is None or self.parts is not None:
            return
        try:
            parts = self._read(time_is_up or self._registry.stopping)
        except RetryLater as retry:
            retry.until.add_done_callback(lambda _read: self._look(time_is_up))
            return
        except Exception as bug:
            self.owner.fail(bug)
            return
        if parts is not None:
            self.parts = parts
            self._stop()
            self.owner.response_ready()

    def _stop(self) -> None:
        self._patience.cancel()
        for partition in self._partitions:
            partition.unwatch(self._look)


def fetch_one(frame: memoryview, position: int, header: RequestHeader, context: Context) -> PendingResponse | None:
    """Do a request of the commonest form, to read one partition, and remember its route for the next one like it.

    None, with nothing done, for every other form: `fetch` does those.
    """
    version = header.api_version
    asked = read_one_fetch(frame, position, version) if version >= FIRST_FETCH_BY_HAND else None
    if asked is None or asked.session_epoch > 0 or read_fetch_end(frame, asked.end) is None:
        return None
    name, topic_id = "", NO_TOPIC_ID
    try:
        if version >= FIRST_VERSION_BY_ID:
            topic_id = TopicId(UUID(bytes=asked.topic))
        else:
            name = str(asked.topic, "utf-8")
    except UnicodeDecodeError:
        return None
    try:
        partition = _find(context, name, topic_id, asked.partition, asked.leader_epoch)
    except Refusal as refusal:
        context.stats.failed(refusal.code)
        answer = FetchableTopicResponse(name, topic_id, [_refused(asked.partition, refusal.code, None)])
        response = FetchResponse(responses=[answer])
        _name_leaders(response, context)
        return PendingResponse(encoded(_API, context, response))
    route = FetchRoute(asked, partition, header.api_key, context)
    context.client.routes.learn(frame, asked.end, route, context.services.authorizer.version)
    return route.take(frame, asked.end, header.correlation_id)


class FetchRoute:
    """The route of Fetch requests for one partition, from the offset to the whole response.

    It holds as long as this node leads the partition in the same epoch.
    """

    __slots__ = (
        "_answer", "_bytes_max", "_bytes_min", "_committed", "_context", "_epoch", "_metadata", "_partition",
        "_registry", "_wait_seconds", "kind", "stats",
    )  # fmt: skip

    def __init__(self, asked: OneFetch, partition: Partition, api_key: int, context: Context) -> None:
        self.kind = api_key << 16 | context.version
        self.stats = context.stats
        self._context = context
        self._partition = partition
        self._epoch = partition.leader_epoch
        self._metadata = context.services.metadata
        self._registry = context.services.registry
        self._wait_seconds = _wait_seconds(asked.wait_ms)
        self._bytes_min = asked.bytes_min
        self._bytes_max = asked.bytes_max
        self._committed = asked.isolation_level == _READ_COMMITTED
        self._answer = one_fetched(asked.topic, context.version, asked.partition, committed=self._committed)

    def take(self, frame: memoryview, position: int, correlation_id: int) -> PendingResponse | None:
        """Read from the offset that stands at this position; None where the request is of another form."""
        partition = self._partition
        rest = read_fetch_end(frame, position)
        if rest is None or not partition.is_led or partition.leader_epoch != self._epoch:
            return None
        offset, bytes_max = rest
        parts = self._read(correlation_id, Offset(offset), bytes_max, self._wait_seconds <= 0)
        if parts is not None:
            return PendingResponse(parts)
        return PendingFetch(
            partial(self._read, correlation_id, Offset(offset), bytes_max),
            (partition,),
            self._registry,
            wait_seconds=self._wait_seconds,
            answer_bytes_max=SENDFILE_BYTES_MIN,  # more is sent from the file
        )

    def _read(self, correlation_id: int, offset: Offset, bytes_max: int, at_once: bool) -> Parts | None:
        """Return the whole response; None where there is too little to read."""
        partition, client = self._partition, self._context.client
        try:
            found, records, aborted, last_stable_offset, upto = _read_partition(
                partition,
                offset,
                bytes_max=max(min(bytes_max, self._bytes_max, self._metadata.settings.fetch_max_bytes), 0),
                committed=self._committed,
                copied_max=0 if client.memory.answers_crowded else COPIED_BYTES_PER_ANSWER_MAX,
                at_least_one=True,
            )
        except Refusal as refusal:
            if _may_wait(refusal.code) and not at_once:
                return None
            code = _code_of(refusal, partition, self._context.version)
            self.stats.failed(code)
            return self._encode(correlation_id, _refused(partition.name.partition, code, partition))
        size = found.size
        if size < self._bytes_min and not (at_once or found.stops_short_of(upto)):
            return None
        _count_read(partition, size, found.next_offset, offset)
        if aborted:
            return self._encode(correlation_id, _data(partition, records, aborted, last_stable_offset))
        log_start_offset = partition.log.log_start_offset
        response = self._answer(correlation_id, partition.high_watermark, last_stable_offset, log_start_offset, records)
        return told(client, _API, self._context.version, response) if client.takes_credits else response

    def _encode(self, correlation_id: int, data: PartitionData) -> Parts:
        topic = FetchableTopicResponse(self._partition.name.topic, self._partition.topic_id, [data])
        response = FetchResponse(responses=[topic])
        _name_leaders(response, self._context)
        return encoded(_API, self._context, response, correlation_id)


def _wait_seconds(wait_ms: int) -> float:
    return min(wait_ms, FETCH_WAIT_MS_MAX) / 1000


def _may_wait(code: ErrorCode) -> bool:
    """Return whether an error is told when the time is up: damage does not go away, and some clients ask at once."""
    return code is ErrorCode.CORRUPT_MESSAGE


def _wanted(topic: FetchTopic, part: FetchPartition, context: Context) -> Wanted:
    """Find the partition that a client names, or say why it may not be read."""
    try:
        partition = _find(context, topic.topic, topic.topic_id, part.partition, part.current_leader_epoch)
        return Wanted(part, partition, None)
    except Refusal as refusal:
        return Wanted(part, None, refusal)


def _find(context: Context, name: str, topic_id: UUID, index: int, epoch: int) -> Partition:
    """Find a partition by its topic's name or, in later versions, its id; Refusal where it may not be read."""
    if context.version >= FIRST_VERSION_BY_ID:
        name = context.name_of(topic_id)
    return context.partition(Operation.READ, name, index, epoch)


def _plan(plan: FetchPlan, asked: list[tuple[FetchTopic, FetchPartition | None]], context: Context) -> None:
    """Go on with a plan: topics begin with None. It may have to be done again, and then changes nothing before."""
    found = [(topic, None if part is None else _wanted(topic, part, context)) for topic, part in asked]
    for topic, wanted in found:
        if wanted is None:
            plan.append((topic, []))
        else:
            plan[-1][1].append(wanted)


def _read_plan(request: FetchRequest, plan: FetchPlan, context: Context, at_once: bool) -> Parts | None:
    """Read every partition in the order asked for, and return the whole response; None where that is too little."""
    reading = _Reading(request, plan, context)
    reading.read()
    reading.check_all_read()
    if not (reading.enough or at_once):
        return None
    _finish(reading.response, plan, context)
    return encoded(_API, context, reading.response)


class _Reading:
    """The making of one response, partition by partition."""

    __slots__ = ("_context", "_copied_left", "_is_told", "_left", "_request", "_rest", "_size", "cold", "response")

    def __init__(self, request: FetchRequest, plan: FetchPlan, context: Context) -> None:
        self.response = FetchResponse()
        self._rest = ((topic, wanted) for topic, parts in plan for wanted in (None, *parts))
        self._request = request
        self._context = context
        self._left = min(request.max_bytes, context.services.metadata.settings.fetch_max_bytes)
        self._size = 0
        self._copied_left = 0 if context.client.memory.answers_crowded else COPIED_BYTES_PER_ANSWER_MAX
        self._is_told = False  # there is something to say that waiting does not change
        self.cold: set[asyncio.Future[None]] = set()
        """Done when what is not in memory was read; then all is to be read again."""

    @property
    def enough(self) -> bool:
        """Return whether this is enough to answer."""
        return self._is_told or self._size >= self._request.min_bytes

    def read(self, count_max: int | None = None) -> bool:
        """Read the next partitions; tell whether there may be more."""
        count = 0
        for topic, wanted in islice(self._rest, count_max):
            count += 1
            if wanted is None:
                answer = FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id)
                self.response.responses.append(answer)
                continue
            answer = self.response.responses[-1]
            try:
                data, taken, stops_short = _read_wanted(
                    wanted,
                    self._request,
                    self._context,
                    bytes_max=self._left,
                    copied_max=self._copied_left,
                    at_least_one=self._size == 0,
                )
            except RetryLater as retry:  # those behind it may be read at the same time
                self.cold.add(retry.until)
                self._left -= min(self._left, wanted.part.partition_max_bytes)
                continue
            answer.partitions.append(data)
            if not isinstance(data.records, FileRange):
                self._copied_left -= taken
            self._size += taken
            self._left -= taken
            is_error = bool(data.error_code) and not _may_wait(ErrorCode(data.error_code))
            self._is_told = self._is_told or stops_short or is_error
        return count == count_max

    def check_all_read(self) -> None:
        """Raise RetryLater where something was not in memory."""
        if self.cold:
            raise RetryLater(asyncio.ensure_future(_all_done(self.cold)))


def _read_wanted(
    wanted: Wanted, request: FetchRequest, context: Context, *, bytes_max: int, copied_max: int, at_least_one: bool
) -> tuple[PartitionData, int, bool]:
    """Read one partition; return its part of the answer, the bytes in it, and whether waiting adds nothing to them."""
    part, partition = wanted.part, wanted.partition
    if partition is None:
        assert wanted.refusal is not None
        return _refused(part.partition, wanted.refusal.code, None), 0, False
    try:
        found, records, aborted, last_stable_offset, upto = _read_partition(
            partition,
            Offset(part.fetch_offset),
            bytes_max=max(min(part.partition_max_bytes, bytes_max), 0),
            committed=request.isolation_level == _READ_COMMITTED,
            copied_max=max(copied_max, 0),
            at_least_one=at_least_one,
        )
    except Refusal as refusal:
        return _refused(part.partition, _code_of(refusal, partition, context.version), partition), 0, False
    wanted.size, wanted.next_offset = found.size, found.next_offset
    data = _data(partition, records, aborted, last_stable_offset)
    return data, found.size, found.stops_short_of(upto)


def _read_partition(
    partition: Partition, offset: Offset, *, bytes_max: int, committed: bool, copied_max: int, at_least_one: bool
) -> PartitionRead:
    """Read from an offset, within these limits; Refusal where it cannot be read, RetryLater where not from memory."""
    last_stable_offset = partition.last_stable_offset
    upto = last_stable_offset if committed else partition.high_watermark
    found = partition.read(offset, bytes_max=bytes_max, upto=upto, at_least_one=at_least_one)
    records: bytes | FileRange = b""
    if found.records is not None:
        if (
            found.records.size > copied_max and partition.log.segments.files.crowded
        ):  # nothing stays in its file for long
            found = partition.read(offset, bytes_max=copied_max, upto=upto, at_least_one=at_least_one)
        if found.records is not None:
            records = partition.content(found.records, copied_max)
    aborted = partition.aborted_in(found, offset) if committed else None
    return found, records, aborted, last_stable_offset, upto


async def _all_done(reads: set["asyncio.Future[None]"]) -> None:
    await asyncio.wait(reads)


def _code_of(refusal: Refusal, partition: Partition, version: int) -> ErrorCode:
    """Return the code of a refusal; a topic that was deleted meanwhile is named as it was asked for."""
    if partition.removed and version >= FIRST_VERSION_BY_ID:
        return ErrorCode.UNKNOWN_TOPIC_ID
    return refusal.code


def _data(
    partition: Partition, records: bytes | FileRange, aborted: list[AbortedRange] | None, last_stable_offset: Offset
) -> PartitionData:
    return PartitionData(
        partition_index=partition.name.partition,
        high_watermark=partition.high_watermark,
        last_stable_offset=last_stable_offset,
        log_start_offset=partition.log.log_start_offset,
        aborted_transactions=None
        if aborted is None
        else [AbortedTransaction(each.producer_id, each.first_offset) for each in aborted],
        records=records,
    )


def _refused(index: int, code: ErrorCode, partition: Partition | None) -> PartitionData:
    return PartitionData(
        partition_index=index,
        error_code=code,
        high_watermark=NO_OFFSET,
        last_stable_offset=NO_OFFSET,
        log_start_offset=NO_OFFSET if partition is None else partition.log.log_start_offset,
        records=b"",
    )


def _finish(response: FetchResponse, plan: FetchPlan, context: Context) -> None:
    """Count what goes out, once, when it is known, and tell who leads what this node does not."""
    for answer, (_topic, parts) in zip(response.responses, plan, strict=True):
        for data, wanted in zip(answer.partitions, parts, strict=True):
            if data.error_code:
                context.stats.failed(ErrorCode(data.error_code))
            elif wanted.partition is not None:
                _count_read(wanted.partition, wanted.size, wanted.next_offset, wanted.part.fetch_offset)
    _name_leaders(response, context)


def _name_leaders(response: FetchResponse, context: Context) -> None:
    """Name the leaders of the partitions that this node does not lead."""
    leaders: set[NodeId] = set()
    for topic in response.responses:
        for data in topic.partitions:
            if data.error_code in WRONG_LEADER:
                facts = current_leader(context, topic.topic, topic.topic_id, data.partition_index)
                if facts is not None:
                    data.current_leader = LeaderIdAndEpoch(facts.leader, facts.leader_epoch)
                    leaders.add(facts.leader)
    response.node_endpoints = list(endpoints_of(context, leaders, NodeEndpoint))


def _count_read(partition: Partition, size: int, next_offset: int, offset: int) -> None:
    stats = partition.stats
    stats.fetches += 1
    if size:
        stats.bytes_out += size
        stats.messages_out += next_offset - offset
