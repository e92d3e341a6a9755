"""`bench`: how fast a cluster takes records, gives them back, and passes one on.

Works with any Kafka-compatible cluster. The topic it makes is removed at the end, also after Ctrl-C. The load comes
from riverlog's own client; where that is the limit, the result says so.
"""

import sys
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import click

from riverlog.cli.client_settings import created, settings_of
from riverlog.cli.cluster_options import ClusterOptions, cluster_options, talking
from riverlog.cli.commands.produce import ACKS, CODECS
from riverlog.cli.load.latencies import PERCENTILES, Latencies
from riverlog.cli.terminal.exits import CommandError, ExitCode, usage_error
from riverlog.cli.terminal.options import (
    INT16_MAX,
    INT32_MAX,
    choice_option,
    count_option,
)
from riverlog.cli.terminal.render import ProgressCallback, Row, plural, size_text
from riverlog.cli.terminal.tables import draw_table
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import TopicPartition

if TYPE_CHECKING:
    from riverlog.cli.load.client import ClientLoad, ClientOutcome, Range
    from riverlog.client.admin.admin import Admin

PARTS: Final = ("produce", "consume", "end-to-end")
SECONDS: Final = 5.0
END_TO_END_RATE: Final = 1_000.0
RECORD_BYTES_MIN: Final = 8
"""The end-to-end part writes the time into each record."""
NUMBERS: Final = ("records", "records/s", "MB/s", *(f"{name} ms" for name in (*PERCENTILES, "max")), "client CPU s")
CLIENTS_MAX: Final = 256
BUSY_SHARE: Final = 0.85
"""A client process that computes for more of its time than this cannot go faster, whatever the broker does."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is measured. Exactly one of `records` and `seconds` is given, for each part anew."""

    parts: tuple[str, ...]
    record_bytes: int
    records: int | None
    seconds: float | None
    rate: float | None
    producers: int
    consumers: int


@click.command
@click.option("--topic", metavar="TOPIC", help="Use this topic and keep it. Without it, one is made and removed again.")
@click.option(
    "--part",
    "parts",
    type=click.Choice(PARTS),
    multiple=True,
    metavar="|".join(PARTS),
    help="Measure this part. Without it, all three.",
)
@click.option(
    "--partitions", type=click.IntRange(1, 100_000), metavar="N", help="Of the topic that is made: 1 if not given."
)
@click.option(
    "--replication-factor",
    type=click.IntRange(1, INT16_MAX),
    metavar="N",
    help="Of the topic that is made: the cluster's default if not given.",
)
@click.option(
    "--record-size",
    "record_bytes",
    type=click.IntRange(RECORD_BYTES_MIN, INT32_MAX),
    default=100,
    show_default=True,
    metavar="BYTES",
    help="The size of a record's value.",
)
@click.option("-n", "--records", type=click.IntRange(1), metavar="N", help="Stop each part after N records.")
@click.option(
    "--seconds",
    type=click.FloatRange(0.1, 86_400),
    metavar="S",
    help=f"Stop each part after S seconds: {SECONDS:g} if neither is given.",
)
@click.option(
    "--rate",
    type=click.FloatRange(0.001),
    metavar="N",
    help=f"Send N records a second. Without it: as fast as possible, and {END_TO_END_RATE:,.0f} end to end.",
)
@count_option("--producers", default=1, most=CLIENTS_MAX, help="Producers, each a process.")
@count_option(
    "--consumers", default=1, most=CLIENTS_MAX, help="Consumers, each a process with its share of the partitions."
)
@choice_option("--acks", among=ACKS, default="all", help="Which replicas must have a record before it is acknowledged.")
@choice_option(
    "-z", "--compression", among=CODECS, default="none", help="How to compress; half of each record is random."
)
@click.option(
    "--linger",
    "linger_ms",
    type=click.FloatRange(0, 60_000),
    default=0,
    show_default=True,
    metavar="MS",
    help="How long a producer waits for a batch to fill.",
)
@cluster_options
def bench(
    topic: str | None,
    parts: tuple[str, ...],
    partitions: int | None,
    replication_factor: int | None,
    record_bytes: int,
    records: int | None,
    seconds: float | None,
    rate: float | None,
    producers: int,
    consumers: int,
    acks: str,
    compression: str,
    linger_ms: float,
    cluster: ClusterOptions,
) -> None:
    """Measure the throughput and the latency of a cluster.

    There are three parts. produce measures the time from each record to its acknowledgement. consume reads what was
    produced, from the beginning. end-to-end measures the time of single records from a producer to a consumer.

    1 MB is a million bytes of values. With --rate, a record that is sent late counts from the time when it was due.
    """
    from riverlog import Admin, Consumer, Producer

    if records is not None and seconds is not None:
        raise usage_error("--records and --seconds exclude each other; give one of them")
    if topic is not None and (partitions is not None or replication_factor is not None):
        raise usage_error(f"--partitions and --replication-factor are for a topic that is made; '{topic}' has its own")
    for_producer, for_consumer, for_admin = settings_of([Producer, Consumer, Admin], cluster.settings)
    for_producer = {"acks": acks, "compression": compression, "linger_ms": linger_ms, **for_producer}
    for client, fixed in ((Producer, for_producer), (Consumer, for_consumer)):
        created(client, cluster.bootstrap, fixed)  # a mistake is better said once, before anything is started
    plan = Plan(
        parts=tuple(part for part in PARTS if part in parts or not parts),
        record_bytes=record_bytes,
        records=records,
        seconds=SECONDS if records is None and seconds is None else seconds,
        rate=rate,
        producers=producers,
        consumers=consumers,
    )

    async def work() -> list[Row]:
        from riverlog.cli.load.client import ClientLoad

        made_topic = topic or f"riverlog-bench-{uuid.uuid4().hex[:8]}"
        share = ClientLoad(
            part="", bootstrap=cluster.bootstrap, topic=made_topic, producer=for_producer, consumer=for_consumer
        )
        async with (
            talking(created(Admin, cluster.bootstrap, for_admin)) as admin,
            _topic(admin, topic, made_topic, partitions, replication_factor),
        ):
            return [row async for row in _measure(admin, plan, share)]

    rows = cluster.run(work(), topics=[topic] if topic else [])
    cluster.emit(rows, lambda: show(rows))


async def _measure(admin: "Admin", plan: Plan, share: "ClientLoad") -> AsyncIterator[Row]:
    """Do the parts one after another. What is consumed is what was produced, or else all that the topic holds."""
    from riverlog.cli.load.client_processes import work

    first = await _offsets(admin, share.topic, "latest" if "produce" in plan.parts else "earliest")
    for part in plan.parts:
        last = await _offsets(admin, share.topic, "latest")
        ranges = [(partition, first[partition], last[partition]) for partition in sorted(first)]
        if part == "consume" and all(begin == end for _, begin, end in ranges):
            raise CommandError(f"topic {share.topic} has no records to consume", ExitCode.REFUSED)
        shares = shares_of(part, plan, share, ranges)
        with _progress(part, plan) as progress:
            outcomes = await work(shares, progress)
        yield row_of(part, share.topic, outcomes)


def shares_of(part: str, plan: Plan, share: "ClientLoad", ranges: "Sequence[Range]") -> "list[ClientLoad]":
    """Divide a part's work among its client processes."""
    share = replace(share, part=part, record_bytes=plan.record_bytes, seconds=plan.seconds, records=plan.records)
    match part:
        case "produce":
            counts = _spread(plan.records, plan.producers)
            rate = None if plan.rate is None else plan.rate / plan.producers
            return [replace(share, records=count, rate=rate) for count in counts if count != 0]
        case "consume":
            wanted = cut(ranges, plan.records)
            dealt = [wanted[number :: plan.consumers] for number in range(plan.consumers)]
            return [replace(share, ranges=each) for each in dealt if each]
        case _:
            at_end = [(partition, end, end) for partition, _, end in ranges]
            return [replace(share, rate=plan.rate or END_TO_END_RATE, ranges=at_end)]


def cut(ranges: "Sequence[Range]", records: int | None) -> "list[Range]":
    """Leave out what is empty, and what goes beyond so many records."""
    kept = []
    left = sum(end - first for _, first, end in ranges) if records is None else records
    for partition, first, end in ranges:
        end = min(end, first + left)
        if first < end:
            kept.append((partition, first, end))
            left -= end - first
    return kept


def row_of(part: str, topic: str, outcomes: "Sequence[ClientOutcome]") -> Row:
    """Add up what the processes did; together they took as long as the slowest."""
    latencies = Latencies()
    for outcome in outcomes:
        latencies.merge(outcome.latencies)
    records = sum(outcome.records for outcome in outcomes)
    size = sum(outcome.bytes for outcome in outcomes)
    seconds = max(outcome.seconds for outcome in outcomes)
    cpu_seconds = sum(outcome.cpu_seconds for outcome in outcomes)
    busiest = max(outcome.cpu_seconds / outcome.seconds for outcome in outcomes)
    return {
        "part": part,
        "topic": topic,
        "records": records,
        "bytes": size,
        "seconds": round(seconds, 3),
        "records_per_second": round(records / seconds, 1),
        "mb_per_second": round(size / 1e6 / seconds, 3),
        "latency_ms": latencies.milliseconds() if latencies.counts else None,
        "clients": len(outcomes),
        "client_cpu_seconds": round(cpu_seconds, 3),
        "client_bound": busiest > BUSY_SHARE,
    }


@asynccontextmanager
async def _topic(
    admin: "Admin", given: str | None, name: str, partitions: int | None, replication_factor: int | None
) -> AsyncIterator[None]:
    """Create the topic and delete it in the end, whatever happened; leave one that was given alone."""
    from riverlog import KafkaError

    if given is not None:
        yield
        return
    try:
        await admin.create_topic(name, partitions=partitions or 1, replication_factor=replication_factor or -1)
        yield
    finally:
        try:
            await admin.delete_topics(name)
        except KafkaError as error:
            if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                print(f"riverlog: the topic {name} could not be removed: {error}", file=sys.stderr)


async def _offsets(admin: "Admin", topic: str, place: Any) -> dict[int, int]:
    (described,) = await admin.describe_topics(topic)
    asked = {TopicPartition(topic, partition.index): place for partition in described.partitions}
    return {partition.partition: found.offset for partition, found in (await admin.list_offsets(asked)).items()}


def _spread(total: int | None, count: int) -> list[int | None]:
    """Divide a number of records evenly; without one there is nothing to divide."""
    if total is None:
        return [None] * count
    return [total // count + (number < total % count) for number in range(count)]


@contextmanager
def _progress(part: str, plan: Plan) -> Iterator[ProgressCallback]:
    """Show on a terminal how far a part has come."""
    if not sys.stderr.isatty():
        yield lambda _records, _bytes: None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn(f"{part}: {{task.fields[said]}}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None, said="connecting")

        def show(records: int, size: int) -> None:
            wanted = "" if plan.records is None else f" of {plan.records:,}"
            bar.update(task, said=f"{plural(records, 'record')}{wanted}, {size_text(size)}")

        yield show


def show(rows: Sequence[Row]) -> None:
    """Draw the table, and say where the client was the limit."""
    columns = [_column(row) for row in rows]
    draw_table(
        ["", *(heading for heading, *_ in columns)],
        [[name, *cells] for name, *cells in zip(NUMBERS, *(cells for _, *cells in columns), strict=True)],
    )
    for row in rows:
        if row["client_bound"]:
            print(f"\n{limit_sentence(row)}")


def _column(row: Mapping[str, Any]) -> list[str]:
    """Write the numbers of a part below its name, one above the other: side by side they would not fit a terminal."""
    latencies = [f"{each:,.2f}" for each in (row["latency_ms"] or {}).values()] or [""] * (len(PERCENTILES) + 1)
    cells = [
        row["part"],
        f"{row['records']:,}",
        f"{row['records_per_second']:,.0f}",
        f"{row['mb_per_second']:,.1f}",
        *latencies,
        f"{row['client_cpu_seconds']:,.2f}",
    ]
    width = max(map(len, cells))
    return [cell.rjust(width) for cell in cells]


def limit_sentence(row: Mapping[str, Any]) -> str:
    """Explain that a number is the client's own limit, and what to do about it."""
    many = {"produce": "--producers", "consume": "--consumers (and --partitions)"}.get(row["part"])
    more = f"; more {many} may get more out of the broker" if many else ""
    return f"{row['part']}: a client process was computing all the time, so this is the client's limit{more}."
