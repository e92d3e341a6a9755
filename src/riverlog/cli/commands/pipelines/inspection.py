"""`pipelines picture`, `replay` and `state`: how a file's pipelines look, one batch once more, and what is kept."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from riverlog.cli.cluster_options import brokers_option
from riverlog.cli.commands.pipelines.checkpoints import opened, store_option
from riverlog.cli.commands.pipelines.queries import PIPELINE, path_of
from riverlog.cli.commands.pipelines.spark_session import (
    bootstrap_for_all,
    check_file,
    file_argument,
    loaded,
    need_spark,
    session,
    spark_options,
)
from riverlog.cli.terminal.exits import CommandError, ExitCode
from riverlog.cli.terminal.options import output_option
from riverlog.cli.terminal.render import OutputFormat, Row, emit, plural
from riverlog.cli.terminal.tables import draw_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from riverlog.checkpoints.remote import RemoteStore
    from riverlog.pipelines import Pipeline
    from riverlog.pipelines.inspection.replay import ReplayedBatch
    from riverlog.pipelines.pipeline import Output

TABLE_ROWS: Final = 50


@click.command
@file_argument
@click.option("--svg", type=click.Path(path_type=Path), metavar="FILE", help="Write the picture as SVG.")
@spark_options
def picture(file: Path, svg: Path | None, master: str | None, conf: tuple[str, ...]) -> None:
    """Draw the pipelines of a file: topics, steps and outputs.

    It starts Spark to read the file, and touches no topic.
    """
    check_file(file)
    need_spark()
    from riverlog.pipelines.inspection.picture import OutputPicture, as_svg, as_text

    with session(file.stem, master=master or "local[1]", conf=conf, folder=file.parent):
        outputs = []
        for pipeline in loaded(file):
            for output in pipeline.outputs:
                properties = output.stream.properties
                side = None if properties.side is None else properties.side.topic
                outputs.append(OutputPicture(output.name, properties.lineage, output.target, side))
    if svg is None:
        print(as_text(outputs), end="")
    else:
        svg.write_text(as_svg(file.stem, outputs), encoding="utf-8")
        print(f"Wrote {svg}")


@click.command
@PIPELINE.one
@click.option(
    "--batch", "number", type=click.IntRange(0), metavar="N", help="The number of the batch. Without it: the last one."
)
@click.option(
    "--file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The file that defines the pipeline: run it on that input. Without it, the input is printed.",
)
@click.option("--pdb", "debug", is_flag=True, help="Open Python's debugger where it fails.")
@spark_options
@brokers_option
@store_option
@output_option
def replay(
    name: str,
    number: int | None,
    file: Path | None,
    debug: bool,
    master: str | None,
    conf: tuple[str, ...],
    bootstrap: str,
    address: str,
    output: OutputFormat | None,
) -> None:
    """Run one batch of a pipeline again, on the same input, and print the results.

    It runs on this machine and writes nothing. Python functions of the pipeline run in this process, so breakpoint()
    and --pdb work in them. The same rows are late as in the original run. State from earlier batches is not there, so
    windows and joins have the rows of this batch only. Spark keeps the last hundred batches, and the topics must still
    have the records.
    """
    if file is not None:
        check_file(file)
    need_spark()
    path = path_of(name)
    with opened(address) as store:
        batch = _batch(store, path, number)
    place = f"webhdfs://{address.removeprefix('webhdfs://')}"
    with (
        bootstrap_for_all(bootstrap),
        session(
            name, master=master or "local[1]", conf=conf, bootstrap=bootstrap, store=place,
            folder=None if file is None else file.parent,
        ) as spark,
        _debugged(debug=debug),
    ):  # fmt: skip
        if file is None:
            read = {"kafka.bootstrap.servers": bootstrap, "startingOffsets": "earliest"}
            frame = batch.frame(spark, {**read, "subscribe": ",".join(batch.topics())})
            frame = frame.selectExpr(
                "topic", "partition", "offset", "timestamp", "string(key) key", "string(value) value"
            )
        else:
            frame = _results(batch, file, path)
        rows = _rows(frame)
    emit(rows, output, lambda: _draw(rows))


@click.command
@PIPELINE.one
@click.option("--operator", type=click.IntRange(0), metavar="N", help="Print only this window or join, counted from 0.")
@click.option(
    "--limit",
    type=click.IntRange(1),
    default=1_000,
    show_default=True,
    metavar="N",
    help="Print at most N rows of each.",
)
@spark_options
@store_option
@output_option
def state(
    name: str,
    operator: int | None,
    limit: int,
    master: str | None,
    conf: tuple[str, ...],
    address: str,
    output: OutputFormat | None,
) -> None:
    """Print the state of a pipeline: open windows, and rows that wait for a join partner.

    It is the state after the last committed batch, read with Spark's own reader. The pipeline may be running.
    """
    need_spark()
    path = path_of(name)
    with opened(address) as store:
        found = store.query(path)
    if found["batch"] is None:
        raise CommandError(f"{found['pipeline']} has committed no batch yet, so it has no state", ExitCode.REFUSED)
    with session("state", master=master or "local[1]", conf=conf, store=address) as spark:
        from riverlog.pipelines.inspection.states import read_state

        folder = spark.conf.get("spark.sql.streaming.checkpointLocation") or ""
        place = f"{folder.removesuffix('/pipelines')}{path}"
        rows: list[Row] = []
        for store_state in read_state(spark, place, operator=operator):
            rows += [{**store_state.about(), **_shown(row)} for row in _rows(store_state.frame.limit(limit))]
    if not rows and operator is None:
        print(f"{found['pipeline']} has nothing in its state", file=sys.stderr)
    emit(rows, output, lambda: _draw(rows))


def _batch(store: "RemoteStore", path: str, number: int | None) -> "ReplayedBatch":
    """Read what a batch took, from the checkpoint."""
    from riverlog.checkpoints.files.refusals import RequestRefused
    from riverlog.checkpoints.pipelines.starts import FILE, read_start
    from riverlog.pipelines.inspection.replay import NotReplayed, batch_of

    def content(name: str) -> bytes | None:
        try:
            return b"".join(store.read(f"{path}/{name}"))
        except RequestRefused as refusal:
            if refusal.name == "FileNotFoundException":
                return None
            raise

    found = store.query(path)
    chosen = found["planned_batch"] if number is None else number
    planned = None if chosen is None else content(f"offsets/{chosen}")
    before = None if not chosen else content(f"offsets/{chosen - 1}")
    if planned is None or (chosen and before is None):
        raise CommandError(
            f"{found['pipeline']} has no batch {chosen} any more, or not yet: the last one is {found['planned_batch']}",
            ExitCode.REFUSED,
        )
    start = content(FILE)
    try:
        return batch_of(chosen, before, planned, None if start is None else read_start(start))
    except NotReplayed as problem:
        raise CommandError(str(problem), ExitCode.REFUSED) from problem


def _results(batch: "ReplayedBatch", file: Path, path: str) -> "DataFrame":
    """Build what the query with this checkpoint makes of a batch."""
    from riverlog.pipelines.inspection.replay import replaying

    with replaying(batch):
        pipelines = loaded(file)
        places = [(pipeline, output) for pipeline in pipelines for output in pipeline.outputs]
        pipeline, output = _the(places, path, file)
        return pipeline.records(output)


def _the(places: "list[tuple[Pipeline, Output]]", path: str, file: Path) -> "tuple[Pipeline, Output]":
    for pipeline, output in places:
        if pipeline.checkpoint(output).endswith(f"/{output.name}") and path.endswith(f"/{output.name}"):
            return pipeline, output
    names = ", ".join(output.name for _, output in places)
    raise CommandError(f"{file} defines {names}, and not {path.rpartition('/')[2]}")


def _rows(frame: "DataFrame") -> list[Row]:
    """Collect rows as plain values of JSON."""
    from pyspark.sql import functions as sql

    as_json = frame.select(sql.to_json(sql.struct("*"), {"ignoreNullFields": "false"}).alias("row"))
    return [json.loads(each.row) for each in as_json.collect()]


def _shown(row: Row) -> dict[str, object]:
    """Leave out columns of ours that say nothing: a side output puts one beside the keys of a window."""
    return {
        name: {each: inner for each, inner in value.items() if inner is not None or not each.startswith("_riverlog_")}
        if isinstance(value, dict)
        else value
        for name, value in row.items()
    }


def _draw(rows: list[Row]) -> None:
    columns = list(dict.fromkeys(name for row in rows for name in row))
    shown = [[_cell(row.get(column)) for column in columns] for row in rows[:TABLE_ROWS]]
    draw_table(columns, shown)
    if len(rows) > TABLE_ROWS:
        print(f"{plural(len(rows) - TABLE_ROWS, 'more row')}; -o json prints all")


def _cell(value: object) -> object:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else value


@contextmanager
def _debugged(*, debug: bool) -> Iterator[None]:
    """Open the debugger where something fails, if that is asked for; what Spark says becomes a sentence."""
    from pyspark.errors import PySparkException

    from riverlog.spark.error_words import reason

    try:
        yield
    except Exception as problem:
        if isinstance(problem, CommandError):
            raise
        if not debug and isinstance(problem, PySparkException):
            raise CommandError(reason(str(problem))) from problem
        if not debug:
            raise  # of a function of the pipeline: the whole trace is what was asked for
        import pdb

        print(f"{type(problem).__name__}: {problem}; q leaves the debugger", file=sys.stderr)
        pdb.post_mortem(problem.__traceback__)
        raise CommandError(f"{type(problem).__name__}: {problem}") from problem
