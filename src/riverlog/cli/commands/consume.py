"""`consume`: print the records of a topic, from anywhere in it or as a member of a group, as anything.

Values are written as the bytes they are, except to a terminal, which gets to see control characters instead of
obeying them. The command ends after --max-messages, at the end with --exit, or when it is interrupted.
"""

import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Final

import click

from riverlog.cli.cluster_options import ClusterOptions, cluster_options
from riverlog.cli.patience import noticing
from riverlog.cli.terminal.exits import CommandError, ExitCode, usage_error
from riverlog.cli.terminal.expressions import LogEdge, Start, moment_ms, start
from riverlog.cli.terminal.options import Argument, output_format_option
from riverlog.cli.terminal.record_formats import (
    NULL,
    Piece,
    as_json_line,
    as_line,
    as_visible_line,
    as_yaml_item,
    compile_format,
)
from riverlog.cli.terminal.render import OutputFormat
from riverlog.model.ids import NO_OFFSET, TopicPartition

if TYPE_CHECKING:
    from riverlog.client.consumer.consumer import Consumer

POLL_MS: Final = 200
RECORDS_PER_POLL: Final = 1_000
_WAITS_AT_END: Final = "Waiting for new records of {}; --from-beginning prints those that are there. Ctrl-C ends."
_WAITS_FOR_MORE: Final = "Waiting for more records of {}; with --exit it stops here. Ctrl-C ends."
_WAITS_AS_MEMBER: Final = "Waiting for records of {} that the group has not read. Ctrl-C ends."


class TimestampMs(int):
    """A time in milliseconds, where a number alone would be an offset."""


@click.command
@click.argument("topic", cls=Argument, metavar="TOPIC", help="The topic to read.")
@click.option("--from-beginning", is_flag=True, help="Start with the oldest record.")
@click.option("--offset", metavar="N|-N|beginning|end", help="Where to start; -N is N records before the end.")
@click.option(
    "--from-time",
    metavar="TIME",
    help="Start with the first record at or after a time: -15m, 15:00, 2026-01-31T15:00Z, milliseconds.",
)
@click.option(
    "-p",
    "--partition",
    "partitions",
    type=click.IntRange(0),
    multiple=True,
    metavar="N",
    help="Read only this partition.",
)
@click.option(
    "-g",
    "--group",
    metavar="NAME",
    help="Share the topic with the other members of a group, go on where it has committed, and commit what is printed.",
)
@click.option("-c", "--max-messages", "count", type=click.IntRange(1), metavar="N", help="Stop after N records.")
@click.option("-e", "--exit", "exit_at_end", is_flag=True, help="Stop at what is the end when the command starts.")
@click.option("-f", "--format", "template", metavar="FORMAT", help=r"Print each record so, as in '%t-%p@%o %k: %s\n'.")
@click.option("-Z", "--null", is_flag=True, help="Print null keys and values as NULL.")
@partial(
    cluster_options,
    output=output_format_option(metavar="json|yaml", help="Print all of each record, not its value alone."),
)
def consume(
    topic: str,
    from_beginning: bool,
    offset: str | None,
    from_time: str | None,
    partitions: tuple[int, ...],
    group: str | None,
    count: int | None,
    exit_at_end: bool,
    template: str | None,
    null: bool,
    cluster: ClusterOptions,
) -> None:
    r"""Print the records of a topic.

    Without a start, records that arrive from now on are printed, each value on a line. A group goes on where it has
    committed; --from-beginning and the end are for partitions in which it has not. A format may use %t topic,
    %p partition, %o offset, %k key, %s value, %K and %S their lengths (-1 for null), %R the length of the value as
    four bytes, %T timestamp in milliseconds, %h headers, %% a percent sign, and \n \r \t \0 \\ \xNN. With -o json
    each record is a line of JSON; bytes that are not UTF-8 become {"base64": "…"}.
    """
    begin = where_to_start(from_beginning=from_beginning, offset=offset, from_time=from_time)
    show = printer(template, cluster.output, null=null, terminal=sys.stdout.isatty())
    if group is not None and (offset is not None or from_time is not None or partitions or exit_at_end):
        raise usage_error(
            "a group decides what its members read: --group goes with --from-beginning and --max-messages only"
        )

    async def share() -> None:
        from riverlog import Consumer

        wanted = {"group": group, "auto_offset_reset": "earliest" if from_beginning else "latest"}
        async with cluster.client(Consumer, wanted) as consumer, noticing(consumer.unanswered, "answer"):
            await consumer.partitions(topic)
            consumer.subscribe([topic])
            await _print(consumer, show, count=count, ends=None, waiting=_WAITS_AS_MEMBER.format(topic))

    async def work() -> None:
        from riverlog import Consumer

        reader = cluster.client(Consumer, {"auto_offset_reset": "earliest"})
        async with reader as consumer, noticing(consumer.unanswered, "answer"):
            chosen = choose(topic, len(await consumer.partitions(topic)), partitions)
            consumer.assign(chosen)
            ends = await consumer.end_offsets(chosen)
            for partition, position in (await _positions(consumer, chosen, begin, ends)).items():
                await consumer.seek(partition, position)
            waiting = (_WAITS_AT_END if begin is LogEdge.END else _WAITS_FOR_MORE).format(topic)
            await _print(consumer, show, count=count, ends=ends if exit_at_end else None, waiting=waiting)

    cluster.run(work() if group is None else share(), topics=[topic])


def where_to_start(*, from_beginning: bool, offset: str | None, from_time: str | None) -> Start | TimestampMs:
    """Turn three options, of which one may be given, into the place to start; the end without any."""
    given = [from_beginning, offset is not None, from_time is not None]
    if sum(given) > 1:
        raise usage_error("--from-beginning, --offset and --from-time exclude each other; give one of them")
    if from_beginning:
        return LogEdge.BEGINNING
    if from_time is not None:
        return TimestampMs(moment_ms(from_time, now=datetime.now().astimezone()))
    return start(offset) if offset is not None else LogEdge.END


def printer(template: str | None, output: OutputFormat | None, *, null: bool, terminal: bool) -> Piece:
    """Choose how records are written."""
    if template is not None and output is not None:
        raise usage_error("--format and --output exclude each other; give one of them")
    instead_of_null = NULL if null else b""
    if template is not None:
        return compile_format(template, null=instead_of_null)
    match output:
        case OutputFormat.JSON:
            return as_json_line
        case OutputFormat.YAML:
            return as_yaml_item
        case OutputFormat.TABLE | None:
            line = as_visible_line if terminal else as_line
            return lambda record: line(record, null=instead_of_null)


def choose(topic: str, total: int, wanted: Sequence[int] | None) -> list[TopicPartition]:
    """Return the partitions to read: those wanted, or all."""
    for partition in wanted or ():
        if partition >= total:
            raise CommandError(f"topic {topic} has partitions 0 to {total - 1}, not {partition}", ExitCode.REFUSED)
    return [TopicPartition(topic, partition) for partition in (dict.fromkeys(wanted) if wanted else range(total))]


def position_of(partition: TopicPartition, begin: Start, *, log_start_offset: int, log_end_offset: int) -> int:
    """Return the offset to start at; refuse one that the partition does not have."""
    match begin:
        case LogEdge.BEGINNING:
            return log_start_offset
        case LogEdge.END:
            return log_end_offset
        case int():
            if begin < 0:
                return max(log_start_offset, log_end_offset + begin)
            if not log_start_offset <= begin <= log_end_offset:
                raise CommandError(
                    f"{partition} has no offset {begin}: it begins at {log_start_offset} and ends before "
                    f"{log_end_offset}; try --offset beginning, or --partition N for another one",
                    ExitCode.REFUSED,
                )
            return begin


async def _positions(
    consumer: "Consumer",
    chosen: Sequence[TopicPartition],
    begin: Start | TimestampMs,
    ends: Mapping[TopicPartition, int],
) -> dict[TopicPartition, int]:
    if isinstance(begin, TimestampMs):
        found = await consumer.list_offsets(dict.fromkeys(chosen, int(begin)))
        return {each: ends[each] if found[each].offset == NO_OFFSET else found[each].offset for each in chosen}
    starts = await consumer.beginning_offsets(chosen)
    return {each: position_of(each, begin, log_start_offset=starts[each], log_end_offset=ends[each]) for each in chosen}


async def _print(
    consumer: "Consumer", show: Piece, *, count: int | None, ends: Mapping[TopicPartition, int] | None, waiting: str
) -> None:
    """Print records until enough are printed or every partition has reached its end.

    A person is told once, by `waiting`, when there is nothing to print and the command goes on.
    """
    out = sys.stdout.buffer
    left = count
    told = ends is not None or not sys.stderr.isatty()
    while left != 0:
        if ends is not None and all([await consumer.position(each) >= end for each, end in ends.items()]):
            return
        limit = RECORDS_PER_POLL if left is None else min(RECORDS_PER_POLL, left)
        records = await consumer.poll(timeout_ms=POLL_MS, max_records=limit)
        if ends is not None:
            records = [each for each in records if each.offset < ends[TopicPartition(each.topic, each.partition)]]
        if records:
            out.write(b"".join([show(record) for record in records]))
            out.flush()
        elif not told:
            told = True
            print(waiting, file=sys.stderr)
        if left is not None:
            left -= len(records)
