"""The reader of a batch: what there is between two places when the batch is planned, narrowed by filters."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import DataSourceReader

from riverlog.arrow.columns import Cut
from riverlog.arrow.positions import AtTimestamp, PartitionEnd
from riverlog.spark.plain_errors import plainly
from riverlog.spark.source.columns import columns
from riverlog.spark.source.losses import lost
from riverlog.spark.source.offset_limits import option_of
from riverlog.spark.source.options import SourceOptions
from riverlog.spark.source.planner import Planner
from riverlog.spark.source.pushdown import Narrowed, narrowed
from riverlog.spark.source.ranges import Offsets, Range, divided
from riverlog.spark.source.task import SourcePartition, read_partition

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import Filter, InputPartition
    from pyspark.sql.types import StructType


class BatchReader(DataSourceReader):
    """Plans and reads a batch."""

    def __init__(self, options: SourceOptions, schema: "StructType") -> None:
        self._options = options
        self._columns = columns(schema, options.json)
        self._narrowed = Narrowed()
        self.pushFilters = _PushFilters(self)  # type: ignore[method-assign] # see there

    def narrow(self, filters: "Sequence[Filter]") -> "Iterable[Filter]":
        """Take what filters say about partitions, offsets and times; give those that Spark must still apply."""
        self._narrowed, left = narrowed(filters, self._columns.of_records)
        return left

    @plainly
    def partitions(self) -> "Sequence[InputPartition]":
        """Look up what there is to read and divide it among tasks."""
        planner = Planner(self._options)
        try:
            return self._parts(planner)
        finally:
            planner.close()

    def read(self, partition: "InputPartition") -> "Iterator[pa.RecordBatch]":
        """Read a part; where there are none at all, Spark asks once all the same."""
        return (
            read_partition(partition, self._options, self._columns)
            if isinstance(partition, SourcePartition)
            else iter(())
        )

    def _parts(self, planner: Planner) -> list[SourcePartition]:
        options, narrow = self._options, self._narrowed
        there = planner.partitions()
        earliest, latest = planner.offsets(there, PartitionEnd.EARLIEST), planner.offsets(there, PartitionEnd.LATEST)
        begins = planner.offsets(there, options.starting, option=option_of("starting", options.starting))
        ends = planner.offsets(there, options.ending, option=option_of("ending", options.ending))
        wanted = [each for each in there if narrow.wants(each)]
        times: Offsets = {}
        if narrow.timestamp_ms_min > 0:
            times = planner.offsets(wanted, AtTimestamp(narrow.timestamp_ms_min))
        ranges = []
        for each in wanted:
            found = Range(each, begins[each], ends[each])
            found = self._there(found, Range(each, earliest[each], latest[each]))
            found = narrow.within(found)
            ranges.append(found._replace(from_offset=max(found.from_offset, times.get(each, found.from_offset))))
        return [
            SourcePartition(
                each.partition,
                Cut(each.from_offset, each.until_offset, narrow.timestamp_ms_min),
                planner.topic_ids[each.partition.topic],
            )
            for each in divided(ranges, parts_min=options.parts_min, records_max=options.part_records_max)
        ]

    def _there(self, wanted: Range, there: Range) -> Range:
        """Return what of a range is there; offsets that the program names may be gone, or not be written yet."""
        begin, until = wanted.from_offset, wanted.until_offset
        if begin <= there.until_offset and (begin >= until or there.from_offset <= begin < until <= there.until_offset):
            return wanted
        lost(
            self._options,
            f"{wanted.partition} was to be read from offset {begin} up to {until}, and has those from "
            f"{there.from_offset} up to {there.until_offset}",
        )
        return Range(wanted.partition, max(begin, there.from_offset), min(until, there.until_offset))


class _PushFilters:
    """Takes filters where Spark pushes them down, and leaves Spark alone where it does not.

    Spark refuses a reader with a method `pushFilters` of its own unless spark.sql.python.filterPushdown.enabled is set.
    So this one looks as if it were the method that every reader inherits; called, it is ours.
    """

    __func__: Final = staticmethod(DataSourceReader.pushFilters)

    def __init__(self, reader: BatchReader) -> None:
        self._reader = reader

    def __call__(self, filters: "list[Filter]") -> "Iterable[Filter]":
        return self._reader.narrow(filters)
