"""`produce`: lines of standard input or of files become records."""

import asyncio
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

import click

from riverlog.cli.cluster_options import ClusterOptions, cluster_options
from riverlog.cli.line_sender import LineFormat, LineSource, Sent, Tally, progress_bar, send
from riverlog.cli.missing_topic import announce_creation
from riverlog.cli.patience import noticing
from riverlog.cli.terminal.exits import CommandError, usage_error
from riverlog.cli.terminal.expressions import pair, unescape
from riverlog.cli.terminal.options import INT32_MAX, Argument, choice_option
from riverlog.records.batch import Compression

CODECS: Final = [codec.name.lower() for codec in Compression]
ACKS: Final = ["0", "1", "all"]


@click.command
@click.argument("topic", cls=Argument, metavar="TOPIC", help="The topic to write to.")
@click.option(
    "--file",
    "files",
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="FILE",
    help="Read this file instead of standard input.",
)
@click.option("--whole", is_flag=True, help="Send each file, or all of standard input, as one record.")
@click.option("-k", "--key", metavar="KEY", help="The key of every record.")
@click.option("-K", "--key-separator", metavar="TEXT", help=r"Each line is key, TEXT, value; \t is a tab.")
@click.option("--json", "as_json", is_flag=True, help="Each line is a whole record, as `consume -o json` prints it.")
@click.option("-H", "--header", "headers", multiple=True, metavar="NAME=VALUE", help="A header of every record.")
@click.option("-p", "--partition", type=click.IntRange(0, INT32_MAX), metavar="N", help="Write to this partition.")
@click.option("-Z", "--null", is_flag=True, help="Send an empty value or key as null (a null value deletes a key).")
@choice_option("-z", "--compression", among=CODECS, default="none", help="How to compress.")
@choice_option("--acks", among=ACKS, default="all", help="Which replicas must have a record before it is acknowledged.")
@click.option("--rate", type=click.FloatRange(0.001), metavar="N", help="Send at most N records a second.")
@cluster_options
def produce(
    topic: str,
    files: tuple[Path, ...],
    whole: bool,
    key: str | None,
    key_separator: str | None,
    as_json: bool,
    headers: tuple[str, ...],
    partition: int | None,
    null: bool,
    compression: str,
    acks: str,
    rate: float | None,
    cluster: ClusterOptions,
) -> None:
    """Send lines of standard input or of files as records.

    Lines are sent as they arrive. With --json a line has key, value, headers and timestamp_ms; topic and partition are
    those of this command. A progress bar is shown on a terminal, and one line at the end says what was sent. The exit
    code is 0 only if every record was acknowledged.
    """
    if key is not None and key_separator is not None:
        raise usage_error("--key and --key-separator exclude each other: the key is either fixed or in the line")
    if as_json and (whole or null or key is not None or key_separator is not None):
        raise usage_error(
            "--json reads keys and values from each line; leave out --key, --key-separator, --null and --whole"
        )
    if key_separator == "":
        raise usage_error("--key-separator needs at least one character")
    named = [pair(text, option="--header") for text in headers]
    shape = LineFormat(
        topic=topic,
        partition=partition,
        key=None if key is None else key.encode(),
        key_separator=None if key_separator is None else unescape(key_separator),
        headers=tuple((name, value.encode()) for name, value in named),
        null=null,
        json=as_json,
    )
    sources = [LineSource.of_file(path) for path in files] or [LineSource.of_standard_input()]
    if any(source.is_terminal for source in sources):
        print("Each line becomes a record; Ctrl-D ends.", file=sys.stderr)

    async def work() -> Sent:
        from riverlog import KafkaError, Producer

        fixed: dict[str, Any] = {"acks": acks, "compression": compression}
        tally = Tally(topic)
        try:
            async with AsyncExitStack() as at_the_end:
                client = cluster.client(Producer, fixed)
                async with noticing(client.unanswered, "answer"):
                    producer = await at_the_end.enter_async_context(client)
                async with cluster.admin_beside() as admin:
                    await announce_creation(admin, topic)
                with progress_bar(sources) as progress:
                    async with noticing(producer.unanswered, "acknowledgement", lambda: progress(*tally.count())):
                        return await send(producer, shape, sources, tally, whole=whole, rate=rate)
        except (KafkaError, CommandError, asyncio.CancelledError):
            if (summary := tally.summary()) is not None:
                print(f"riverlog: {summary}", file=sys.stderr)
            raise

    sent = cluster.run(work(), topics=[topic])
    cluster.emit([sent._asdict()], lambda: print(sent))
