"""Consume, transform, produce: what each record leads to is written exactly once, whatever fails on the way.

    async with Consumer(..., group="copiers", isolation_level="read_committed", auto_commit=False) as consumer:
        consumer.subscribe(["orders"])
        async with Producer(..., transactional_id="orders-copier-1") as producer:
            await process_exactly_once(consumer, producer, invoices_for)

Records are taken in portions. The results of a portion and the offsets behind it are one transaction; where that is
aborted, the portion is read again. Members come and go between portions. A program that is restarted keeps its
transactional id, and no two that run at once share one.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final, NamedTuple

from riverlog.client.consumer.consumer import Consumer
from riverlog.client.consumer.fetched_records import ConsumerRecord
from riverlog.client.errors import BufferFull, KafkaError, TransactionAborted
from riverlog.client.producer.producer import Producer
from riverlog.model.ids import Offset, TopicPartition
from riverlog.records.record import HeadersLike

FAILURES_IN_A_ROW_MAX: Final = 10
"""Each of them has waited for the cluster as long as consumer and producer are told to."""

_RECORDS_PER_TURN: Final = 500


class NewRecord(NamedTuple):
    """A record to be written."""

    topic: str
    value: bytes | str | None = None
    key: bytes | str | None = None
    headers: HeadersLike = ()
    partition: int | None = None
    timestamp_ms: int | None = None


Transform = Callable[[ConsumerRecord], Iterable[NewRecord] | Awaitable[Iterable[NewRecord]]]
"""What a record leads to; a plain function or an async one. It may be called again for the same record."""


async def process_exactly_once(
    consumer: Consumer,
    producer: Producer,
    transform: Transform,
    *,
    records_max: int = 500,
    stopping: asyncio.Event | None = None,
) -> None:
    """Go on until `stopping` is set, or something happens that trying again does not mend.

    An exception of `transform` aborts the portion and is raised; another call begins with the same records. So does one
    after any other exception, but for ProducerFenced: then another worker has taken over.
    """
    if consumer.isolation_level != "read_committed":
        raise ValueError(
            "a consumer that reads what is not committed yet cannot be part of this; "
            'give it Consumer(..., isolation_level="read_committed")'
        )
    consumer.group_metadata()  # raises where the consumer has no group, or commits by itself
    portion: Sequence[ConsumerRecord] = ()  # what was taken and is not known to be dealt with
    failures = 0
    try:
        while stopping is None or not stopping.is_set():
            try:
                await _settle(consumer, producer, portion)
                portion = await consumer.poll(max_records=records_max)
                if portion:
                    await _process(consumer, producer, transform, portion)
                    portion = ()
                failures = 0
            except KafkaError as problem:
                failures += 1
                may_pass = problem.retriable or isinstance(problem, TransactionAborted)
                if not may_pass or failures == FAILURES_IN_A_ROW_MAX:
                    raise
                await asyncio.sleep(producer.backoff(failures))
    finally:
        if not producer.in_doubt:
            await go_back(consumer, portion)


async def _settle(consumer: Consumer, producer: Producer, portion: Sequence[ConsumerRecord]) -> None:
    """Find out what became of the last portion, and read it again where it was aborted."""
    if producer.in_doubt:
        await producer.commit()
    else:
        await go_back(consumer, portion)


async def go_back(consumer: Consumer, portion: Sequence[ConsumerRecord]) -> None:
    """Seek the reader to these records, in partitions that it still has."""
    held = consumer.held()
    first: dict[TopicPartition, Offset] = {}
    for record in portion:
        first.setdefault(TopicPartition(record.topic, record.partition), record.offset)
    for partition, offset in first.items():
        if partition in held:
            await consumer.seek(partition, offset)


async def _process(
    consumer: Consumer, producer: Producer, transform: Transform, records: Sequence[ConsumerRecord]
) -> None:
    offsets = _behind(consumer, records)
    async with producer.transaction():
        for record in records:
            results = transform(record)
            if inspect.isawaitable(results):
                results = await results
            for result in results:
                await _send(producer, result)
        await producer.send_offsets(consumer, offsets)


def _behind(consumer: Consumer, records: Sequence[ConsumerRecord]) -> dict[TopicPartition, int]:
    """Return where the reader stands behind these records, which may be behind a marker that follows them."""
    positions: dict[TopicPartition, Offset | None] = consumer.held()
    offsets: dict[TopicPartition, int] = {}
    for record in records:
        partition = TopicPartition(record.topic, record.partition)
        offsets[partition] = positions.get(partition) or record.offset + 1
    return offsets


async def send_all(producer: Producer, records: Iterable[NewRecord]) -> None:
    """Send records in order, waiting where too much is under way; others get their turn in between."""
    for count, record in enumerate(records, 1):
        await _send(producer, record)
        if count % _RECORDS_PER_TURN == 0:
            await producer.ready()


async def _send(producer: Producer, record: NewRecord) -> None:
    while True:
        try:
            producer.send_soon(**record._asdict())
        except BufferFull:
            await producer.ready()
        else:
            return
