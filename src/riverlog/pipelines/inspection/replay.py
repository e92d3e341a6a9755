"""A batch once more: its exact input, and what the pipeline makes of it, on this machine and without writing anything.

Spark has written down which offsets a batch took. They are read again, as a DataFrame that has an end. Python functions
of the pipeline run in this process instead of a worker, where a debugger can stop in them. Late rows are those that
were late then: the watermark is in the checkpoint. What windows and joins held in their state before is not there.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from json import dumps
from typing import TYPE_CHECKING, Any, Final

from riverlog.arrow.extras import need
from riverlog.checkpoints.pipelines.spark_logs import SourceOffset, source_offsets
from riverlog.checkpoints.pipelines.starts import Start

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

EARLIEST: Final = -2
"""Spark's number for the beginning of a partition."""
_NOT_FOR_BATCHES: Final = frozenset(
    {
        "subscribe",
        "startingoffsets",
        "startingtimestamp",
        "startingoffsetsbytimestamp",
        "startingoffsetsbytimestampstrategy",
        "maxoffsetspertrigger",
        "minoffsetspertrigger",
        "maxtriggerdelay",
        "deadlettertopic",
        "badvalues",
    }
)


class NotReplayed(ValueError):
    """A batch cannot be had once more; the message says why."""


@dataclass(frozen=True)
class ReplayedBatch:
    """The input of a batch: for each partition the first offset, and the one behind the last."""

    number: int
    ranges: Mapping[tuple[str, int], tuple[int, int]]
    is_first: bool = False
    start: Start | None = None
    """Where the first batch began, if the pipeline was reset to begin there."""
    made: "dict[int, DataFrame]" = field(default_factory=dict, compare=False)
    """What Python functions returned, so that each is called once."""

    def topics(self) -> list[str]:
        """Name the topics that the batch read."""
        return sorted({topic for topic, _ in self.ranges})

    def frame(self, spark: "SparkSession", options: Mapping[str, str]) -> "DataFrame":
        """Read what the batch read, by the options with which the stream does."""
        topics = options["subscribe"].split(",")
        own = {partition: ends for partition, ends in self.ranges.items() if partition[0] in topics}
        if not own:
            raise NotReplayed(
                f"batch {self.number} has read {', '.join(self.topics()) or 'no topic'}, and not {', '.join(topics)}: "
                "the file is not that of this pipeline"
            )
        begun = options.get("startingOffsets") if self.start is None else self.start.edge
        if self.is_first and begun != "earliest":
            raise NotReplayed(
                f"batch {self.number} is the first, and where it began is written down nowhere but in the program; "
                "replay a later one"
            )
        kept = {name: value for name, value in options.items() if name.lower() not in _NOT_FOR_BATCHES}
        if "value.format" in kept:
            bad = options.get("badValues", "fail")
            kept["badValues"] = "skip" if bad == "dead-letter" else bad  # those letters were written
        chosen: dict[str, list[int]] = {}
        starting: dict[str, dict[str, int]] = {}
        ending: dict[str, dict[str, int]] = {}
        for (topic, index), (first, end) in sorted(own.items()):
            chosen.setdefault(topic, []).append(index)
            starting.setdefault(topic, {})[str(index)] = first
            ending.setdefault(topic, {})[str(index)] = end
        read = spark.read.format("riverlog").options(**kept)
        read = read.option("assign", dumps(chosen)).option("startingOffsets", dumps(starting))
        return read.option("endingOffsets", dumps(ending)).load()

    def mapped(self, rows: "DataFrame", step: "Callable[[Any], Any]", schema: "str | StructType") -> "DataFrame":
        """Run a function over Arrow batches here, in this process."""
        if id(step) not in self.made:
            import pyarrow as pa
            from pyspark.sql.pandas.types import to_arrow_schema

            from riverlog.pipelines.schemas import struct_of

            given = list(step(iter(rows.toArrow().to_batches())))
            arrow = to_arrow_schema(struct_of(schema), timezone="UTC")
            table = pa.Table.from_batches(given) if given else arrow.empty_table()
            self.made[id(step)] = rows.sparkSession.createDataFrame(table, struct_of(schema))
        return self.made[id(step)]

    def mapped_pandas(self, rows: "DataFrame", step: "Callable[[Any], Any]", schema: "str | StructType") -> "DataFrame":
        """Run a function over pandas' frames here, in this process."""
        if id(step) not in self.made:
            from riverlog.pipelines.schemas import struct_of

            pandas = need("pandas")
            given = pandas.concat(list(step(iter([rows.toPandas()]))))
            self.made[id(step)] = rows.sparkSession.createDataFrame(given, struct_of(schema))
        return self.made[id(step)]


CURRENT: Final[ContextVar[ReplayedBatch | None]] = ContextVar("riverlog_replayed_batch", default=None)


@contextmanager
def replaying(batch: ReplayedBatch) -> Iterator[None]:
    """Set this batch as what pipelines that are defined in here read, instead of their topics' streams."""
    before = CURRENT.set(batch)
    try:
        yield
    finally:
        CURRENT.reset(before)


def batch_of(number: int, before: bytes | None, planned: bytes, start: Start | None = None) -> ReplayedBatch:
    """Return the input of a batch by what Spark planned for it and for the one before, which the first one has not."""
    ends = source_offsets(planned)
    if not ends:
        raise NotReplayed(f"batch {number} names no offsets of topics; it has read something else")
    begins = {} if before is None else _by_partition(source_offsets(before))
    ranges = {partition: (begins.get(partition, EARLIEST), end) for partition, end in _by_partition(ends).items()}
    return ReplayedBatch(number, ranges, is_first=before is None, start=start)


def _by_partition(offsets: tuple[SourceOffset, ...]) -> dict[tuple[str, int], int]:
    return {(topic, index): offset for topic, index, offset in offsets}
