"""The reader of a stream: which offsets are there, how far the next batch goes, and its parts.

Spark keeps one of these in a process of its own for as long as a query runs, and passes the query's offsets with
each question. So all that is remembered here may be lost: the latest offsets that were seen, when a batch was last
planned, and the ids of topics, by which one that was deleted and created anew is known.
"""

from collections.abc import Iterator, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import DataSourceStreamReader
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from riverlog.arrow.columns import Cut
from riverlog.arrow.positions import PartitionEnd
from riverlog.model.ids import Offset, TopicId, TopicPartition
from riverlog.spark.plain_errors import plainly
from riverlog.spark.source.columns import columns
from riverlog.spark.source.losses import lost
from riverlog.spark.source.offset_limits import SpecificOffsets, option_of
from riverlog.spark.source.options import SourceOptions
from riverlog.spark.source.ranges import Offsets, OffsetsJson, Range, divided, from_json, limited, to_json
from riverlog.spark.worker.disconnection import is_disconnected, leave

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import InputPartition
    from pyspark.sql.types import StructType

    from riverlog.spark.source.planner import Planner

IDLE_SECONDS: Final = 0.1
"""How long a question for new records waits where there are none."""
DISCOVERY_SECONDS: Final = 1.0
"""How often a query looks for new partitions, while it runs."""


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans and reads the batches of a stream."""

    def __init__(self, options: SourceOptions, schema: "StructType") -> None:
        self._options = options
        self._columns = columns(schema, options.json)
        self._planner: Planner | None = None
        self._partitions: list[TopicPartition] = []
        self._topic_ids: dict[str, TopicId] = {}
        self._looked_at: float | None = None
        self._latest: Offsets = {}
        self._planned: Offsets = {}
        self._planned_at: float | None = None
        self._recreated: set[str] = set()
        """Topics that were found to be created anew since a batch was last planned."""
        self._anew: Offsets = {}
        """The query's offsets in partitions of topics created anew: the next batch begins at their beginning."""
        self._target: Offsets | None = None
        """Where the query ends that takes what is available now."""

    @plainly
    def initialOffset(self) -> OffsetsJson:  # noqa: N802 - Spark's name, as those below
        """Return where a query begins that has no checkpoint."""
        starting = self._options.starting
        partitions = self._look()
        begins = self._plan.offsets(partitions, starting, option=option_of("starting", starting))
        return to_json(self._there(begins) if isinstance(starting, SpecificOffsets) else begins)

    @plainly
    def latestOffset(self, start: OffsetsJson, limit: ReadLimit) -> OffsetsJson:  # noqa: N802
        """Return how far the next batch goes; where there is nothing new, after a while, where the last one ended."""
        stands = from_json(start)
        self._anew = {each: stood for each, stood in self._anew.items() if stands.get(each) == stood}
        begins, ends = self._begins_and_ends(stands)
        if self._target is None and not _news(begins, ends):
            self._plan.wait(ends, IDLE_SECONDS)
            begins, ends = self._begins_and_ends(stands)
        self._latest = ends
        if self._is_too_little(begins, ends, limit):
            return start
        if isinstance(limit, ReadMaxRows):
            latest, ends = ends, limited(begins, ends, limit.max_rows)
            for each, stood in self._anew.items():
                if ends.get(each) == stood < latest[each]:
                    ends[each] = Offset(stood + 1)  # Spark takes offsets for new when they differ
        if ends == stands:
            return start
        self._planned, self._planned_at = ends, monotonic()
        return to_json(ends)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return how much a batch takes at most, or at least."""
        if self._options.records_max is not None:
            return ReadMaxRows(self._options.records_max)
        if self._options.records_min is not None:
            return ReadMinRows(self._options.records_min)
        return ReadAllAvailable()

    def reportLatestOffset(self) -> OffsetsJson | None:  # noqa: N802
        """Return how far the topics go, for those who look at the query's progress."""
        return to_json(self._latest) if self._latest else None

    @plainly
    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Remember how far the topics go now; the query ends there."""
        self._target = self._plan.offsets(self._look(), PartitionEnd.LATEST)

    @plainly
    def partitions(self, start: OffsetsJson, end: OffsetsJson) -> "Sequence[InputPartition]":
        """Divide a batch among tasks."""
        from riverlog.spark.source.task import SourcePartition

        begins, ends = from_json(start), from_json(end)
        if self._looked_at is None:
            self._look()
        new = [each for each in ends if each not in begins and each in self._partitions]
        begins |= self._new(new)
        recreated = [each for each, stood in self._anew.items() if each in ends and begins[each] == stood]
        begins |= self._plan.offsets(recreated, PartitionEnd.EARLIEST)
        if ends != self._planned:  # a batch of an earlier run: much may have changed since
            ends = self._still_there(ends)
        anew = [each for each, until in ends.items() if until < begins[each]]
        begins |= self._plan.offsets(anew, PartitionEnd.EARLIEST)
        ranges = [Range(each, begins[each], until) for each, until in ends.items()]
        parts = divided(ranges, parts_min=self._options.parts_min, records_max=self._options.part_records_max)
        return [
            SourcePartition(
                each.partition, Cut(each.from_offset, each.until_offset), self._topic_ids[each.partition.topic]
            )
            for each in parts
        ]

    def read(self, partition: "InputPartition") -> "Iterator[pa.RecordBatch]":
        """Read a part of a batch."""
        from riverlog.spark.source.task import SourcePartition, read_partition

        assert isinstance(partition, SourcePartition), "parts are all that was planned"
        return read_partition(partition, self._options, self._columns)

    def commit(self, end: OffsetsJson) -> None:
        """Do nothing: Spark's checkpoint is what counts, and says so too late to be of use elsewhere."""

    def stop(self) -> None:
        """Close the connections; Spark has hung up already where it wants no more of this reader."""
        if self._planner is not None:
            self._planner.close()
            self._planner = None
        if is_disconnected():
            leave()

    # What there is --------------------------------------------------------------------------------------------

    @property
    def _plan(self) -> "Planner":
        if self._planner is None:
            from riverlog.spark.source.planner import Planner

            self._planner = Planner(self._options)
        return self._planner

    def _look(self) -> list[TopicPartition]:
        """Ask which partitions there are, and notice topics that are not what they were."""
        goes_on = self._looked_at is not None and not self._options.fails_on_data_loss
        self._partitions = self._plan.partitions(may_miss=goes_on)
        for topic, topic_id in self._plan.topic_ids.items():
            if self._topic_ids.get(topic, topic_id) != topic_id:
                lost(self._options, f"topic {topic!r} was deleted and created anew: what was not read of it is gone")
                self._recreated.add(topic)
        self._topic_ids = dict(self._plan.topic_ids)
        self._looked_at = monotonic()
        return self._partitions

    def _begins_and_ends(self, stands: Offsets) -> tuple[Offsets, Offsets]:
        """Return what each partition has behind the query's offset; new ones are read from their start."""
        if self._looked_at is None or monotonic() - self._looked_at > DISCOVERY_SECONDS:
            self._look()
        if self._target is None:
            ends = self._ends()
        else:
            ends = {each: offset for each, offset in self._target.items() if each in self._partitions}
        for each in stands.keys() - ends.keys():
            if each in self._partitions:
                ends[each] = stands[each]  # it came when the query was to take what had been available before
            else:
                lost(self._options, f"{each} is gone, and with it what this query had not read")
        begins = {each: stands[each] for each in ends if each in stands}
        self._anew |= {each: stood for each, stood in begins.items() if each.topic in self._recreated}
        self._recreated.clear()
        shrunk = [each for each, begin in begins.items() if ends[each] < begin and each not in self._anew]
        for each in shrunk:
            lost(self._options, _shrunk(each, begins[each], ends[each]))
        anew = [each for each in self._anew if each in ends]
        new = [each for each in ends if each not in stands]
        return begins | self._plan.offsets([*shrunk, *anew], PartitionEnd.EARLIEST) | self._new(new), ends

    def _new(self, partitions: list[TopicPartition]) -> Offsets:
        """Return where partitions begin that the query has not read yet; of them, nothing may be gone."""
        begins = self._plan.offsets(partitions, PartitionEnd.EARLIEST)
        for each, begin in begins.items():
            if begin > 0:
                lost(self._options, f"{each} is new and begins at offset {begin}: what was written before is gone")
        return begins

    def _ends(self) -> Offsets:
        """Return how far the topics go; where a topic is gone, it is looked for once more, and that is reported."""
        ends = self._plan.ends(self._partitions)
        return self._plan.offsets(self._look(), PartitionEnd.LATEST) if ends is None else ends

    def _is_too_little(self, begins: Offsets, ends: Offsets, limit: ReadLimit) -> bool:
        """Return whether a batch is better put off until there is more for it."""
        least = self._options.records_min
        if least is None or isinstance(limit, ReadAllAvailable) or self._target is not None:
            return False
        if self._planned_at is None or monotonic() - self._planned_at >= self._options.delay_seconds_max:
            return False
        return sum(max(0, ends[each] - begins[each]) for each in ends) < least

    def _there(self, begins: Offsets) -> Offsets:
        """Return where a query begins that names offsets; those that are not there are lost, or a mistake."""
        earliest, latest = (self._plan.offsets(begins, end) for end in (PartitionEnd.EARLIEST, PartitionEnd.LATEST))
        for each, begin in begins.items():
            if not earliest[each] <= begin <= latest[each]:
                there = f"has those from {earliest[each]} up to {latest[each]}"
                lost(self._options, f"{each} was to be read from offset {begin} on, and {there}")
        return {each: min(max(begin, earliest[each]), latest[each]) for each, begin in begins.items()}

    def _still_there(self, ends: Offsets) -> Offsets:
        """Return what of a batch's ends the cluster has."""
        latest = self._plan.offsets([each for each in ends if each in self._partitions], PartitionEnd.LATEST)
        for each, until in ends.items():
            if each not in latest:
                lost(self._options, f"{each} is gone, and with it what this query had not read")
            elif latest[each] < until:
                lost(self._options, _shrunk(each, until, latest[each]))
        return {each: min(until, latest[each]) for each, until in ends.items() if each in latest}


def _news(begins: Offsets, ends: Offsets) -> bool:
    return any(end > begins[each] for each, end in ends.items())


def _shrunk(partition: TopicPartition, stood: int, ends: int) -> str:
    return (
        f"{partition} ends at offset {ends}, and this query has seen offset {stood} of it: the topic was deleted and "
        "created anew, or lost records"
    )
