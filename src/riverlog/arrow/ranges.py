"""Ranges of partitions as Arrow batches, for callers without an event loop: people's scans, and tasks of Spark.

Fetching runs in a thread of its own, ahead of the caller and within a bound; decoding in the caller's.
"""

from collections.abc import Awaitable, Callable, Generator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from riverlog.arrow.background_loop import BackgroundLoop
from riverlog.arrow.columns import Cut
from riverlog.arrow.decoding.decoder import decoder_for, record_batches
from riverlog.arrow.reader import RangeReader
from riverlog.client.network.cluster import Cluster
from riverlog.client.offsets import IsolationLevel
from riverlog.model.ids import TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa

Cuts = Mapping[TopicPartition, Cut]
Plan = Callable[[Cluster], Awaitable[Cuts]]
"""Finds out what to read, once the cluster is reached."""


class Found(NamedTuple):
    """Rows of one partition, at least one."""

    partition: TopicPartition
    batch: "pa.RecordBatch"


def read_planned(
    bootstrap: str,
    plan: Plan,
    schema: "pa.Schema",
    *,
    isolation: IsolationLevel = IsolationLevel.READ_COMMITTED,
    skip_deleted: bool = True,
    rows_max: int | None = None,
    **client: Any,
) -> Generator[Found, None, None]:
    """Yield the rows of what the plan names, as they come; `rows_max` says how many the caller will take.

    Where records were deleted, reading goes on behind them, or without `skip_deleted` raises OffsetOutOfRange.
    """

    async def start() -> RangeReader:
        return await RangeReader(bootstrap, isolation=isolation, skip_deleted=skip_deleted, **client).start()

    async def begin(reader: RangeReader) -> Cuts:
        cuts = await plan(reader.cluster)
        reader.want(cuts)
        return cuts

    with BackgroundLoop("riverlog-scan") as background:
        reader = background.run(start())
        try:
            cuts = background.run(begin(reader))
            rows = sum(cut.until_offset - cut.from_offset for cut in cuts.values())
            decode = decoder_for(rows if rows_max is None else min(rows, rows_max))
            while (taken := background.run(reader.next_chunk())) is not None:
                for batch in record_batches(decode, taken.chunk, taken.partition, schema, taken.cut):
                    yield Found(taken.partition, batch)
        finally:
            background.run(reader.close())
