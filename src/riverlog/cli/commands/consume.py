"""`consume`: print the records of topics, from anywhere in it or as a member of a group, as anything.

Values are written as the bytes they are, except to a terminal, which gets to see control characters instead of
obeying them. The command ends after --max-messages, at the end with --exit, or when it is interrupted.
"""

import asyncio
import re
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Final

import click

from riverlog.cli.cluster_options import ClusterOptions, cluster_options, talking
from riverlog.cli.terminal.exits import CommandError, ExitCode, usage_error
from riverlog.cli.terminal.expressions import LogEdge, Start, TimestampMs, moment_ms, start
from riverlog.cli.terminal.lines import reader_gone, write_all
from riverlog.cli.terminal.options import Argument, choice_option, output_format_option, partitions_option
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
    from riverlog.client.consumer.fetched_records import ConsumerRecord

POLL_MS: Final = 200
RECORDS_PER_POLL: Final = 1_000
SHARE_SECONDS_MAX: Final = 10.0
"""A member that has joined and was given no partition for so long will get none: others let go sooner."""
RELEASE_SECONDS_MAX: Final = 60.0
"""The same with the consumer protocol, where what a member had that died is kept until its session ends."""
JOIN_SECONDS: Final = 5.0
"""What takes longer to join is told: brokers let the first member of a group wait 3 s for others."""
_WAITS_AT_END: Final = "Waiting for new records of {}; --from-beginning prints those that are there. Ctrl-C ends."
_NOTHING_TO_READ: Final = "Only new records would be read, and it ends before them; try --from-beginning."
_READ_BY_GROUP: Final = "Group {} has nothing left to read; `riverlog groups reset-offsets` moves it back."
_WAITS_FOR_MORE: Final = "Waiting for more records of {}; with --exit it stops here. Ctrl-C ends."
_WAITS_FOR_GROUP: Final = (
    "the group has assigned no partitions yet: it waits for its other members, and for one that died until its "
    "session ends; still waiting, Ctrl-C ends"
)
_WAITS_AS_MEMBER: Final = "Waiting for records of {} that the group has not read. Ctrl-C ends."


@click.command
@click.argument("topics", cls=Argument, nargs=-1, metavar="TOPIC", help="The topics to read; or --pattern.")
@click.option("--pattern", metavar="REGEX", help="Read all topics whose whole name matches.")
@click.option("--from-beginning", is_flag=True, help="Start with the oldest record.")
@click.option("--offset", metavar="N|-N|beginning|end", help="Where to start; -N is N records before the end.")
@click.option(
    "--from-time",
    metavar="TIME",
    help="Start with the first record at or after a time: -15m, 15:00, 2026-01-31T15:00Z.",
)
@click.option("--to-offset", type=click.IntRange(0), metavar="N", help="Stop before this offset of each partition.")
@click.option("--to-time", metavar="TIME", help="Stop before the first record at or after a time.")
@partitions_option
@click.option(
    "-g",
    "--group",
    metavar="NAME",
    help="Share the topics with the members of a group, go on where it has committed, and commit what is printed.",
)
@click.option("-c", "--max-messages", "count", type=click.IntRange(1), metavar="N", help="Stop after N records.")
@click.option(
    "-e", "--exit", "exit_at_end", is_flag=True, help="Stop at the records that are the last when the command starts."
)
@choice_option(
    "--isolation",
    among=["read_committed", "read_uncommitted"],
    default="read_committed",
    help="read_committed leaves out records of open and of aborted transactions.",
)
@click.option(
    "-f",
    "--format",
    "template",
    metavar="FORMAT",
    help=r"Print each record in this format, such as '%t-%p@%o %k: %s\n'.",
)
@click.option("-Z", "--null", is_flag=True, help="Print null keys and values as NULL.")
@partial(
    cluster_options,
    output=output_format_option(metavar="json|yaml", help="Print the whole record, not only its value."),
)
def consume(
    topics: tuple[str, ...],
    pattern: str | None,
    from_beginning: bool,
    offset: str | None,
    from_time: str | None,
    to_offset: int | None,
    to_time: str | None,
    partitions: tuple[int, ...],
    group: str | None,
    count: int | None,
    exit_at_end: bool,
    isolation: str,
    template: str | None,
    null: bool,
    cluster: ClusterOptions,
) -> None:
    r"""Print the records of topics.

    It prints the value of each new record on a line, until Ctrl-C; --from-beginning, --offset and --from-time start
    with older records. --to-offset, --to-time and --exit end it; they never wait for records that are not there yet. A
    group continues from its committed offsets; --from-beginning then counts only for partitions without one.

    A format may use %t topic, %p partition, %o offset, %k key, %s value, %K and %S their lengths (-1 for null), %R the
    length of the value as four bytes, %T timestamp in milliseconds, %h headers, %% a percent sign, and
    \n \r \t \0 \\ \xNN. With -o json each record is a line of JSON, which `produce --json` reads; bytes that are not
    UTF-8 become {"base64": "…"}.
    """
    begin = where_to_start(from_beginning=from_beginning, offset=offset, from_time=from_time)
    until = where_to_stop(to_offset=to_offset, to_time=to_time, exit_at_end=exit_at_end)
    show = printer(template, cluster.output, null=null, terminal=sys.stdout.isatty())
    if bool(topics) is (pattern is not None):
        raise usage_error("name topics, as in `riverlog consume orders`, or give --pattern REGEX")
    if group is not None and (
        offset is not None or from_time is not None or partitions or until not in (None, LogEdge.END)
    ):
        raise usage_error(
            "a group decides what its members read: --group goes with --from-beginning, --max-messages and --exit only"
        )
    wanted = list(dict.fromkeys(topics)) if pattern is None else matching(pattern, cluster)
    about = ", ".join(topics) or f"topics that match {pattern}"

    async def share() -> None:
        from riverlog import Consumer

        settings = {"group": group, "auto_offset_reset": "earliest" if from_beginning else "latest"}
        reader = cluster.client(Consumer, {**settings, "isolation_level": isolation})
        async with talking(reader) as consumer:
            chosen = [each for topic in wanted for each in await consumer.partitions(topic)]
            protocol = cluster.settings.all.get("group.protocol")
            patience = RELEASE_SECONDS_MAX if protocol == "consumer" else SHARE_SECONDS_MAX
            ends = None if until is None else Ends(consumer, await consumer.end_offsets(chosen), patience)
            consumer.subscribe(topics, pattern=pattern)
            waiting = _WAITS_AS_MEMBER.format(about)
            printed = await _print(consumer, show, count=count, ends=ends, waiting=waiting)
            if not printed and sys.stderr.isatty():
                print(_READ_BY_GROUP.format(group), file=sys.stderr)

    async def work() -> None:
        from riverlog import Consumer

        reader = cluster.client(Consumer, {"auto_offset_reset": "earliest", "isolation_level": isolation})
        async with talking(reader) as consumer:
            chosen = [
                each for topic in wanted for each in choose(topic, len(await consumer.partitions(topic)), partitions)
            ]
            consumer.assign(chosen)
            ends = await consumer.end_offsets(chosen)
            positions = await _positions(consumer, chosen, begin, ends)
            for partition, position in positions.items():
                await consumer.seek(partition, position)
            stops = await _stops(consumer, until, ends)
            waiting = (_WAITS_AT_END if begin is LogEdge.END else _WAITS_FOR_MORE).format(about)
            limits = None if stops is None else Ends(consumer, stops)
            if begin is LogEdge.END and limits is not None and sys.stderr.isatty():
                print(_NOTHING_TO_READ, file=sys.stderr)
            await _print(consumer, show, count=count, ends=limits, waiting=waiting)

    cluster.run(work() if group is None else share(), topics=topics)


def matching(pattern: str, cluster: ClusterOptions) -> list[str]:
    """Return the topics whose whole name matches; refuse a pattern that none does."""
    try:
        expression = re.compile(pattern)
    except re.error as error:
        raise usage_error(f"--pattern '{pattern}' is no regular expression: {error}") from error
    found = [topic.name for topic in cluster.ask(lambda admin: admin.list_topics()) if expression.fullmatch(topic.name)]
    if not found:
        sentence = f"no topic matches '{pattern}' as a whole; `riverlog topics list` shows what there is"
        raise CommandError(sentence, ExitCode.REFUSED)
    return found


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


def where_to_stop(
    *, to_offset: int | None, to_time: str | None, exit_at_end: bool
) -> int | TimestampMs | LogEdge | None:
    """Turn three options into the place to stop: an offset, a time, the end; None to go on for ever."""
    if to_offset is not None and to_time is not None:
        raise usage_error("--to-offset and --to-time exclude each other; give one of them")
    if to_time is not None:
        return TimestampMs(moment_ms(to_time, now=datetime.now().astimezone()))
    if to_offset is not None:
        return to_offset
    return LogEdge.END if exit_at_end else None


def printer(template: str | None, output: OutputFormat | None, *, null: bool, terminal: bool) -> Piece:
    """Choose how records are written."""
    if template is not None and output is not None:
        raise usage_error("--format and --output exclude each other; give one of them")
    if template in (OutputFormat.JSON, OutputFormat.YAML):
        raise usage_error(rf"-f takes a format such as '%k: %s\n'; -o {template} prints all of each record")
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


async def _stops(
    consumer: "Consumer", until: int | TimestampMs | LogEdge | None, ends: Mapping[TopicPartition, int]
) -> Mapping[TopicPartition, int] | None:
    """Return the offset of each partition at which to stop; nowhere behind its end."""
    match until:
        case None:
            return None
        case LogEdge():
            return ends
        case TimestampMs():
            found = await consumer.list_offsets(dict.fromkeys(ends, int(until)))
            return {each: end if found[each].offset == NO_OFFSET else found[each].offset for each, end in ends.items()}
        case int():
            return {each: min(until, end) for each, end in ends.items()}


class Ends:
    """Where to stop in each partition. What lies behind is not printed, and not committed."""

    def __init__(
        self,
        consumer: "Consumer",
        ends: Mapping[TopicPartition, int],
        share_seconds_max: float = SHARE_SECONDS_MAX,
    ) -> None:
        self._consumer = consumer
        self._ends = dict(ends)
        self._share_seconds_max = share_seconds_max
        self._joining_since: float | None = None
        self._empty_since: float | None = None
        """Since when the others of the group have all partitions."""
        self._asked_at = float("-inf")
        self._told = False

    async def reached(self) -> bool:
        """Return whether nothing is left to print; raise where nobody answers in the time that a request has."""
        seconds, problem = self._consumer.unanswered()
        if seconds > self._consumer.request_seconds:
            from riverlog.client.errors import TimedOut

            raise TimedOut(f"no answer for {seconds:.0f} s{f': {problem.message}' if problem else ''}")
        if not self._consumer.held():
            return await self._share_is_empty(asyncio.get_running_loop().time())
        self._joining_since = self._empty_since = None
        if unknown := [each for each in self._consumer.held() if each not in self._ends]:
            self._ends |= await self._consumer.end_offsets(unknown)
        held = self._consumer.held()
        return all(at is not None and each in self._ends and at >= self._ends[each] for each, at in held.items())

    async def _share_is_empty(self, now: float) -> bool:
        """Return whether the group has given this member nothing for a while; as long as it joins, it may get some.

        A coordinator may rightly take minutes to answer a join. So something else is asked meanwhile, which raises
        where nobody answers.
        """
        if self._consumer.is_settled():
            self._joining_since = None
            self._empty_since = now if self._empty_since is None else self._empty_since
            return now - self._empty_since > self._share_seconds_max
        self._empty_since = None
        self._joining_since = now if self._joining_since is None else self._joining_since
        if now - max(self._joining_since, self._asked_at) > JOIN_SECONDS and self._consumer.unanswered()[0] == 0:
            await self._ask()
            self._asked_at = asyncio.get_running_loop().time()
            if not self._told:
                self._told = True
                print(f"riverlog: {_WAITS_FOR_GROUP}", file=sys.stderr)
        return False

    async def _ask(self) -> None:
        """Ask the cluster something; raise where nobody answers in the time that a request has."""
        from riverlog.client.errors import TimedOut

        try:
            async with asyncio.timeout(self._consumer.request_seconds):
                await self._consumer.end_offsets(list(self._ends))
        except TimeoutError:
            raise TimedOut(f"no answer for {self._consumer.request_seconds:.0f} s") from None

    async def before(self, records: "list[ConsumerRecord]") -> "list[ConsumerRecord]":
        """Return the records before the ends; a partition that is read to its end stays there."""
        inside = []
        for record in records:
            at = TopicPartition(record.topic, record.partition)
            if record.offset < self._ends.get(at, record.offset + 1):
                inside.append(record)
            elif at in self._consumer.assignment():
                await self._consumer.seek(at, self._ends[at])
                self._consumer.pause(at)
        return inside


async def _print(consumer: "Consumer", show: Piece, *, count: int | None, ends: Ends | None, waiting: str) -> int:
    """Print records until enough are printed or every partition has reached its end; return how many there were.

    A person is told once, by `waiting`, when there is nothing to print and the command goes on.
    """
    out = sys.stdout.buffer
    printed = 0
    told = ends is not None or not sys.stderr.isatty()
    while count is None or printed < count:
        if ends is not None and await ends.reached():
            break
        limit = RECORDS_PER_POLL if count is None else min(RECORDS_PER_POLL, count - printed)
        records = await consumer.poll(timeout_ms=POLL_MS, max_records=limit)
        if ends is not None:
            records = await ends.before(records)
        if records:
            try:
                write_all(out, b"".join([show(record) for record in records]))
            except BaseException:
                from riverlog.client.producer.exactly_once import go_back

                await go_back(consumer, records)  # what was not printed is not committed
                raise
        elif reader_gone(out.fileno()):
            raise BrokenPipeError  # as the next record would, which may be long in coming
        elif not told:
            told = True
            print(waiting, file=sys.stderr)
        printed += len(records)
    return printed
