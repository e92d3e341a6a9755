"""`scan`: a topic as a table, printed or written to a file.

Rows are printed as they come, a few at a time, so that a topic of any size can be piped; a table is drawn of the first
rows only. A file is whole or not there: it is written beside its place and moved there in the end.
"""

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from riverlog.cli.client_settings import settings_of
from riverlog.cli.cluster_options import ClusterOptions, cluster_options
from riverlog.cli.terminal.exits import CommandError, usage_error
from riverlog.cli.terminal.expressions import LogEdge, start
from riverlog.cli.terminal.options import Argument, partitions_option
from riverlog.cli.terminal.record_formats import plain, visible
from riverlog.cli.terminal.render import OutputFormat, Row, as_json, as_yaml, plural
from riverlog.cli.terminal.tables import draw_table

if TYPE_CHECKING:
    from riverlog import Scan

TABLE_ROWS: Final = 50
PRINTED_ROWS: Final = 1_000
_EDGES: Final = {LogEdge.BEGINNING: "earliest", LogEdge.END: "latest"}


@click.command
@click.argument("topic", cls=Argument, metavar="TOPIC", help="The topic to read.")
@click.option("--since", metavar="TIME", help="Leave out what is older: 1h, 15:00, 2026-01-31T15:00Z, milliseconds.")
@click.option(
    "--until", metavar="TIME", default="latest", help="Leave out what is newer, from the first such record on."
)
@click.option("--offset", metavar="N|-N", help="Begin at an offset; -N is N records before the end of each partition.")
@partitions_option
@click.option(
    "--columns",
    metavar="NAME,…",
    help="Of key, value, topic, partition, offset, timestamp, timestampType and headers. Without it: all but headers.",
)
@click.option(
    "--limit", type=click.IntRange(1), metavar="N", help="Stop after N rows. Without it, a table shows the first 50."
)
@click.option("--uncommitted", is_flag=True, help="Read the records of open and of aborted transactions, too.")
@click.option("-w", "--write", type=click.Path(path_type=Path), metavar="FILE", help="Write a .parquet or .arrow file.")
@cluster_options
def scan(
    topic: str,
    since: str | None,
    until: str,
    offset: str | None,
    partitions: tuple[int, ...],
    columns: str | None,
    limit: int | None,
    uncommitted: bool,
    write: Path | None,
    cluster: ClusterOptions,
) -> None:
    """Print a topic as a table, or write it to a file.

    It reads the records between two places and ends. It needs `pip install 'riverlog[scan]'`.
    """
    if write is not None and cluster.output is not None:
        raise usage_error("--write and --output exclude each other; give one of them")
    form = cluster.output or (OutputFormat.TABLE if sys.stdout.isatty() else OutputFormat.JSON)
    chosen: dict[str, Any] = {
        "since": where_to_start(since, offset),
        "until": until,
        "partitions": partitions or None,
        "limit": limit if limit is not None or write is not None or form is not OutputFormat.TABLE else TABLE_ROWS,
        "isolation_level": "read_uncommitted" if uncommitted else "read_committed",
    }
    if columns is not None:
        chosen["columns"] = [name.strip() for name in columns.split(",")]
    with cluster.errors(topics=[topic]):
        found = _scan(topic, cluster, chosen)
        if write is not None:
            print(f"{plural(write_file(found, write), 'row')} written to {write}")
        else:
            print_rows(found, form)


def where_to_start(since: str | None, offset: str | None) -> str | int:
    """Turn two options, of which one may be given, into a place; the beginning without any."""
    if since is not None and offset is not None:
        raise usage_error("--since and --offset exclude each other; give one of them")
    if offset is None:
        return since or "earliest"
    begin = start(offset)
    return _EDGES[begin] if isinstance(begin, LogEdge) else begin


def _scan(topic: str, cluster: ClusterOptions, chosen: dict[str, Any]) -> "Scan":
    try:
        from riverlog.arrow.scan import scan
    except ImportError as error:
        raise CommandError(str(error)) from error
    from riverlog.client.network.cluster import Cluster

    try:
        return scan(topic, bootstrap=cluster.bootstrap, **chosen, **settings_of([Cluster], cluster.settings)[0])
    except ValueError as error:
        raise usage_error(str(error)) from error


def print_rows(found: "Scan", form: OutputFormat) -> None:
    """Print every row."""
    match form:
        case OutputFormat.TABLE:
            names = found.schema.names
            rows = [[_cell(row[name]) for name in names] for row in rows_of(found)]
            draw_table(names, rows)
            print(f"the first {plural(len(rows), 'row')}" if len(rows) == found.limit else plural(len(rows), "row"))
        case OutputFormat.JSON:
            for row in rows_of(found):
                print(as_json(row))
        case OutputFormat.YAML:
            for row in rows_of(found):
                print("\n".join(as_yaml([row])))


def rows_of(batches: Iterable[Any]) -> Iterator[Row]:
    """Yield rows as plain values, a portion of a batch at a time."""
    for batch in batches:
        for begin in range(0, batch.num_rows, PRINTED_ROWS):
            for row in batch[begin : begin + PRINTED_ROWS].to_pylist():
                yield {name: _plain(value) for name, value in row.items()}


def _plain(value: Any) -> Any:
    match value:
        case bytes():
            return plain(value)
        case datetime():
            return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        case list():
            return [{"key": each["key"], "value": plain(each["value"])} for each in value]
        case _:
            return value


def _cell(value: Any) -> Any:
    """Show what is neither text nor a number as JSON, and what a terminal would obey as what it is."""
    if isinstance(value, dict | list):
        value = json.dumps(value, ensure_ascii=False)
    return visible(value) if isinstance(value, str) else value


def write_file(found: "Scan", path: Path) -> int:
    """Write every row to a file of the kind that its name says; return how many there were."""
    import pyarrow as pa

    kinds: dict[str, Callable[[str, pa.Schema], Any]] = {".parquet": _parquet, ".arrow": pa.ipc.new_file}
    if path.suffix not in kinds:
        raise usage_error(
            f"{path} is of no kind that can be written; name it {' or '.join(f'*{kind}' for kind in kinds)}"
        )
    beside = path.with_name(f"{path.name}.part")
    rows = 0
    try:
        with kinds[path.suffix](str(beside), found.schema) as writer:
            for batch in found:
                writer.write_batch(batch)
                rows += batch.num_rows
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)
    return rows


def _parquet(path: str, schema: Any) -> Any:
    from pyarrow.parquet import ParquetWriter

    return ParquetWriter(path, schema, compression="zstd")
