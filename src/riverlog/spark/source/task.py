"""What a task does: fetch its range of offsets, decode it, and pass Arrow batches to Spark.

A worker of Spark lives for many tasks. It keeps its readers, with their connections and what they know of the cluster,
and the kernel once it was worth loading.
"""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from time import monotonic
from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import InputPartition

from riverlog.arrow.background_loop import BackgroundLoop
from riverlog.arrow.columns import Cut
from riverlog.arrow.decoding.decoder import Decode, decoder_for, record_batches
from riverlog.arrow.reader import RangeReader, TakenChunk
from riverlog.client.errors import KafkaError, OffsetOutOfRange, TimedOut
from riverlog.client.offsets import list_offsets
from riverlog.model.ids import NO_TOPIC_ID, Offset, TopicId, TopicPartition
from riverlog.spark.source.columns import Columns
from riverlog.spark.source.losses import lost
from riverlog.spark.source.options import SourceOptions
from riverlog.spark.source.values import Values
from riverlog.spark.worker.pool import ResourcePool
from riverlog.spark.worker.tuning import keep_memory, tune

if TYPE_CHECKING:
    import pyarrow as pa

PORTION_BYTES: Final = 2 * 1024 * 1024
"""What a batch for Spark has at least, unless it is the last: small enough that Spark still finds it in its caches."""
CHECK_SECONDS: Final = 5.0
"""How long a task waits for bytes before it asks whether there will be any."""


@dataclass(frozen=True)
class SourcePartition(InputPartition):
    """Offsets of a partition for one task, of the topic that had this id when it was planned."""

    partition: TopicPartition
    cut: Cut
    topic_id: TopicId = NO_TOPIC_ID


def read_partition(part: SourcePartition, options: SourceOptions, columns: Columns) -> "Iterator[pa.RecordBatch]":
    """Yield the rows of a partition, in batches of a few megabytes that Spark takes as they are."""
    keep_memory()
    where = options.cluster
    key = repr((where.bootstrap, sorted(where.client.items()), options.isolation, sorted(options.reader.items())))
    with READERS.lend(key, lambda: _opened(options)) as lent, Values(options, columns, lent.background) as values:
        lent.serve(options)
        for decoded in lent.read(part, columns.decoded):
            shaped = values.shaped(decoded, part.partition)
            if shaped.num_rows:
                yield shaped
    tune()


class PooledReader:
    """A reader with a loop of its own in this worker, for one task after another."""

    def __init__(self, options: SourceOptions) -> None:
        self.background = BackgroundLoop("riverlog-spark")
        self._options = options
        self._rows = 0
        self._reader: RangeReader | None = None
        self._stack = ExitStack()

    def open(self) -> None:
        """Reach the cluster; it is waited for as long as for bytes."""
        self._stack.enter_context(self.background)
        try:
            self._reader = self.background.run(self._started())
        except BaseException:
            self._stack.close()
            raise
        self._stack.callback(lambda: self.background.run(self._open.close()))

    def serve(self, options: SourceOptions) -> None:
        """Take the options of the next task: as far as the reader depends on them, they are the same."""
        self._options = options

    def close(self) -> None:
        """Close the reader and its connections."""
        self._stack.close()

    def read(self, part: SourcePartition, schema: "pa.Schema") -> "Iterator[pa.RecordBatch]":
        """Yield the rows of a partition, decoded."""
        self._rows += part.cut.until_offset - part.cut.from_offset
        decode: Decode = decoder_for(self._rows)  # of all tasks: in a worker that lives long the kernel pays sooner
        cut, is_wanted = part.cut, False
        while cut.from_offset < cut.until_offset:
            taken = self._next(part, cut, is_wanted=is_wanted)
            if isinstance(taken, Cut):
                cut, is_wanted = taken, False
                continue
            yield from record_batches(
                decode, taken.chunk, part.partition, schema, taken.cut, portion_bytes=PORTION_BYTES
            )
            cut, is_wanted = cut._replace(from_offset=max(cut.from_offset, taken.chunk.next_offset)), True

    def _next(self, part: SourcePartition, cut: Cut, *, is_wanted: bool) -> TakenChunk | Cut:
        """Wait for a chunk; where records are gone, return what is left to be read instead."""
        begun = monotonic()
        while True:
            wanted = None if is_wanted else {part.partition: cut}
            is_wanted = True
            try:
                taken = self.background.run(self._chunk(wanted))
            except TimeoutError:
                if (left := self._left(part, cut)) != cut:
                    return left
                if monotonic() - begun > self._options.stall_seconds_max:
                    raise TimedOut(_stalled(part.partition, cut, self._options.stall_seconds_max)) from None
                continue
            except OffsetOutOfRange:
                return self._left(part, cut)
            self._check_topic(part)
            return taken

    def _left(self, part: SourcePartition, cut: Cut) -> Cut:
        """Find out what of a range is still there; where that is less, log or fail, and go on with it."""
        try:
            begin, end = self.background.run(self._bounds(part.partition))
        except KafkaError as problem:
            if not problem.retriable:
                raise
            return cut
        if begin <= cut.from_offset and cut.until_offset <= end:
            return cut
        lost(self._options, _gone(part.partition, cut, begin, end))
        return cut._replace(from_offset=max(begin, cut.from_offset), until_offset=min(end, cut.until_offset))

    def _check_topic(self, part: SourcePartition) -> None:
        known = self._open.cluster.topics.get(part.partition.topic)
        if known is not None and part.topic_id not in (NO_TOPIC_ID, known.topic_id):
            lost(self._options, f"topic {part.partition.topic!r} was deleted and created anew while a batch was read")

    @property
    def _open(self) -> RangeReader:
        assert self._reader is not None, "it was opened"
        return self._reader

    # In the reader's loop -------------------------------------------------------------------------------------

    async def _started(self) -> RangeReader:
        """Reach the cluster, and try again while that may still succeed."""
        where, options = self._options.cluster, self._options
        deadline = monotonic() + options.stall_seconds_max
        for attempt in count(1):
            settings = {**where.client, **options.reader}
            reader = RangeReader(where.bootstrap, isolation=options.isolation, skip_deleted=False, **settings)
            try:
                return await reader.start()
            except KafkaError as problem:
                pause = reader.cluster.backoff(attempt)
                if not problem.retriable or monotonic() + pause > deadline:
                    raise
                await asyncio.sleep(pause)
        raise AssertionError("counting does not end")

    async def _chunk(self, wanted: dict[TopicPartition, Cut] | None) -> TakenChunk:
        if wanted is not None:
            self._open.want(wanted)
        async with asyncio.timeout(CHECK_SECONDS):
            taken = await self._open.next_chunk()
        assert taken is not None, "there is more of the range"
        return taken

    async def _bounds(self, partition: TopicPartition) -> tuple[Offset, Offset]:
        cluster, isolation = self._open.cluster, self._options.isolation
        await cluster.refresh()
        begin = await list_offsets(cluster, {partition: "earliest"}, isolation=isolation, seconds=CHECK_SECONDS)
        end = await list_offsets(cluster, {partition: "latest"}, isolation=isolation, seconds=CHECK_SECONDS)
        return begin[partition].offset, end[partition].offset


def _stalled(partition: TopicPartition, cut: Cut, seconds: float) -> str:
    return (
        f"{partition} gave no bytes at offset {cut.from_offset} for {seconds:.0f} s. Is its broker well? "
        "kafkaConsumer.pollTimeoutMs says how long a task waits"
    )


def _gone(partition: TopicPartition, cut: Cut, begin: Offset, end: Offset) -> str:
    return (
        f"{partition} was to be read from offset {cut.from_offset} up to {cut.until_offset}, and has those from "
        f"{begin} up to {end}: the others were deleted, or the topic was deleted and created anew"
    )


def _opened(options: SourceOptions) -> PooledReader:
    reader = PooledReader(options)
    reader.open()
    return reader


READERS: Final[ResourcePool[PooledReader]] = ResourcePool()
