"""Fetch: read what is there now; if it is too little, answer later, woken by the partitions' high watermarks.

What is not in memory is read beside the loop first: a request comes again after that (`NotYet`), a fetch that waits
looks again.

Every fetch is a full fetch: the session id in the answer is always 0, which tells clients to send their whole list
of partitions again (KIP-227 allows it).
"""

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Final

from riverlog.broker.limits import COPIED_BYTES_PER_ANSWER_MAX, FETCH_WAIT_MS_MAX, REQUEST_PORTION
from riverlog.broker.requests.context import Answer, Context, Later, Parts, Place
from riverlog.broker.requests.dispatch import told
from riverlog.broker.requests.portions import in_turn
from riverlog.log.producers.aborted_transactions import Aborted
from riverlog.model.access import Operation
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import NO_OFFSET, Offset
from riverlog.model.limits import SENDFILE_BYTES_MIN
from riverlog.model.ports import FileRange
from riverlog.partitions.not_yet import NotYet
from riverlog.partitions.partition import Partition
from riverlog.wire.apis import API_BY_KEY, ApiKey
from riverlog.wire.handwritten_codec import (
    FIRST_FETCH_BY_HAND,
    FIRST_VERSION_BY_ID,
    OneFetch,
    one_fetched,
    read_fetch_end,
    read_one_fetch,
)
from riverlog.wire.headers import RequestHeader, encode_response
from riverlog.wire.messages.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
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


Plan = list[tuple[FetchTopic, list[Wanted]]]


def fetch(request: FetchRequest, context: Context) -> Answer[FetchResponse]:
    """Give what is there if it is enough, or if an error must be told; otherwise wait for more."""
    if request.session_epoch > 0:
        context.stats.failed(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        return FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    if sum(1 + len(topic.partitions) for topic in request.topics) > REQUEST_PORTION:
        bytes_max = min(request.max_bytes, COPIED_BYTES_PER_ANSWER_MAX)
        return Later(fetch_in_portions(request, context), bytes_max)
    plan = [(topic, [_wanted(topic, part, context) for part in topic.partitions]) for topic in request.topics]
    response, enough = _read(request, plan, context)
    if enough or request.max_wait_ms <= 0 or not plan:
        _count(response, plan, context)
        return response
    return Later(DelayedFetch(request, plan, context).answered, min(request.max_bytes, COPIED_BYTES_PER_ANSWER_MAX))


async def fetch_in_portions(request: FetchRequest, context: Context) -> FetchResponse:
    """Do a fetch of so many partitions that others must get their turn in between, and look again while it waits."""
    turns = context.services.portions
    plan: Plan = []
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
            time_is_up = loop.time() >= deadline or context.services.replicas.stopping
            reading = _Reading(request, plan, context)
            while await in_turn(partial(reading.read, REQUEST_PORTION), turns):
                pass
            if reading.cold:
                await asyncio.wait(reading.cold)
                continue
            if reading.enough or time_is_up:
                _count(reading.response, plan, context)
                return reading.response
            with suppress(TimeoutError):
                async with asyncio.timeout_at(deadline):
                    await news.wait()
    finally:
        for partition in partitions:
            partition.unwatch(news.set)


class DelayedFetch:
    """A fetch that waits until there is enough to read or its time is up."""

    __slots__ = ("_context", "_patience", "_plan", "_request", "answered")

    def __init__(self, request: FetchRequest, plan: Plan, context: Context) -> None:
        self._request = request
        self._plan = plan
        self._context = context
        loop = asyncio.get_running_loop()
        self.answered: asyncio.Future[FetchResponse] = loop.create_future()
        self.answered.add_done_callback(self._stop)
        for partition in self._partitions():
            partition.watch(self._look)
        self._patience = loop.call_later(_wait_seconds(request.max_wait_ms), self._look, True)

    def _look(self, time_is_up: bool = False) -> None:
        if self.answered.done():
            return
        try:
            response, enough = _read(self._request, self._plan, self._context)
        except NotYet as not_yet:
            not_yet.until.add_done_callback(lambda _read: self._look(time_is_up))
            return
        except Exception as bug:
            self.answered.set_exception(bug)
            return
        if enough or time_is_up or self._context.services.replicas.stopping:
            _count(response, self._plan, self._context)
            self.answered.set_result(response)

    def _stop(self, _answered: object) -> None:
        """Let go of the partitions; also when the connection ended and nobody waits any more."""
        self._patience.cancel()
        for partition in self._partitions():
            partition.unwatch(self._look)

    def _partitions(self) -> list[Partition]:
        return [wanted.partition for _topic, parts in self._plan for wanted in parts if wanted.partition is not None]


def fetch_one(frame: memoryview, position: int, header: RequestHeader, context: Context) -> Place | None:
    """Do the commonest request, to read one open partition on from an offset, and remember the way for the next.

    None, with nothing done, for every other request: `fetch` does those, and finds the words for what is wrong.
    """
    version = header.api_version
    asked = read_one_fetch(frame, position, version) if version >= FIRST_FETCH_BY_HAND else None
    if asked is None or asked.session_epoch > 0:
        return None
    replicas = context.services.replicas
    try:
        if version >= FIRST_VERSION_BY_ID:
            partition = replicas.get_opened(asked.topic, asked.partition)
        else:
            partition = replicas.get(str(asked.topic, "utf-8"), asked.partition)
        if partition is None or not context.allows_on_topic(Operation.READ, partition.name.topic):
            return None
        partition.check_epoch(asked.leader_epoch)
    except (Refusal, UnicodeDecodeError):
        return None
    route = OnePartitionRoute(asked, partition, header, context)
    place = route.take(frame, asked.end, header.correlation_id)
    if place is not None:
        context.client.routes.learn(frame, asked.end, context.image, route)
    return place


class OnePartitionRoute:
    """The way of Fetch requests for one partition, from the offset to the whole response."""

    __slots__ = (
        "_answer", "_bytes_max", "_bytes_min", "_client", "_committed", "_header", "kind", "partition", "replicas",
        "stats", "version", "wait_seconds",
    )  # fmt: skip

    def __init__(self, asked: OneFetch, partition: Partition, header: RequestHeader, context: Context) -> None:
        self.kind = header.api_key << 16 | header.api_version
        self.version = header.api_version
        self.stats = context.stats
        self.partition = partition
        self.replicas = context.services.replicas
        self.wait_seconds = _wait_seconds(asked.wait_ms)
        self._bytes_min = asked.bytes_min
        self._bytes_max = min(asked.bytes_max, context.services.metadata.settings.fetch_max_bytes)
        self._committed = asked.isolation_level == _READ_COMMITTED
        self._client = context.client
        self._header = header
        self._answer = one_fetched(asked.topic, header.api_version, asked.partition, committed=self._committed)

    def take(self, frame: memoryview, position: int, correlation_id: int) -> Place | None:
        """Read from the offset that stands at this position, as `fetch_one` says."""
        rest = read_fetch_end(frame, position)
        if rest is None:
            return None
        offset, bytes_max = rest
        place = OnePartitionPlace(self, correlation_id, Offset(offset), max(min(bytes_max, self._bytes_max), 0))
        try:
            place.parts = self.read(place, at_once=self.wait_seconds <= 0)
        except Refusal:
            return None
        if place.parts is None:
            place.wait()
        return place

    def read(self, place: "OnePartitionPlace", *, at_once: bool) -> Parts | None:
        """Give the whole response, or None where there is too little to read; Refusal where that cannot be read."""
        partition, offset = self.partition, place.offset
        stable_offset = partition.last_stable_offset
        upto = stable_offset if self._committed else partition.high_watermark
        read = partition.read(offset, bytes_max=place.bytes_max, upto=upto, at_least_one=True)
        if read.size > COPIED_BYTES_PER_ANSWER_MAX and partition.log.segments.crowded:  # all of it would be copied
            read = partition.read(offset, bytes_max=COPIED_BYTES_PER_ANSWER_MAX, upto=upto, at_least_one=True)
        if read.size < self._bytes_min and not (at_once or read.stops_short_of(upto)):
            return None
        records = b"" if read.records is None else partition.content(read.records)
        aborted = partition.aborted_in(read, offset) if self._committed else None
        _count_read(partition, read.size, read.next_offset, offset)
        if aborted:
            return self._write(place, _data(partition, records, aborted))
        log_start_offset = partition.log.log_start_offset
        response = self._answer(
            place.correlation_id, partition.high_watermark, stable_offset, log_start_offset, records
        )
        return self._told(response)

    def refuse(self, place: "OnePartitionPlace", code: ErrorCode) -> Parts:
        """Write the response that says why there is nothing to read."""
        self.stats.failed(code)
        return self._write(place, _refused(self.partition.name.partition, code, self.partition))

    def _write(self, place: "OnePartitionPlace", data: PartitionData) -> Parts:
        topic = FetchableTopicResponse(self.partition.name.topic, self.partition.topic_id, [data])
        response = FetchResponse(responses=[topic])
        return self._told(encode_response(_API, self._header.api_version, place.correlation_id, response))

    def _told(self, response: Parts) -> Parts:
        client = self._client
        return told(client, _API, self._header.api_version, response) if client.takes_credits else response


class OnePartitionPlace(Place):
    """The place of the answer to a fetch from one partition; it waits until there is enough or its time is up."""

    __slots__ = ("_patience", "_route", "bytes_max", "correlation_id", "offset")
    answer_bytes_max = SENDFILE_BYTES_MIN  # more is sent from the file

    def __init__(self, route: OnePartitionRoute, correlation_id: int, offset: Offset, bytes_max: int) -> None:
        self.parts = None
        self.line = None
        self.correlation_id = correlation_id
        self.offset = offset
        self.bytes_max = bytes_max
        self._route = route

    def wait(self) -> None:
        """Look again whenever there may be more to read."""
        self._route.partition.watch(self._look)
        self._patience = asyncio.get_running_loop().call_later(self._route.wait_seconds, self._look, True)

    def leave(self) -> None:
        super().leave()
        if self.parts is None:
            self._stop()

    def _look(self, time_is_up: bool = False) -> None:
        if self.line is None or self.parts is not None:
            return
        route = self._route
        at_once = time_is_up or route.replicas.stopping
        try:
            parts = route.read(self, at_once=at_once)
        except NotYet as not_yet:
            not_yet.until.add_done_callback(lambda _read: self._look(time_is_up))
            return
        except Refusal as refusal:
            if refusal.code is ErrorCode.CORRUPT_MESSAGE and not at_once:  # as in _read
                return
            parts = route.refuse(self, _code_of(refusal, route.partition, route.version))
        except Exception as bug:
            self.line.broken(bug)
            return
        if parts is not None:
            self.parts = parts
            self._stop()
            self.line.kept()

    def _stop(self) -> None:
        self._patience.cancel()
        self._route.partition.unwatch(self._look)


def _wait_seconds(wait_ms: int) -> float:
    return min(wait_ms, FETCH_WAIT_MS_MAX) / 1000


def _wanted(topic: FetchTopic, part: FetchPartition, context: Context) -> Wanted:
    """Find the partition that a client names, or say why it may not be read."""
    try:
        name = topic.topic
        if context.version >= FIRST_VERSION_BY_ID:
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


def _plan(plan: Plan, asked: list[tuple[FetchTopic, FetchPartition | None]], context: Context) -> None:
    """Go on with a plan: topics begin with None. It may have to be done again, and then changes nothing before."""
    found = [(topic, None if part is None else _wanted(topic, part, context)) for topic, part in asked]
    for topic, wanted in found:
        if wanted is None:
            plan.append((topic, []))
        else:
            plan[-1][1].append(wanted)


def _read(request: FetchRequest, plan: Plan, context: Context) -> tuple[FetchResponse, bool]:
    """Read every partition in the order asked for, within all limits; tell whether that is enough to answer."""
    reading = _Reading(request, plan, context)
    reading.read()
    reading.check_all_read()
    return reading.response, reading.enough


class _Reading:
    """The making of one response, partition by partition."""

    __slots__ = ("_context", "_copied", "_is_told", "_left", "_request", "_rest", "_size", "cold", "response")

    def __init__(self, request: FetchRequest, plan: Plan, context: Context) -> None:
        self.response = FetchResponse()
        self._rest = ((topic, wanted) for topic, parts in plan for wanted in (None, *parts))
        self._request = request
        self._context = context
        self._left = min(request.max_bytes, context.services.metadata.settings.fetch_max_bytes)
        self._size = 0
        self._copied = COPIED_BYTES_PER_ANSWER_MAX if context.client.memory.answers_crowded else 0
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
                data, taken, stops_short = _read_partition(
                    wanted,
                    self._request,
                    self._context,
                    bytes_left=self._left,
                    copied_left=COPIED_BYTES_PER_ANSWER_MAX - self._copied,
                    at_least_one=self._size == 0,
                )
            except NotYet as not_yet:  # those behind it may be read at the same time
                self.cold.add(not_yet.until)
                self._left -= min(self._left, wanted.part.partition_max_bytes)
                continue
            answer.partitions.append(data)
            if not isinstance(data.records, FileRange):
                self._copied += taken
            self._size += taken
            self._left -= taken
            # Damage does not go away: a client that asks again at once, as some do, is answered when its time is up.
            is_told = stops_short or data.error_code not in (ErrorCode.NONE, ErrorCode.CORRUPT_MESSAGE)
            self._is_told = self._is_told or is_told
        return count == count_max

    def check_all_read(self) -> None:
        """Raise NotYet where something was not in memory."""
        if self.cold:
            raise NotYet(asyncio.ensure_future(_all_done(self.cold)))


def _read_partition(
    wanted: Wanted,
    request: FetchRequest,
    context: Context,
    *,
    bytes_left: int,
    copied_left: int,
    at_least_one: bool,
) -> tuple[PartitionData, int, bool]:
    """Read one partition; return its part of the answer, the bytes in it, and whether waiting adds nothing to them."""
    part, partition = wanted.part, wanted.partition
    if partition is None:
        assert wanted.refusal is not None
        return _refused(part.partition, wanted.refusal.code, None), 0, False
    committed = request.isolation_level == _READ_COMMITTED
    upto = partition.last_stable_offset if committed else partition.high_watermark
    if partition.log.segments.crowded:  # nothing can be left in its file for long
        bytes_left = min(bytes_left, copied_left)
    try:
        read = partition.read(
            Offset(part.fetch_offset),
            bytes_max=max(min(part.partition_max_bytes, bytes_left), 0),
            upto=upto,
            at_least_one=at_least_one,
        )
        records = b"" if read.records is None else partition.content(read.records, copied_left)
        aborted = partition.aborted_in(read, Offset(part.fetch_offset)) if committed else None
    except Refusal as refusal:
        return _refused(part.partition, _code_of(refusal, partition, context.version), partition), 0, False
    wanted.size, wanted.next_offset = read.size, read.next_offset
    return _data(partition, records, aborted), read.size, read.stops_short_of(upto)


async def _all_done(reads: set["asyncio.Future[None]"]) -> None:
    await asyncio.wait(reads)


def _code_of(refusal: Refusal, partition: Partition, version: int) -> ErrorCode:
    """Return the code of a refusal; a topic that was deleted meanwhile is named as it was asked for."""
    if partition.removed and version >= FIRST_VERSION_BY_ID:
        return ErrorCode.UNKNOWN_TOPIC_ID
    return refusal.code


def _data(partition: Partition, records: bytes | FileRange, aborted: list[Aborted] | None) -> PartitionData:
    return PartitionData(
        partition_index=partition.name.partition,
        high_watermark=partition.high_watermark,
        last_stable_offset=partition.last_stable_offset,
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


def _count(response: FetchResponse, plan: Plan, context: Context) -> None:
    """Count what goes out, once, when it is known."""
    for answer, (_topic, parts) in zip(response.responses, plan, strict=True):
        for data, wanted in zip(answer.partitions, parts, strict=True):
            if data.error_code:
                context.stats.failed(ErrorCode(data.error_code))
            elif wanted.partition is not None:
                _count_read(wanted.partition, wanted.size, wanted.next_offset, wanted.part.fetch_offset)


def _count_read(partition: Partition, size: int, next_offset: int, offset: int) -> None:
    stats = partition.stats
    stats.fetches += 1
    if size:
        stats.bytes_out += size
        stats.messages_out += next_offset - offset
