"""Sends a task's rows: encoded in the task's thread, sent by a loop beside it.

A worker keeps the loop and its connections for its next tasks: to open them takes longer than to write a small batch.
"""

from collections.abc import Awaitable, Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, Self, TypeVar

from riverlog.arrow.background_loop import BackgroundLoop
from riverlog.arrow.encoding.encoder import Encoder
from riverlog.arrow.encoding.rows import EncodingRules, TopicIndex
from riverlog.client.errors import KafkaError, ProducerFenced
from riverlog.client.network.cluster import Cluster, KeptCluster
from riverlog.client.producer.deliveries import EncodedBatch
from riverlog.records.batch import Compression
from riverlog.spark.refusal import refusal
from riverlog.spark.sink.options import CLIENT, SinkOptions
from riverlog.spark.sink.retries import start_with_patience
from riverlog.spark.worker.pool import ResourcePool

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")


class BatchSender(Protocol):
    """Where batches go: a producer, or a member of a shared transaction."""

    async def start(self) -> Self:
        """Connect."""
        ...

    async def partitions(self, topic: str) -> int:
        """Count the partitions of a topic."""
        ...

    async def send_encoded(self, batch: EncodedBatch) -> None:
        """Accept a batch, waiting for room."""

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        """Close it, without hiding the error that there was."""


Outgoing = TypeVar("Outgoing", bound=BatchSender)


class SinkConnection:
    """The connections of a worker's sinks to one cluster, and the loop that they live in."""

    def __init__(self, options: SinkOptions) -> None:
        self.background = BackgroundLoop("riverlog-sink")
        self.background.__enter__()
        self.cluster = KeptCluster(options.cluster.bootstrap, create_topics=True, **_connection_arguments(options))
        self.rows = 0
        """Written so far, by all tasks: in a worker that lives long the kernel pays, however small they are."""

    def close(self) -> None:
        """Close the connections and the loop."""
        try:
            self.background.run(self.cluster.let_go())
        finally:
            self.background.__exit__(None, None, None)


def send(
    rows: "Iterator[pa.RecordBatch]",
    opening: Callable[[Cluster], Outgoing],
    finish: Callable[[Outgoing], Awaitable[T]],
    options: SinkOptions,
    *,
    first_partition: int,
) -> T:
    """Write all rows, and return what `finish` returns once they are kept; ProducerFenced, or SinkRefused."""
    try:
        with CONNECTIONS.lend(_key(options), lambda: SinkConnection(options)) as connection:
            background, sender = (
                connection.background,
                LazySender(opening(connection.cluster), options.patience_seconds),
            )
            topics = TopicIndex(lambda topic: background.run(sender.partitions(topic)))
            encoder = Encoder(_rules(options, first_partition), topics, rows_before=connection.rows)
            try:
                for batch in rows:  # to the end, whatever comes of it: Spark keeps a task's state when all are read
                    if batches := encoder.add(batch):
                        background.run(sender.send(batches))
                connection.rows = encoder.row_count
                return background.run(sender.end(encoder.finish(), finish))
            except BaseException as error:
                background.run(sender.close(error))
                raise
    except ProducerFenced:
        raise
    except KafkaError as problem:
        raise refusal(problem) from None


class LazySender(Generic[Outgoing]):
    """A sender that is started by its first use, and closed with the last.

    To ask something of another thread takes about as long as to send a small batch: so a task asks twice, for the
    number of partitions and for all the rest.
    """

    def __init__(self, sender: Outgoing, seconds_max: float) -> None:
        self._sender = sender
        self._seconds_max = seconds_max
        self._is_started = False

    async def partitions(self, topic: str) -> int:
        """Count the partitions of a topic."""
        await self._start()
        return await self._sender.partitions(topic)

    async def send(self, batches: list[EncodedBatch]) -> None:
        """Accept batches, waiting for room."""
        await self._start()
        for batch in batches:
            await self._sender.send_encoded(batch)

    async def end(self, batches: list[EncodedBatch], finish: Callable[[Outgoing], Awaitable[T]]) -> T:
        """Accept the last batches, wait for all of them, and close the sender."""
        await self.send(batches)
        finished = await finish(self._sender)
        await self.close(None)
        return finished

    async def _start(self) -> None:
        if not self._is_started:
            await start_with_patience(self._sender.start, seconds_max=self._seconds_max)
            self._is_started = True

    async def close(self, error: BaseException | None) -> None:
        """Close the sender, unless that was done, or it was never started."""
        if self._is_started:
            self._is_started = False
            await self._sender.__aexit__(type(error) if error else None, error, error.__traceback__ if error else None)


def _connection_arguments(options: SinkOptions) -> dict[str, Any]:
    """Return the arguments about connections among those of producers."""
    arguments = {**CLIENT, **options.cluster.client}
    if "request_timeout_ms" in options.producer:
        arguments["request_timeout_ms"] = options.producer["request_timeout_ms"]
    return arguments


def _key(options: SinkOptions) -> str:
    return repr((options.cluster.bootstrap, sorted(_connection_arguments(options).items())))


def _rules(options: SinkOptions, first_partition: int) -> EncodingRules:
    return EncodingRules(
        topic=options.topic,
        batch_bytes_max=options.batch_bytes_max,
        record_bytes_max=options.producer["request_bytes_max"],
        compression=Compression[options.compression.upper()],
        level=options.level,
        transactional=options.is_exactly_once,
        first_partition=first_partition,
    )


CONNECTIONS: Final[ResourcePool[SinkConnection]] = ResourcePool()
