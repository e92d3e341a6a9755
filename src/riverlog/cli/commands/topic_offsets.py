"""`topics offsets` and `topics trim`: where partitions begin, end, or were at a time; and a new beginning."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final

import click

from riverlog.cli.cluster_options import ClusterOptions, cluster_options
from riverlog.cli.commands.topics import TOPIC
from riverlog.cli.internal_topics import NEVER, check_internal
from riverlog.cli.terminal.exits import CommandError, ExitCode, usage_error
from riverlog.cli.terminal.expressions import moment_ms
from riverlog.cli.terminal.options import confirm, partitions_option, yes_option
from riverlog.cli.terminal.render import Row, plural, time_text
from riverlog.model.ids import NO_OFFSET, NO_TIMESTAMP, TopicPartition

if TYPE_CHECKING:
    from riverlog import Admin
    from riverlog.client.network.cluster import Topic
    from riverlog.client.offsets import OffsetQuestion

_PLACES: Final[Mapping[str, "OffsetQuestion"]] = {
    "earliest": "earliest",
    "latest": "latest",
    "max-timestamp": "max_timestamp",
}


@click.command
@TOPIC.many
@partitions_option
@click.option("--at", metavar="TIME|max-timestamp", help="The first record at or after a time, or the youngest record.")
@cluster_options
def offsets(
    names: list[str],
    partitions: tuple[int, ...],
    at: str | None,
    cluster: ClusterOptions,
) -> None:
    """Show the first and the last offset of partitions, or the offset at a time.

    A time is -15m, 15:00, 2026-01-31T15:00Z or milliseconds since 1970.
    """
    question = None if at is None else _PLACES[at] if at in _PLACES else _moment(at)

    async def work(admin: "Admin") -> list[Row]:
        wanted = chosen_partitions(await admin.describe_topics(names), partitions)
        if question is not None:
            found = await admin.list_offsets(dict.fromkeys(wanted, question))
            return [_found_row(each, found[each].offset, found[each].timestamp_ms) for each in wanted]
        starts = await admin.list_offsets(dict.fromkeys(wanted, "earliest"))
        ends = await admin.list_offsets(dict.fromkeys(wanted, "latest"))
        return [
            {"topic": each.topic, "partition": each.partition, "start": starts[each].offset, "end": ends[each].offset}
            for each in wanted
        ]

    rows = cluster.ask(work, topics=names)
    cluster.emit_table(rows, ["topic", "partition", *(["start", "end"] if question is None else ["offset", "time"])])


@click.command
@TOPIC.one
@partitions_option
@click.option("--before-offset", type=click.IntRange(0), metavar="N", help="Delete what lies before this offset.")
@click.option("--before-time", metavar="TIME", help="Delete what lies before the first record at or after a time.")
@click.option("--all", "everything", is_flag=True, help="Delete all records that there are.")
@yes_option
@cluster_options
def trim(
    name: str,
    partitions: tuple[int, ...],
    before_offset: int | None,
    before_time: str | None,
    everything: bool,
    yes: bool,
    cluster: ClusterOptions,
) -> None:
    """Delete the oldest records of a topic.

    The partitions then begin later; offsets stay as they are. On a terminal it asks first; in a script it acts at once.
    Topics that the cluster keeps for itself, such as __consumer_offsets, keep their records.
    """
    if (before_offset is not None) + (before_time is not None) + everything != 1:
        raise usage_error("say what to delete, in one way: --before-offset N, --before-time TIME or --all")
    since_ms = None if before_time is None else _moment(before_time)

    async def plan(admin: "Admin") -> dict[TopicPartition, tuple[int, int]]:
        await check_internal(admin, [name], internal=False, undone="Nothing was deleted", remedy=NEVER)
        wanted = chosen_partitions(await admin.describe_topics([name]), partitions)
        starts = await admin.list_offsets(dict.fromkeys(wanted, "earliest"))
        ends = await admin.list_offsets(dict.fromkeys(wanted, "latest"))
        last = max(ends[each].offset for each in wanted)
        if before_offset is not None and before_offset > last:
            where = f"{name} ends before {last}" if last else f"{name} is empty"
            raise CommandError(
                f"no partition has an offset {before_offset}: {where}; --all deletes all records", ExitCode.REFUSED
            )
        targets = {each: ends[each].offset if before_offset is None else before_offset for each in wanted}
        if since_ms is not None:
            found = await admin.list_offsets(dict.fromkeys(wanted, since_ms))
            targets = {
                each: targets[each] if found[each].offset == NO_OFFSET else found[each].offset for each in wanted
            }
        return {each: (starts[each].offset, min(targets[each], ends[each].offset)) for each in wanted}

    moves = {each: move for each, move in cluster.ask(plan, topics=[name]).items() if move[0] < move[1]}
    count = sum(target - start for start, target in moves.values())
    if moves:
        confirm(f"Delete {plural(count, 'record')} of {name}?", yes=yes, otherwise="nothing was deleted")
        cluster.ask(lambda admin: admin.delete_records({each: target for each, (_, target) in moves.items()}))
    rows = [
        {"topic": name, "partition": each.partition, "start": target, "deleted": target - start}
        for each, (start, target) in moves.items()
    ]
    done = (
        f"Deleted {plural(count, 'record')} of {name}"
        if moves
        else f"{name} has no records before that; nothing was deleted"
    )
    cluster.emit(rows, lambda: print(done))


def chosen_partitions(topics: "Sequence[Topic]", wanted: Sequence[int]) -> list[TopicPartition]:
    """Return these partitions of each topic, or all."""
    chosen = []
    for topic in topics:
        count = len(topic.partitions)
        for partition in dict.fromkeys(wanted) if wanted else range(count):
            if partition >= count:
                sentence = f"topic {topic.name} has partitions 0 to {count - 1}, not {partition}"
                raise CommandError(f"{sentence}; leave -p out to take all", ExitCode.REFUSED)
            chosen.append(TopicPartition(topic.name, partition))
    return chosen


def _moment(text: str) -> int:
    return moment_ms(text, now=datetime.now().astimezone())


def _found_row(at: TopicPartition, offset: int, timestamp_ms: int) -> Row:
    """Return what was found; no offset where no record is as young as that."""
    return {
        "topic": at.topic,
        "partition": at.partition,
        "offset": None if offset == NO_OFFSET else offset,
        "time": time_text(timestamp_ms, "milliseconds"),
        "timestamp_ms": None if timestamp_ms == NO_TIMESTAMP else timestamp_ms,
    }
