"""`groups`: list, describe, reset and delete consumer groups, on any Kafka-compatible cluster; and `lag`."""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Final, assert_never

import click

from riverlog.cli.cluster_options import ClusterOptions, cluster_options, cluster_text_options
from riverlog.cli.group_offsets import (
    GroupLag,
    Move,
    PartitionLag,
    ResetTarget,
    ShiftBy,
    duration_ms,
    group_lags,
    offsets_at,
    plan_moves,
)
from riverlog.cli.terminal.exits import CommandError, ExitCode, usage_error
from riverlog.cli.terminal.expressions import LogEdge, TimestampMs, moment_ms
from riverlog.cli.terminal.names import Naming
from riverlog.cli.terminal.options import confirm, yes_option
from riverlog.cli.terminal.render import Row, plural
from riverlog.cli.terminal.screen import watch_options
from riverlog.cli.terminal.suggestions import did_you_mean
from riverlog.cli.terminal.tables import draw_table
from riverlog.model.ids import TopicPartition

if TYPE_CHECKING:
    from riverlog import Admin

GROUP: Final = Naming("group", "--group")
_NO_GROUPS: Final = "There are no groups"
_NO_SUCH_GROUPS: Final = "There are no such groups"

STATES: Final = (
    "Empty",
    "PreparingRebalance",
    "CompletingRebalance",
    "Stable",
    "Assigning",
    "Reconciling",
    "NotReady",
    "Dead",
)
"""Where a group can stand, as Kafka calls it; a cluster lists no groups for another word."""


@click.command
@click.option(
    "--state",
    multiple=True,
    type=click.Choice(STATES, case_sensitive=False),
    metavar="STATE",
    help="Only groups in this state, such as Stable or Empty.",
)
@click.option(
    "--type",
    "kind",
    multiple=True,
    type=click.Choice(["classic", "consumer"]),
    metavar="classic|consumer",
    help="Only groups of this protocol.",
)
@cluster_options
def list_groups(
    state: tuple[str, ...],
    kind: tuple[str, ...],
    cluster: ClusterOptions,
) -> None:
    """List the groups."""
    groups = cluster.ask(lambda admin: admin.list_groups(states=state, kinds=kind))
    rows = [
        {"group": each.name, "state": each.state, "type": each.kind, "protocol": each.protocol_type} for each in groups
    ]
    cluster.emit_table(rows, ["group", "state", "type", "protocol"], _NO_SUCH_GROUPS if state or kind else _NO_GROUPS)


@click.command
@partial(GROUP.many, required=False)
@watch_options
@cluster_text_options
def describe(
    names: list[str],
    watch: bool,
    interval: float,
    cluster: ClusterOptions,
) -> None:
    """Show the members, committed offsets and lag of groups."""

    def present(found: list[GroupLag]) -> None:
        cluster.emit([description(each) for each in found], lambda: _one_by_one(found, _show))

    cluster.show(lambda admin: group_lags(admin, names), present, groups=names, watch=watch, interval=interval)


@click.command
@GROUP.one
@click.option("--topic", "topics", multiple=True, metavar="TOPIC[:0,1…]", help="The topic, or some of its partitions.")
@click.option("--all-topics", is_flag=True, help="All topics for which the group has committed offsets.")
@click.option("--to-earliest", is_flag=True, help="To the first record that is still there.")
@click.option("--to-latest", is_flag=True, help="After the last record.")
@click.option("--to-datetime", metavar="TIME", help="To the first record at or after a time: -15m, 15:00, ISO 8601.")
@click.option("--to-offset", type=click.IntRange(0), metavar="N", help="To an offset.")
@click.option("--shift-by", type=int, metavar="N", help="Forward by so many offsets, or back where N is below zero.")
@click.option("--by-duration", metavar="LENGTH", help="To the first record of the last 15m, 2h, PT1H30M…")
@click.option("--dry-run", is_flag=True, help="Show the result and move nothing. In a script this is the default.")
@click.option("--execute", "-y", "--yes", "execute", is_flag=True, help="Do it without asking.")
@cluster_options
def reset_offsets(
    name: str,
    topics: tuple[str, ...],
    all_topics: bool,
    to_earliest: bool,
    to_latest: bool,
    to_datetime: str | None,
    to_offset: int | None,
    shift_by: int | None,
    by_duration: str | None,
    dry_run: bool,
    execute: bool,
    cluster: ClusterOptions,
) -> None:
    """Move the committed offsets of a group without live members.

    It shows how many records will be replayed or skipped. On a terminal it then asks; with --execute it moves the
    offsets at once. In a script nothing is moved without --execute, as with Kafka's own tool.
    """
    if dry_run and execute:
        raise usage_error("--dry-run and --execute exclude each other; give one of them")
    if bool(topics) is all_topics:
        raise usage_error("say which topics: --topic TOPIC, once or more often, or --all-topics")
    now = datetime.now().astimezone()
    places = [
        LogEdge.BEGINNING if to_earliest else None,
        LogEdge.END if to_latest else None,
        None if to_datetime is None else TimestampMs(moment_ms(to_datetime, now=now)),
        None if by_duration is None else TimestampMs(round(now.timestamp() * 1000) - duration_ms(by_duration)),
        to_offset,
        None if shift_by is None else ShiftBy(shift_by),
    ]
    if len(chosen := [place for place in places if place is not None]) != 1:
        raise usage_error(
            "say where to, in one way: "
            "--to-earliest, --to-latest, --to-datetime, --to-offset, --shift-by or --by-duration"
        )
    wanted = partitions_meant(topics)

    async def plan(admin: "Admin") -> list[Move]:
        found = await admin.group_offsets(name)
        committed: dict[TopicPartition, int] = {at: each.offset for at, each in found.items()}
        partitions = await _partitions(admin, wanted, committed)
        await _refuse_members(admin, name)
        if not committed:
            await _announce_group(admin, name)
        return await _plan(admin, partitions, chosen[0], committed)

    async def move(admin: "Admin") -> None:
        await _refuse_members(admin, name)  # somebody may have come since
        await admin.alter_group_offsets(name, {move.partition: move.after for move in moves})

    moves = cluster.ask(plan, topics=wanted, groups=[name])
    if asked := not (dry_run or execute) and sys.stdin.isatty():
        if cluster.prints_text:
            _show_moves(moves)
        confirm(f"Move group {name}: {_amounts(moves)}?", yes=False, otherwise="nothing was moved")
    if moved := execute or asked:
        cluster.ask(move)
    rows = [{"group": name, **each.row(), "dry_run": not moved} for each in moves]
    cluster.emit(rows, lambda: _say_moved(name, moves, moved=moved, shown=asked))
    if not (moved or dry_run or cluster.prints_text):
        print("Nothing was moved: this was a dry run. --execute moves the offsets.", file=sys.stderr)


@click.command
@GROUP.many
@yes_option
@cluster_options
def delete(
    names: list[str],
    yes: bool,
    cluster: ClusterOptions,
) -> None:
    """Delete groups without members, with their committed offsets.

    On a terminal it asks first; in a script it acts at once.
    """
    cluster.delete("group", names, "committed offsets", lambda admin: admin.delete_groups(names), yes=yes)


@click.command
@partial(GROUP.many, required=False)
@watch_options
@cluster_options
def lag(
    names: list[str],
    watch: bool,
    interval: float,
    cluster: ClusterOptions,
) -> None:
    """Show how many records groups have not read yet.

    Where a group has committed nothing, all records of the partition wait.
    """

    def present(found: list[GroupLag]) -> None:
        rows = [{"group": each.group.name, **row.row()} for each in found for row in each.progress]
        cluster.emit(rows, lambda: _one_by_one(found, _show_lag))

    cluster.show(lambda admin: group_lags(admin, names), present, groups=names, watch=watch, interval=interval)


# What is said ---------------------------------------------------------------------------------------------


def description(found: GroupLag) -> Row:
    """Gather what is to be said about a group."""
    group = found.group
    return {
        "group": group.name,
        "state": group.state,
        "type": group.kind,
        "assignor": group.assignor,
        "lag": found.lag,
        "members": [
            {
                "member": member.member_id,
                "instance": member.instance_id,
                "client": member.client_id,
                "host": member.host,
                "partitions": [str(partition) for partition in member.partitions],
                "lag": sum(each.lag or 0 for each in found.of_member(member)),
            }
            for member in group.members
        ],
        "partitions": [each.row() for each in found.progress],
    }


def lines_of(found: GroupLag) -> str:
    """Write a group's description: a line for the group and one for each member."""
    group = found.group
    lines = [
        f"Group {group.name}: State={group.state}, Type={group.kind}, Assignor={group.assignor or 'none'}, "
        f"Members={len(group.members)}, Lag={found.lag}"
    ]
    topics = {each.partition.topic for each in found.progress}
    for member in group.members:
        partitions = [
            str(partition.partition) if len(topics) == 1 else str(partition) for partition in sorted(member.partitions)
        ]
        waiting = sum(each.lag or 0 for each in found.of_member(member))
        lines.append(f"{member.instance_id or member.member_id}: Partitions [{', '.join(partitions)}], Lag: {waiting}")
    return "\n".join(lines)


def _one_by_one(found: list[GroupLag], show: Callable[[GroupLag], None]) -> None:
    for number, each in enumerate(found):
        if number:
            print()
        show(each)
    if not found:
        print(_NO_GROUPS)


def _show(found: GroupLag) -> None:
    print(lines_of(found))
    if found.progress:
        print()
        columns = ["topic", "partition", "committed", "end", "lag", "member", "client", "host"]
        draw_table(columns, [_cells(each) for each in found.progress])


def _show_lag(found: GroupLag) -> None:
    draw_table(
        ["topic", "partition", "committed", "end", "lag", "member"],
        [_cells(each)[:6] for each in found.progress],
        title=f"Group {found.group.name}: {found.group.state}, lag {found.lag}",
    )


def _cells(each: PartitionLag) -> list[object]:
    row = each.row()
    names = ("topic", "partition", "committed", "end", "lag", "member", "client", "host")
    return ["-" if row[name] is None else row[name] for name in names]


def _say_moved(group: str, moves: Sequence[Move], *, moved: bool, shown: bool) -> None:
    if not shown:
        _show_moves(moves)
    if moved:
        print(f"Moved group {group}: {_amounts(moves)}.")
    else:
        print(f"Nothing was moved: this was a dry run. With --execute group {group} moves: {_amounts(moves)}.")


def _show_moves(moves: Sequence[Move]) -> None:
    draw_table(
        ["topic", "partition", "before", "after", "replayed", "skipped"],
        [["-" if cell is None else cell for cell in move.row().values()] for move in moves],
    )
    print()


def _amounts(moves: Sequence[Move]) -> str:
    """Describe how far a group moves: `2 partitions, 5 records replayed, 0 skipped`."""
    if all(move.before is None for move in moves):
        return f"{plural(len(moves), 'partition')}, where it had committed nothing"
    replayed, skipped = sum(move.replayed for move in moves), sum(move.skipped for move in moves)
    return f"{plural(len(moves), 'partition')}, {plural(replayed, 'record')} replayed, {skipped:,} skipped"


# What is asked --------------------------------------------------------------------------------------------


async def _announce_group(admin: "Admin", name: str) -> None:
    """Print a line where a group is new and there is one of nearly the same name: it was perhaps misspelt."""
    known = [group.name for group in await admin.list_groups()]
    if name not in known and (meant := did_you_mean(name, known)):
        print(f"riverlog: there is no group {name} yet{meant}", file=sys.stderr)


async def _refuse_members(admin: "Admin", group: str) -> None:
    from riverlog import KafkaError
    from riverlog.model.errors import ErrorCode

    try:
        members = (await admin.describe_group(group)).members
    except KafkaError as error:
        if error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        return  # a group that is not there yet can be given offsets before its first member comes
    if members:
        raise CommandError(
            f"group {group} has {plural(len(members), 'live member')}, which would go on where they are; "
            "stop them first, and nothing was changed",
            ExitCode.REFUSED,
        )


async def _plan(
    admin: "Admin", partitions: list[TopicPartition], place: ResetTarget, committed: Mapping[TopicPartition, int]
) -> list[Move]:
    """Find out where each partition goes."""
    starts, ends = await offsets_at(admin, partitions, "earliest"), await offsets_at(admin, partitions, "latest")
    match place:
        case LogEdge.BEGINNING:
            targets = starts
        case LogEdge.END:
            targets = ends
        case TimestampMs():
            found = await offsets_at(admin, partitions, int(place))
            targets = {at: offset if offset >= 0 else ends[at] for at, offset in found.items()}
        case ShiftBy(count):
            if missing := [str(at) for at in partitions if at not in committed]:
                raise usage_error(
                    f"--shift-by starts from committed offsets, and there is none for {', '.join(missing)}; "
                    "name partitions that have one, as in --topic orders:0,1"
                )
            targets = {at: committed[at] + count for at in partitions}
        case int(offset):
            targets = dict.fromkeys(partitions, offset)
        case _:
            assert_never(place)
    return plan_moves(targets, committed, starts=starts, ends=ends)


async def _partitions(
    admin: "Admin", wanted: Mapping[str, tuple[int, ...]], committed: Mapping[TopicPartition, int]
) -> list[TopicPartition]:
    """Return the partitions that are meant; without a topic all that have a committed offset."""
    if not wanted:
        if not committed:
            raise CommandError("the group has committed no offsets; name its topics with --topic", ExitCode.REFUSED)
        return sorted(committed)
    partitions = []
    for topic in await admin.describe_topics(wanted):
        count = len(topic.partitions)
        for index in wanted[topic.name] or range(count):
            if index >= count:
                raise usage_error(f"topic {topic.name} has partitions 0 to {count - 1}, not {index}")
            partitions.append(TopicPartition(topic.name, index))
    return partitions


def partitions_meant(topics: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """Put together what is said about each topic; none of its partitions means all of them."""
    wanted: dict[str, tuple[int, ...]] = {}
    for name, numbers in map(_topic, topics):
        earlier = wanted.get(name, numbers)
        wanted[name] = tuple(sorted({*earlier, *numbers})) if earlier and numbers else ()
    return wanted


def _topic(text: str) -> tuple[str, tuple[int, ...]]:
    """Read `orders` or `orders:0,2`."""
    name, colon, numbers = text.partition(":")
    parts = numbers.split(",") if colon else []
    if not name or not all(part.strip().isdecimal() for part in parts):
        raise usage_error(f"--topic takes TOPIC or TOPIC:0,1, not '{text}'")
    return name, tuple(int(part) for part in parts)
