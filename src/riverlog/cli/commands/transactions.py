"""`transactions`: list and describe transactional ids, find transactions that hang, and abort them."""

import sys
from functools import partial
from typing import TYPE_CHECKING, Final

import click

from riverlog.cli.cluster_options import ClusterOptions, cluster_options, cluster_text_options
from riverlog.cli.group_offsets import duration_ms
from riverlog.cli.terminal.exits import CommandError, ExitCode, usage_error
from riverlog.cli.terminal.names import Naming
from riverlog.cli.terminal.options import confirm, yes_option
from riverlog.cli.terminal.render import Row, time_text
from riverlog.cli.terminal.tables import draw_table
from riverlog.model.ids import TopicPartition

if TYPE_CHECKING:
    from riverlog import Admin
    from riverlog.client.admin.transactions import ProducerDescription, TransactionDescription

TRANSACTIONAL_ID: Final = Naming("transactional id", "--transactional-id")
_NOT_ABORTED: Final = "nothing was aborted"
_OPEN: Final = "Ongoing"
_NO_IDS: Final = "There are no transactional ids"
_NO_SUCH_IDS: Final = "There are no such transactional ids"
STATES: Final = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "Dead",
    "PrepareEpochFence",
)
"""Where a transactional id can stand, as Kafka calls it."""
_HUNG_AFTER: Final = "15m"  # no transaction may be open for longer, unless transaction.max.timeout.ms says so


@click.command
@click.option(
    "--state",
    multiple=True,
    type=click.Choice(STATES, case_sensitive=False),
    metavar="STATE",
    help="Only ids in this state, such as Ongoing or Empty.",
)
@click.option("--producer-id", "producer_ids", multiple=True, type=int, metavar="N", help="Only this producer's id.")
@click.option("--pattern", metavar="REGEX", help="Only ids whose whole name matches.")
@click.option("--older-than", metavar="LENGTH", help="Only transactions that are open for longer: 90s, 15m, PT1H30M…")
@click.option("--hung", is_flag=True, help="Show transactions that are open in a partition and that nobody will end.")
@click.option("--topic", "topics", multiple=True, metavar="TOPIC", help="With --hung: look in this topic alone.")
@cluster_options
def list_transactions(
    state: tuple[str, ...],
    producer_ids: tuple[int, ...],
    pattern: str | None,
    older_than: str | None,
    hung: bool,
    topics: tuple[str, ...],
    cluster: ClusterOptions,
) -> None:
    """List transactional ids with their states, or the transactions that hang.

    A transaction hangs when it is open in a partition and its coordinator does not know of it. Readers of committed
    records (read_committed) wait for it for ever, and compaction does too. Brokers that do not verify transactions
    leave them behind (Kafka before 3.6); `transactions abort` ends them.
    """
    if hung and (state or producer_ids or pattern):
        raise usage_error("--hung looks into partitions: it goes with --topic and --older-than alone")
    if topics and not hung:
        raise usage_error("--topic goes with --hung: a transactional id belongs to no topic")
    older_than_ms = duration_ms(older_than) if older_than else -1

    async def hanging(admin: "Admin") -> "list[ProducerDescription]":
        found = await (admin.describe_topics(topics) if topics else admin.list_topics(internal=True))
        partitions = [TopicPartition(topic.name, each.index) for topic in found for each in topic.partitions]
        age_ms = older_than_ms if older_than else duration_ms(_HUNG_AFTER)
        return await admin.hung_transactions(partitions, older_than_ms=age_ms)

    if hung:
        hung_rows = [hung_row(each) for each in cluster.ask(hanging)]
        cluster.emit(hung_rows, lambda: _show_hung(hung_rows))
        return
    listed = cluster.ask(
        lambda admin: admin.list_transactions(
            states=state, producer_ids=producer_ids, older_than_ms=older_than_ms, pattern=pattern
        )
    )
    rows = [
        {
            "transactional_id": each.transactional_id,
            "state": each.state,
            "producer_id": each.producer_id,
            "coordinator": each.coordinator,
        }
        for each in listed
    ]
    filtered = state or producer_ids or older_than or pattern
    nothing = _NO_SUCH_IDS if filtered else _NO_IDS
    cluster.emit_table(rows, ["transactional id", "state", "producer id", "coordinator"], nothing)
    for each in cluster.ask(lambda admin: admin.damaged_coordinators()):
        print(f"{each} is damaged: its transactional ids are not listed; the node's log says more", file=sys.stderr)


@click.command
@TRANSACTIONAL_ID.one
@cluster_text_options
def describe(
    name: str,
    cluster: ClusterOptions,
) -> None:
    """Show the state, producer and partitions of a transactional id.

    That is its state and its producer, and the partitions that its transaction has touched, where one is open.
    """
    found = cluster.ask(lambda admin: admin.describe_transaction(name))
    cluster.emit([description(found)], lambda: print(lines_of(found)))


@click.command
@partial(TRANSACTIONAL_ID.one, required=False)
@click.option("--topic", metavar="TOPIC", help="The topic of a transaction that hangs.")
@click.option("--partition", type=click.IntRange(0), metavar="N", help="Its partition.")
@click.option("--producer-id", type=int, metavar="N", help="The producer whose transaction is open there.")
@yes_option
@cluster_options
def abort(
    name: str | None,
    topic: str | None,
    partition: int | None,
    producer_id: int | None,
    yes: bool,
    cluster: ClusterOptions,
) -> None:
    """Abort the open transaction of a transactional id, or one that hangs.

    With a transactional id the whole transaction is aborted, and its producer is fenced: it ends at its next request.
    With --topic, --partition and --producer-id, as `transactions list --hung` shows them, one marker is written to that
    partition alone. Do so only for what hangs: a transaction that its coordinator knows would be torn apart, and one
    that several producers share is refused. On a terminal it asks first; in a script it acts at once.
    """
    place = _place(topic, partition, producer_id, named=name is not None)
    if place is None:
        assert name is not None
        _abort_open(name, cluster, yes=yes)
        return
    where, producer = place
    question = f"Abort what producer {producer} has open in {where}, and nowhere else?"
    confirm(question, yes=yes, otherwise=_NOT_ABORTED)
    aborted = cluster.ask(lambda admin: _abort_in(admin, where, producer))
    row: Row = {**hung_row(aborted), "aborted": True}
    cluster.emit([row], lambda: print(f"Aborted: producer {producer} has no transaction open in {where}"))


def _abort_open(name: str, cluster: ClusterOptions, *, yes: bool) -> None:
    """Abort what a transactional id has open; refuse where nothing is, and leave its producer alone then."""
    found = cluster.ask(lambda admin: admin.describe_transaction(name))
    if found.state != _OPEN:
        raise CommandError(
            f"{name} has no transaction that could be aborted: its state is {found.state}; nothing was done",
            ExitCode.REFUSED,
        )
    places = [str(partition) for partition in found.partitions]
    question = f"Abort what {name} has open in {', '.join(places)}, and fence its producer?"
    confirm(question, yes=yes, otherwise=_NOT_ABORTED)
    cluster.ask(lambda admin: admin.abort_transaction(name))
    row: Row = {"transactional_id": name, "aborted": True, "partitions": places}
    cluster.emit([row], lambda: print(f"Aborted what {name} had open in {', '.join(places)}"))


# What is said ---------------------------------------------------------------------------------------------


def description(found: "TransactionDescription") -> Row:
    """Gather what is to be said about a transactional id."""
    return {
        "transactional_id": found.transactional_id,
        "state": found.state,
        "producer_id": found.producer_id,
        "producer_epoch": found.producer_epoch,
        "timeout_ms": found.timeout_ms,
        "started": time_text(found.started_ms),
        "partitions": [str(partition) for partition in found.partitions],
    }


def lines_of(found: "TransactionDescription") -> str:
    """Write a description: a line for the id, and one for its transaction where there is one."""
    lines = [
        f"Transactional id {found.transactional_id}: State={found.state}, ProducerId={found.producer_id}, "
        f"ProducerEpoch={found.producer_epoch}, TimeoutMs={found.timeout_ms}"
    ]
    if found.partitions:
        lines.append(f"Since {time_text(found.started_ms)} in {', '.join(map(str, found.partitions))}")
    return "\n".join(lines)


def hung_row(each: "ProducerDescription") -> Row:
    """Gather what is to be said about a transaction in a partition."""
    return {
        "topic": each.partition.topic,
        "partition": each.partition.partition,
        "producer_id": each.producer_id,
        "producer_epoch": each.producer_epoch,
        "first_offset": each.transaction_offset,
        "last_written": time_text(each.last_timestamp_ms),
    }


def _show_hung(rows: list[Row]) -> None:
    if not rows:
        print("No transaction hangs")
        return
    columns = ["topic", "partition", "producer id", "epoch", "first offset", "last written"]
    draw_table(columns, [list(row.values()) for row in rows])


# What is asked --------------------------------------------------------------------------------------------


def _place(
    topic: str | None, partition: int | None, producer_id: int | None, *, named: bool
) -> tuple[TopicPartition, int] | None:
    """Return the place of a transaction that hangs, where one is described; None where a transactional id is named."""
    if topic is None and partition is None and producer_id is None:
        if not named:
            raise usage_error("name a transactional id, or what hangs: --topic TOPIC --partition N --producer-id N")
        return None
    if named:
        raise usage_error("name a transactional id or a place, not both")
    if topic is None or partition is None or producer_id is None:
        raise usage_error("a place needs all three: --topic TOPIC --partition N --producer-id N")
    return TopicPartition(topic, partition), producer_id


async def _abort_in(admin: "Admin", where: TopicPartition, producer_id: int) -> "ProducerDescription":
    producer = await _open_in(admin, where, producer_id)
    known = await admin.transaction_of(producer)
    if known is not None and known.producer_id != producer_id:
        owner = known.transactional_id
        raise CommandError(
            f"producer {producer_id} does not hang: it writes in the transaction of {owner}, which its coordinator "
            f"ends everywhere at once. To abort all of it: riverlog transactions abort {owner}",
            ExitCode.REFUSED,
        )
    await admin.abort_in_partition(producer)
    return producer


async def _open_in(admin: "Admin", where: TopicPartition, producer_id: int) -> "ProducerDescription":
    for each in await admin.describe_producers([where]):
        if each.producer_id == producer_id and each.transaction_offset >= 0:
            return each
    raise CommandError(f"producer {producer_id} has no transaction open in {where}; nothing was done", ExitCode.REFUSED)
