"""Large requests, done in portions: between two of them the loop does what else there is.

Only requests whose parts are answered one by one are among them. What is asked for twice is noticed within a portion,
or folded before, where Kafka answers it once. Handlers whose parts are decided together go through them `in_turns`.
"""

import asyncio
import inspect
from asyncio import Semaphore as Turns
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, TypeVar

from riverlog.broker.limits import OFFSETS_COMMITTED_AT_ONCE_MAX, REQUEST_PORTION, WALKED_BATCH_BYTES_MIN
from riverlog.broker.requests.context import Context, Later
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import TopicPartition
from riverlog.model.limits import PARTITIONS_PER_REQUEST_MAX
from riverlog.partitions.retry_later import RetryLater
from riverlog.records.batch import ATTRIBUTES_POSITION, COMPRESSION_MASK, HEADER_BYTES, TRANSACTIONAL
from riverlog.wire.apis import ApiKey

T = TypeVar("T")

FIRST_FETCH_OF_MANY_GROUPS: Final = 8


@dataclass(frozen=True, slots=True)
class Portioned:
    """Where a request has its parts, and its response their answers."""

    asked: tuple[str, ...]
    """The field, which may have another name in other versions."""
    answered: str
    nested: str = ""
    """The partitions of a topic that is asked about, or the topics of a group."""
    answered_nested: str = "partitions"
    """The same in answers."""
    cost: int = 1
    """How many parts of other requests one part takes as long as."""
    size: int = REQUEST_PORTION
    """How many parts are done together."""
    fold: Callable[[Any], Any] | None = None
    """Returns by what to tell parts apart that are answered once, however often they are asked for."""
    unless: str = ""
    """Who names this is served at once: a no about its transaction is kept only for who comes again in that turn."""
    takes_long: "Callable[[Any, Context], bool] | None" = None
    """Returns whether a request has parts each of which takes as long as a portion, whatever it names."""


_OFFSETS_OF_GROUPS: Final = Portioned(("groups",), "groups", "topics", "topics")
"""OffsetFetch from version 8 on: before, it asked about one group."""


def _walks_through_batches(request: Any, context: Context) -> bool:
    """Return whether the records of several batches must be looked through, and what a few bytes unfold to.

    Not where any of them belongs to a transaction: a coordinator's no must find all of them in its turn.
    """
    walked: dict[str, bool] = {}  # topics, which may be named again and again
    count = 0
    for topic in request.topic_data:
        batches = [
            (part.index, part.records) for part in topic.partition_data if len(part.records or ()) >= HEADER_BYTES
        ]
        if any(batch[ATTRIBUTES_POSITION + 1] & TRANSACTIONAL for _, batch in batches):
            return False
        costly = [index for index, batch in batches if _is_costly(batch)]
        if costly:
            found = context.image.topic(topic.name) if topic.name else context.image.topic_by_id(topic.topic_id)
            if found is not None:
                if found.name not in walked:
                    walked[found.name] = _reads_records(TopicPartition(found.name, costly[0]), context)
                count += len(costly) * walked[found.name]
    return count > 1


def _is_costly(batch: memoryview) -> bool:
    return len(batch) > WALKED_BATCH_BYTES_MIN or bool(batch[ATTRIBUTES_POSITION + 1] & COMPRESSION_MASK)


def _reads_records(name: TopicPartition, context: Context) -> bool:
    """Return whether the records of what is written to a topic are looked at."""
    services = context.services
    opened = services.registry.opened.get(name)
    config = services.metadata.topic_config(name.topic) if opened is None else opened.log.config
    return config.cleanup_compact or config.record_validation_full


PORTIONED: Final[Mapping[ApiKey, Portioned]] = {
    ApiKey.PRODUCE: Portioned(
        ("topic_data",),
        "responses",
        "partition_data",
        "partition_responses",
        unless="transactional_id",
        takes_long=_walks_through_batches,
    ),
    ApiKey.METADATA: Portioned(("topics",), "topics", fold=lambda topic: (topic.topic_id, topic.name)),
    ApiKey.DESCRIBE_CONFIGS: Portioned(("resources",), "results", cost=20),
    ApiKey.ALTER_CONFIGS: Portioned(("resources",), "responses"),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: Portioned(("resources",), "responses"),
    ApiKey.DELETE_TOPICS: Portioned(("topics", "topic_names"), "responses"),
    ApiKey.DELETE_RECORDS: Portioned(("topics",), "topics", "partitions"),
    ApiKey.LIST_OFFSETS: Portioned(("topics",), "topics", "partitions"),
    # A commit is one batch, which a crash keeps or loses as a whole: it is cut only where that would take very long.
    ApiKey.OFFSET_COMMIT: Portioned(("topics",), "topics", "partitions", size=OFFSETS_COMMITTED_AT_ONCE_MAX),
    ApiKey.OFFSET_FETCH: Portioned(("topics",), "topics", "partition_indexes"),  # until version 7
    ApiKey.OFFSET_FOR_LEADER_EPOCH: Portioned(("topics",), "topics", "partitions"),
    ApiKey.DESCRIBE_PRODUCERS: Portioned(("topics",), "topics", "partition_indexes"),
    ApiKey.FIND_COORDINATOR: Portioned(("coordinator_keys",), "coordinators"),
    ApiKey.DESCRIBE_GROUPS: Portioned(("groups",), "groups"),
    ApiKey.CONSUMER_GROUP_DESCRIBE: Portioned(("group_ids",), "groups"),
    ApiKey.DELETE_GROUPS: Portioned(("groups_names",), "results"),
    ApiKey.ADD_PARTITIONS_TO_TXN: Portioned(("transactions",), "results_by_transaction"),  # from version 4 on
    ApiKey.ELECT_LEADERS: Portioned(
        ("topic_partitions",), "replica_election_results", "partitions", "partition_result"
    ),
    ApiKey.ALTER_PARTITION: Portioned(("topics",), "topics", "partitions"),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: Portioned(("topics",), "responses", "partitions"),
    ApiKey.DESCRIBE_QUORUM: Portioned(("topics",), "topics", "partitions"),
    ApiKey.DESCRIBE_TRANSACTIONS: Portioned(("transactional_ids",), "transaction_states"),
}


def kind_of(key: ApiKey, version: int) -> Portioned:
    """Return how requests of one version are done in portions."""
    if key is ApiKey.OFFSET_FETCH and version >= FIRST_FETCH_OF_MANY_GROUPS:
        return _OFFSETS_OF_GROUPS
    return PORTIONED[key]


def fitted(kind: Portioned, request: Any, context: Context) -> Portioned:
    """Return the kind for one request: of some, each part is a portion of its own."""
    if kind.takes_long is None or not kind.takes_long(request, context):
        return kind
    return replace(kind, cost=kind.size, unless="")  # of what `takes_long` names, nothing is asked of a coordinator


def folded(request: Any, kind: Portioned) -> Any:
    """Return a request that asks for each of its parts once, where Kafka makes a set of them."""
    field = next((field for field in kind.asked if getattr(request, field)), None)
    if kind.fold is None or field is None:
        return request
    parts = getattr(request, field)
    if len(parts) == 1:
        return request
    once = {kind.fold(part): part for part in parts}
    return request if len(once) == len(parts) else replace(request, **{field: list(once.values())})


def is_large(request: Any, kind: Portioned) -> bool:
    """Return whether a request should be done in portions."""
    if kind.unless and getattr(request, kind.unless) is not None:
        return False
    parts = [part for field in kind.asked for part in getattr(request, field) or ()]
    count = len(parts)
    if kind.nested:
        count += sum(len(getattr(part, kind.nested) or ()) for part in parts)
    return count * kind.cost > kind.size


async def in_portions(request: Any, kind: Portioned, handle: Callable[[Any], Any], turns: Turns) -> Any:
    """Do all portions, one after the other, and give the whole response; others do theirs in between."""
    whole: Any = None
    for portion, continues in _portions(request, kind):
        response = await in_turn(partial(handle, portion), turns)
        if whole is None:
            whole = response
        else:
            answers, more = getattr(whole, kind.answered), getattr(response, kind.answered)
            if continues and answers and more:  # within a topic
                getattr(answers[-1], kind.answered_nested).extend(getattr(more.pop(0), kind.answered_nested))
            answers.extend(more)
            _refuse_too(whole, response)
    return whole


def _refuse_too(whole: Any, response: Any) -> None:
    """Refuse the whole request where a later portion is refused as a whole: nobody would miss its answers."""
    code = getattr(response, "error_code", ErrorCode.NONE)
    if code != ErrorCode.NONE and whole.error_code == ErrorCode.NONE:
        whole.error_code = code
        if hasattr(whole, "error_message"):
            whole.error_message = response.error_message


async def in_turn(handle: Callable[[], Any], turns: Turns) -> Any:
    """Do one portion when its turn comes, and give its answer; once it is done the loop looks around."""
    while True:
        try:
            async with turns:
                try:
                    answer = handle()
                finally:
                    await asyncio.sleep(0)
            if isinstance(answer, Later):
                return await answer.response
            return await answer if inspect.isawaitable(answer) else answer
        except RetryLater as retry:
            await asyncio.shield(retry.until)


async def in_turns(parts: Iterable[T], size: int = REQUEST_PORTION) -> AsyncIterator[T]:
    """Go through parts, and let others have their turn in between."""
    for number, part in enumerate(parts, 1):
        yield part
        if number % size == 0:
            await asyncio.sleep(0)


def _portions(request: Any, kind: Portioned) -> Iterator[tuple[Any, bool]]:
    """Cut a request into pieces, and tell of each whether it goes on with the topic of the one before."""
    size = max(kind.size // kind.cost, 1)
    field = next((field for field in kind.asked if getattr(request, field)), kind.asked[0])
    parts = getattr(request, field)
    if field == "topics" and hasattr(request, "allow_auto_topic_creation") and len(parts) > PARTITIONS_PER_REQUEST_MAX:
        request = replace(request, allow_auto_topic_creation=False)  # as many as no request may create
    portion: list[Any] = []
    left, continues = size, False
    for part in parts:
        inner = (getattr(part, kind.nested) if kind.nested else None) or ()
        for start in range(0, len(inner), size) or (0,):
            piece = part if len(inner) <= size else replace(part, **{kind.nested: inner[start : start + size]})
            if portion and (left <= 0 or start):
                yield replace(request, **{field: portion}), continues
                portion, left, continues = [], size, start > 0
            portion.append(piece)
            left -= 1 + min(len(inner) - start, size)
    yield replace(request, **{field: portion}), continues
