"""`pipelines stop` and `reset`: end a query behind its batch, and begin one again. Both work from any machine."""

import time
from datetime import datetime
from typing import TYPE_CHECKING, Final

import click

from riverlog.cli.commands.pipelines.checkpoints import opened, store_option
from riverlog.cli.commands.pipelines.queries import PIPELINE, path_of
from riverlog.cli.terminal.exits import CommandError, usage_error
from riverlog.cli.terminal.expressions import moment_ms
from riverlog.cli.terminal.options import confirm, output_option, yes_option
from riverlog.cli.terminal.render import OutputFormat, Row, emit, plural

if TYPE_CHECKING:
    from riverlog.checkpoints.pipelines.starts import Start
    from riverlog.checkpoints.remote import RemoteStore

_ASK_SECONDS: Final = 0.5
_STOP_SECONDS: Final = 120


@click.command
@PIPELINE.many
@click.option(
    "--timeout",
    "seconds_max",
    type=click.IntRange(0, 86_400),
    default=_STOP_SECONDS,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait until they have stopped; 0 does not wait.",
)
@store_option
@output_option
def stop(
    names: list[str],
    seconds_max: int,
    address: str,
    output: OutputFormat | None,
) -> None:
    """Stop pipelines wherever they run, each after its current batch.

    It reaches sessions that riverlog.spark.session made, within seconds. A pipeline under `riverlog pipelines run`
    stops with all its outputs.
    """
    with opened(address) as store:
        for name in names:
            store.stop(path_of(name))
        deadline = time.monotonic() + seconds_max
        rows: list[Row] = [{"pipeline": name, **_stopped(store, name, deadline)} for name in names]
    emit(rows, output, lambda: print("\n".join(_sentence(row) for row in rows)))
    running = [str(row["pipeline"]) for row in rows if row["state"] == "running"]
    if running and seconds_max:
        raise CommandError(
            f"{', '.join(running)} did not stop within {plural(seconds_max, 'second')}; the request stays, "
            "and it stops after its batch"
        )


@click.command
@PIPELINE.many
@click.option("--to-earliest", is_flag=True, help="Begin at the first record that is still there.")
@click.option("--to-latest", is_flag=True, help="Begin after the last record.")
@click.option(
    "--to-datetime", metavar="TIME", help="Begin at the first record at or after a time: -15m, 15:00, ISO 8601."
)
@click.option("--force", is_flag=True, help="Reset a pipeline that reports nothing. Make sure that it does not run.")
@yes_option
@store_option
@output_option
def reset(
    names: list[str],
    to_earliest: bool,
    to_latest: bool,
    to_datetime: str | None,
    force: bool,
    yes: bool,
    address: str,
    output: OutputFormat | None,
) -> None:
    """Delete the checkpoint and state of pipelines, so that they start again.

    The next run begins with empty windows and joins, and writes its results again. It starts at the given place in its
    topics, or else where the program says. Only pipelines made with riverlog.pipelines start at the given place; other
    queries of Spark start at their startingOffsets.

    A pipeline that runs is refused. On a terminal the command asks first; in a script it acts at once. `riverlog
    pipelines checkpoints export` keeps a copy.
    """
    start = _start(to_earliest, to_latest, to_datetime)
    confirm(f"Delete the checkpoint and state of {', '.join(names)}?", yes=yes, otherwise="nothing was reset")
    rows: list[Row] = []
    with opened(address) as store:
        for name in names:
            store.reset(path_of(name), start, force=force)
            rows.append({"pipeline": name, "reset": True, "start": None if start is None else start.to_json()})
    emit(rows, output, lambda: print(f"Reset {plural(len(rows), 'pipeline')}: {', '.join(names)}"))


def _stopped(store: "RemoteStore", name: str, deadline: float) -> Row:
    """Wait until a query has stopped, and say how it ended. A node that was restarted meanwhile is asked again."""
    from riverlog.checkpoints.files.refusals import RequestRefused

    while True:
        found = store.query(path_of(name))
        if found["state"] != "running" or time.monotonic() >= deadline:
            return {"state": found["state"], "batch": found["batch"]}
        time.sleep(_ASK_SECONDS)
        try:
            store.stop(path_of(name))
        except RequestRefused:
            pass  # it has stopped, or failed: the next look says which


def _sentence(row: Row) -> str:
    match row["state"]:
        case "stopped":
            return f"{row['pipeline']} has stopped, after batch {row['batch']}"
        case "running":
            return f"{row['pipeline']} was asked to stop"
        case state:
            return f"{row['pipeline']} has not stopped by itself: its state is {state}"


def _start(to_earliest: bool, to_latest: bool, to_datetime: str | None) -> "Start | None":
    from riverlog.checkpoints.pipelines.starts import Start

    if to_earliest + to_latest + (to_datetime is not None) > 1:
        raise usage_error("say where to begin in one way: --to-earliest, --to-latest or --to-datetime")
    if to_datetime is not None:
        return Start(timestamp_ms=moment_ms(to_datetime, now=datetime.now().astimezone()))
    return Start("earliest") if to_earliest else Start("latest") if to_latest else None
