"""A topic as a table, for people at a prompt.

    riverlog.scan("orders", since="1h").to_pandas()
    riverlog.scan("orders", since="2026-01-31", columns=["key", "value"]).to_polars()
    for batch in riverlog.scan("orders", partitions=[0]): ...

A scan reads what lies between two positions that are looked up when it begins; it never waits for new records. Batches
come as they arrive and memory stays bounded; tables are in the order of partitions and offsets. Fetching runs in a
thread of its own, so that it also works where an event loop is running, as in a notebook.
"""

import os
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal

from riverlog.arrow.extras import need
from riverlog.arrow.positions import Bound, cuts, position_of
from riverlog.arrow.ranges import Cuts, Found, read_planned
from riverlog.arrow.table import BadValues, TableColumns
from riverlog.client.network.cluster import Cluster
from riverlog.client.offsets import IsolationLevel
from riverlog.model.ids import TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa

    from riverlog.arrow.json.values import Fields

BOOTSTRAP_VARIABLE: Final = "RIVERLOG_BOOTSTRAP_SERVERS"
BOOTSTRAP: Final = "127.0.0.1:9092"
_ISOLATION: Final = {
    "read_committed": IsolationLevel.READ_COMMITTED,
    "read_uncommitted": IsolationLevel.READ_UNCOMMITTED,
}


def scan(
    topic: str,
    *,
    since: Bound = "earliest",
    until: Bound = "latest",
    columns: Iterable[str] | None = None,
    partitions: Iterable[int] | None = None,
    limit: int | None = None,
    value_schema: "pa.Schema | Fields | None" = None,
    bad_values: BadValues = "fail",
    bootstrap: str | None = None,
    isolation_level: Literal["read_committed", "read_uncommitted"] = "read_committed",
    **client: Any,
) -> "Scan":
    """Describe what to read; nothing is asked of the cluster before rows are.

    `since` and `until` are times ("1h" ago, "15:00", a datetime), offsets (7, or -7 for the last seven of each
    partition; {0: 7, 2: 9}), "earliest" or "latest"; what lies at `until` is not read. `columns` are those of Spark's
    Kafka source, "headers" too. `limit` stops after so many rows, whichever come first. `value_schema`, as in
    {"order": "int64", "amount": "double"}, makes columns of values that are JSON; those that are not what it says are
    `bad_values`: "fail" or "null". `bootstrap` is RIVERLOG_BOOTSTRAP_SERVERS or 127.0.0.1:9092. Further settings are
    the client's, such as `request_timeout_ms`.
    """
    if isolation_level not in _ISOLATION:
        raise ValueError(f"isolation_level={isolation_level!r}: choose {' or '.join(map(repr, _ISOLATION))}")
    if limit is not None and limit < 0:
        raise ValueError(f"limit={limit}: a scan gives no fewer rows than none")
    for bound in (since, until):
        position_of(bound, now=datetime.now().astimezone())  # a mistake is reported now, not when rows are asked for
    return Scan(
        topic,
        since,
        until,
        TableColumns(columns, value_schema, bad_values),
        None if partitions is None else tuple(partitions),
        limit,
        bootstrap or os.environ.get(BOOTSTRAP_VARIABLE) or BOOTSTRAP,
        _ISOLATION[isolation_level],
        client,
    )


@dataclass(frozen=True)
class Scan:
    """What is to be read; each use reads it anew."""

    topic: str
    since: Bound
    until: Bound
    columns: TableColumns = field(repr=False)
    partitions: Sequence[int] | None
    limit: int | None
    bootstrap: str
    isolation: IsolationLevel = field(repr=False)
    client: dict[str, Any] = field(repr=False)

    @property
    def schema(self) -> "pa.Schema":
        """Return the names and types of the columns."""
        return self.columns.schema

    def __iter__(self) -> "Iterator[pa.RecordBatch]":
        """Yield batches of rows, each of one partition, as they come."""
        with closing(self._batches()) as batches:
            for _, batch in batches:
                yield batch

    def to_arrow(self) -> "pa.Table":
        """Read everything into a table, in the order of partitions and offsets."""
        pa = need("pyarrow")
        found: dict[TopicPartition, list[Any]] = {}
        for partition, batch in self._batches():
            found.setdefault(partition, []).append(batch)
        return pa.Table.from_batches([batch for each in sorted(found) for batch in found[each]], self.schema)

    def to_pandas(self) -> Any:
        """Read everything into a pandas DataFrame."""
        need("pandas")
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """Read everything into a Polars DataFrame."""
        polars = need("polars")
        return polars.from_arrow(self.to_arrow())

    def to_duckdb(self, connection: Any = None) -> Any:
        """Read everything into a relation of DuckDB, of this connection or of the usual one."""
        duckdb = need("duckdb")
        return (duckdb if connection is None else connection).from_arrow(self.to_arrow())

    def _batches(self) -> Generator[Found, None, None]:
        decoded = self.columns.decoded
        found = read_planned(
            self.bootstrap, self._cuts, decoded, isolation=self.isolation, rows_max=self.limit, **self.client
        )
        with closing(found):
            left = self.limit
            for partition, batch in found if left != 0 else ():
                wanted = batch if left is None else batch[:left]
                yield Found(partition, self.columns.of(wanted, partition))
                if left is not None:
                    left -= wanted.num_rows
                    if left == 0:
                        return

    async def _cuts(self, cluster: Cluster) -> Cuts:
        """Look up where to read."""
        count = len((await cluster.topic(self.topic)).partitions)
        chosen = range(count) if self.partitions is None else dict.fromkeys(self.partitions)
        now = datetime.now().astimezone()
        since, until = position_of(self.since, now=now), position_of(self.until, now=now)
        partitions = [TopicPartition(self.topic, index) for index in chosen]
        return await cuts(cluster, partitions, since, until, self.isolation)
