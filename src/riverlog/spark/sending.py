"""A task's rows on their way: encoded in the task's thread, sent by a loop beside it."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self, TypeVar

from riverlog.arrow.background import Background
from riverlog.arrow.encoder import Encoder
from riverlog.arrow.rows import EncodingRules, Topics
from riverlog.client.deliveries import EncodedBatch
from riverlog.client.errors import KafkaError, ProducerFenced
from riverlog.records.batch import Compression
from riverlog.spark.reaching import reached
from riverlog.spark.refusal import refusal
from riverlog.spark.sink_options import SinkOptions

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")


class Outlet(Protocol):
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
        """Let go of it, and do not hide the error that there was."""


def send(
    rows: "Iterator[pa.RecordBatch]",
    outlet: Outlet,
    finish: Callable[[], Awaitable[T]],
    options: SinkOptions,
    *,
    first_partition: int,
) -> T:
    """Write all rows, and give what `finish` gives, which waits until they are kept; ProducerFenced, or SinkRefused."""
    try:
        with Background("riverlog-sink") as background, _started(outlet, background, options.patience_seconds):
            topics = Topics(lambda topic: background.run(outlet.partitions(topic)))
            encoder = Encoder(_rules(options, first_partition), topics)
            for (
                batch
            ) in rows:  # to the end, whatever becomes of them: Spark keeps a task's state once its rows are read
                if batches := encoder.add(batch):
                    background.run(_send(outlet, batches))
            return background.run(_end(outlet, encoder.finish(), finish))
    except ProducerFenced:
        raise
    except KafkaError as problem:
        raise refusal(problem) from None


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


@contextmanager
def _started(outlet: Outlet, background: Background, seconds_max: float) -> Iterator[None]:
    background.run(reached(outlet.start, seconds_max=seconds_max))
    try:
        yield
    except BaseException as error:
        background.run(outlet.__aexit__(type(error), error, error.__traceback__))
        raise
    background.run(outlet.__aexit__(None, None, None))


async def _send(outlet: Outlet, batches: list[EncodedBatch]) -> None:
    for batch in batches:
        await outlet.send_encoded(batch)


async def _end(outlet: Outlet, batches: list[EncodedBatch], finish: Callable[[], Awaitable[T]]) -> T:
    await _send(outlet, batches)
    return await finish()
