"""`produce`: lines of standard input or of files become records."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from riverlog.cli.connect import made, run
from riverlog.cli.exits import usage
from riverlog.cli.expressions import pair, unescape
from riverlog.cli.options import BOOTSTRAP_DEFAULT, INT32_MAX, Bootstrap, ClientSettings, Output
from riverlog.cli.render import emit
from riverlog.cli.sending import Sent, Shape, Source, progress_bar, send


class Codec(StrEnum):
    """How batches are compressed."""

    NONE = "none"
    GZIP = "gzip"
    SNAPPY = "snappy"
    LZ4 = "lz4"
    ZSTD = "zstd"


class Acks(StrEnum):
    """Who must have a record before it counts as sent."""

    NONE = "0"
    LEADER = "1"
    ALL = "all"


def produce(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="The topic to write to.")],
    files: Annotated[
        list[Path] | None, typer.Option("--file", metavar="FILE", help="Read this file instead of standard input.")
    ] = None,
    whole: Annotated[
        bool, typer.Option("--whole", help="Send each file, or all of standard input, as one record.")
    ] = False,
    key: Annotated[str | None, typer.Option("-k", "--key", metavar="KEY", help="The key of every record.")] = None,
    key_separator: Annotated[
        str | None,
        typer.Option("-K", "--key-separator", metavar="TEXT", help=r"Each line is key, TEXT, value; \t is a tab."),
    ] = None,
    header: Annotated[
        list[str] | None, typer.Option("-H", "--header", metavar="NAME=VALUE", help="A header of every record.")
    ] = None,
    partition: Annotated[
        int | None,
        typer.Option("-p", "--partition", metavar="N", help="Write to this partition.", min=0, max=INT32_MAX),
    ] = None,
    null: Annotated[
        bool, typer.Option("-Z", "--null", help="Send an empty value or key as null (a null value deletes a key).")
    ] = False,
    compression: Annotated[
        Codec, typer.Option("-z", "--compression", metavar="none|gzip|snappy|lz4|zstd", help="How to compress.")
    ] = Codec.NONE,
    acks: Annotated[Acks, typer.Option(metavar="0|1|all", help="Who must have a record before it counts.")] = Acks.ALL,
    rate: Annotated[float | None, typer.Option(metavar="N", help="Send at most N records a second.", min=0.001)] = None,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    settings: ClientSettings = None,
    output: Output = None,
) -> None:
    """Send lines of standard input or of files as records.

    Lines are sent as they arrive. A progress bar is shown on a terminal, and one line at the end says what was sent;
    the exit code is 0 only if every record was acknowledged.
    """
    if key is not None and key_separator is not None:
        raise usage("--key and --key-separator exclude each other: the key is either fixed or in the line")
    if key_separator == "":
        raise usage("--key-separator needs at least one character")
    named = [pair(text, option="--header") for text in header or ()]
    shape = Shape(
        topic=topic,
        partition=partition,
        key=None if key is None else key.encode(),
        key_separator=None if key_separator is None else unescape(key_separator),
        headers=tuple((name, value.encode()) for name, value in named),
        null=null,
    )
    sources = [Source.of_file(path) for path in files or ()] or [Source.of_standard_input()]
    if any(source.is_terminal for source in sources):
        print("Each line becomes a record; Ctrl-D ends.", file=sys.stderr)

    async def work() -> Sent:
        from riverlog import Producer

        fixed: dict[str, Any] = {"acks": acks.value, "compression": compression.value}
        async with made(Producer, bootstrap, settings, fixed) as producer:
            with progress_bar(sources) as progress:
                return await send(producer, shape, sources, whole=whole, rate=rate, progress=progress)

    sent = run(work())
    emit([sent._asdict()], output, lambda: print(sent))
