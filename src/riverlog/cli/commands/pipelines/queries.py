"""`pipelines list` and `describe`: queries of Spark whose checkpoints lie on a node, and how they go."""

from typing import Any, Final

import click

from riverlog.cli.commands.pipelines.checkpoints import checked, opened, store_option
from riverlog.cli.terminal.colours import Wrong, wrong
from riverlog.cli.terminal.names import Naming
from riverlog.cli.terminal.options import output_option, text_output_option
from riverlog.cli.terminal.record_formats import visible
from riverlog.cli.terminal.render import OutputFormat, emit, size_text, time_text
from riverlog.cli.terminal.screen import show_again, watch_options
from riverlog.cli.terminal.tables import draw_table
from riverlog.spark.error_words import reason

PIPELINE: Final = Naming("pipeline", "--pipeline")
_COLUMNS: Final = ("pipeline", "state", "batch", "lag", "rows/s", "watermark", "late rows")


@click.command
@watch_options
@store_option
@output_option
def list_pipelines(watch: bool, interval: float, address: str, output: OutputFormat | None) -> None:
    """List the pipelines whose checkpoints are on a node, and their progress.

    Each is a query of Spark. Its offsets, lag, batch, watermark and sizes come from the checkpoint. The rest is
    reported by its session, if riverlog.spark.session made it. The state is unknown where there was no report for half
    a minute. `pipelines describe` and -o json show more.
    """

    def show() -> None:
        with opened(address) as store:
            rows = store.queries()
        emit(rows, output, lambda: draw_table(_COLUMNS, [_cells(row) for row in rows]))

    show_again(show, watch=watch, interval=interval)


@click.command
@PIPELINE.one
@watch_options
@store_option
@text_output_option
def describe(name: str, watch: bool, interval: float, address: str, output: OutputFormat | None) -> None:
    """Show a pipeline: offsets and lag, rates, watermark, late rows, state, the last error.

    The name of a pipeline is that of its checkpoint's folder in /pipelines. If the checkpoint is in another folder, the
    name is the whole path.
    """

    def show() -> None:
        with opened(address) as store:
            found = store.query(path_of(name))
        emit([found], output or OutputFormat.TABLE, lambda: _show(found))

    show_again(show, watch=watch, interval=interval)


def path_of(name: str) -> str:
    """Return the path of a pipeline's checkpoint in the store."""
    return checked(name if name.startswith("/") else f"/pipelines/{name}")


def lines_of(found: dict[str, Any]) -> list[str]:
    """Return all but the partitions, a line for each part."""
    parts = {
        f"Pipeline {found['pipeline']}": {
            "State": found["state"],
            "Since": time_text(found["since_ms"]),
            "Batch": found["batch"],
            "Lag": found["lag"],
        },
        "Last batch": {
            "Committed": time_text(found["committed_ms"]),
            "Rows": found["rows"],
            "RowsPerSecond": _rate(found["rows_per_second"]),
            "OutputRows": found["output_rows"],
            "Duration": _length(found["batch_ms"]),
        },
        "Event time": {"Watermark": time_text(found["watermark_ms"]), "LateRows": found["late_rows"]},
        "State store": {
            "Rows": found["state_rows"],
            "Memory": _size(found["state_memory_bytes"]),
            "Files": _size(found["state_bytes"]),
            "CommitTime": _length(found["state_commit_ms"]),
        },
        f"Checkpoint {found['checkpoint']}": {
            "Files": found["checkpoint_files"],
            "Size": _size(found["checkpoint_bytes"]),
            "PlannedBatch": found["planned_batch"],
        },
    }
    lines = [
        f"{part}: {', '.join(f'{name}={_or_dash(value)}' for name, value in values.items())}"
        for part, values in parts.items()
    ]
    if found["error"]:
        lines.append(f"{wrong('Last error')}, {time_text(found['error_ms'])}: {visible(reason(found['error']))}")
    return lines


def _show(found: dict[str, Any]) -> None:
    print("\n".join(lines_of(found)))
    if found["partitions"]:
        print()
        columns = ["topic", "partition", "offset", "end", "lag"]
        draw_table(columns, [[row[column] for column in columns] for row in found["partitions"]])


def _cells(row: dict[str, Any]) -> list[object]:
    shown = [
        row["pipeline"],
        Wrong(row["state"]) if row["state"] == "failed" else row["state"],
        row["batch"],
        row["lag"],
        _rate(row["rows_per_second"]),
        time_text(row["watermark_ms"]),
        row["late_rows"],
    ]
    return [_or_dash(cell) for cell in shown]


def _or_dash(value: object) -> object:
    return "-" if value is None else value


def _rate(per_second: float | None) -> str | None:
    return None if per_second is None else f"{per_second:,.1f}" if per_second < 10 else f"{per_second:,.0f}"


def _length(length_ms: int | None) -> str | None:
    return None if length_ms is None else f"{length_ms} ms"


def _size(count: int | None) -> str | None:
    return None if count is None else size_text(count)
