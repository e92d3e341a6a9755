"""`verify`: does a cluster keep its promises, whatever is done to it meanwhile?

Works with any Kafka-compatible cluster. The topics and the group that it makes are removed at the end, also after
Ctrl-C. The load and its judgement live in `riverlog.verify`; here they get options, and the verdict a form.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import groupby
from random import Random
from typing import TYPE_CHECKING, Any, Final

import click

from riverlog.cli.client_settings import created, settings_of
from riverlog.cli.cluster_options import ClusterOptions, cluster_options
from riverlog.cli.terminal.colours import wrong
from riverlog.cli.terminal.exits import ExitCode, usage_error
from riverlog.cli.terminal.options import (
    INT16_MAX,
    INT32_MAX,
    choice_option,
    count_option,
)
from riverlog.cli.terminal.render import Row, plural
from riverlog.cli.terminal.tables import draw_table
from riverlog.verify.limits import VERIFIED_RECORDS_MAX

if TYPE_CHECKING:
    from riverlog.verify.history import History
    from riverlog.verify.load.run import Report

EXAMPLES_MAX: Final = 5
"""Sentences per kind of anomaly; more of the same tell no more."""
CLIENTS_MAX: Final = 100
PARTITIONS_MAX: Final = 1_000


@click.command
@click.option(
    "--seconds",
    type=click.FloatRange(0.1, 86_400),
    default=10.0,
    show_default=True,
    metavar="S",
    help=f"How long to write, at most {VERIFIED_RECORDS_MAX:,} records. Reading everything comes on top.",
)
@count_option("--topics", default=2, most=PARTITIONS_MAX, help="Topics to make, and to remove in the end.")
@count_option("--partitions", default=3, most=PARTITIONS_MAX, help="Partitions of each topic.")
@click.option(
    "--replication-factor",
    type=click.IntRange(1, INT16_MAX),
    metavar="N",
    help="Of the topics: the cluster's default if not given.",
)
@count_option("--producers", default=3, most=CLIENTS_MAX, help="Idempotent producers, each with its own compression.")
@count_option(
    "--transactional",
    default=1,
    most=CLIENTS_MAX,
    least=0,
    help="Producers that write in transactions: commits, aborts, and commits with offsets.",
)
@count_option(
    "--consumers",
    default=3,
    most=CLIENTS_MAX,
    least=0,
    help="Members of the group, which join and leave; 0 makes no group.",
)
@choice_option(
    "--group",
    "protocol",
    among=["classic", "consumer"],
    default="classic",
    help="The protocol of the group; consumer is that of KIP-848.",
)
@click.option(
    "--rate",
    type=click.FloatRange(1, 100_000),
    default=1_000.0,
    show_default=True,
    metavar="N",
    help="Records a second, over all producers.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, INT32_MAX),
    metavar="N",
    help="Repeats the random choices of a run. Without it: a new seed each time.",
)
@cluster_options
def verify(
    seconds: float,
    topics: int,
    partitions: int,
    replication_factor: int | None,
    producers: int,
    transactional: int,
    consumers: int,
    protocol: str,
    rate: float,
    seed: int | None,
    cluster: ClusterOptions,
) -> int:
    """Test whether a cluster loses, duplicates or reorders records.

    Producers write, some of them in transactions, and a group reads and commits. At the end readers read everything
    from the beginning. Every acknowledged record must be there, once and in order. No reader may skip a record, or see
    one of an aborted transaction. Committed offsets must not get lost.

    Kill brokers while it runs: errors are expected then, and are no anomalies. The exit code is 5 if an anomaly was
    found, or if not everything could be read at the end.
    """
    from riverlog import Consumer, Producer
    from riverlog.verify.load.run import Load
    from riverlog.verify.load.run import verify as verify_cluster

    for_producer, for_consumer = settings_of([Producer, Consumer], cluster.settings)
    if for_producer.keys() & {"acks", "idempotent", "transactional_id", "transaction_timeout_ms"}:
        raise usage_error("verify holds a cluster to what acks=all and idempotence promise; they cannot be set with -X")
    if for_consumer.keys() & {"group", "group_protocol", "auto_commit", "auto_offset_reset", "isolation_level"}:
        raise usage_error("verify chooses groups, commits and isolation by itself; --group says by which protocol")
    for client, chosen in ((Producer, for_producer), (Consumer, for_consumer)):
        created(client, cluster.bootstrap, chosen)  # a mistake is better said once, before anything is started
    load = Load(
        seconds=seconds,
        topics=topics,
        partitions=partitions,
        producers=producers,
        transactional=transactional,
        consumers=consumers,
        rate=rate,
        protocol="consumer" if protocol == "consumer" else "classic",
        replication_factor=replication_factor or -1,
        seed=Random().randrange(INT32_MAX) if seed is None else seed,
    )

    async def work() -> "Report":
        async with cluster.admin_beside():
            pass  # whoever does not answer is told of here; later on, silence is what a run is about
        with _progress() as say:
            return await verify_cluster(
                cluster.bootstrap, load, producer=for_producer, consumer=for_consumer, say=say, warn=_warn
            )

    report = cluster.run(work())
    row = row_of(report, load.seed)
    cluster.emit([row], lambda: show(row))
    return ExitCode.DONE if report.clean else ExitCode.FOUND


def row_of(report: "Report", seed: int) -> dict[str, Any]:
    """Name the facts of a report."""
    verdict = report.verdict
    examples = {
        kind: [anomaly.sentence for anomaly in group][:EXAMPLES_MAX]
        for kind, group in groupby(verdict.anomalies, key=lambda anomaly: anomaly.name())
    }
    return {
        "clean": report.clean,
        "seed": seed,
        "written": verdict.written,
        "acknowledged": verdict.acknowledged,
        "refused": verdict.refused,
        "aborted": verdict.aborted,
        "unknown": verdict.unknown,
        "read": verdict.seen,
        "readings": verdict.readings,
        "commits": verdict.commits,
        "transactions": verdict.transactions,
        "errors": dict(sorted(report.troubles.items())),
        "anomalies": verdict.counts,
        "examples": examples,
        "unfinished": list(report.unfinished),
    }


def show(row: Row) -> None:
    """Draw what was done, and say what was found."""
    facts: dict[str, Any] = dict(row)
    errors = ", ".join(f"{code} {count:,}" for code, count in facts["errors"].items())
    counts = {
        "written": (facts["written"], "records that producers sent"),
        "acknowledged": (facts["acknowledged"], "must be there"),
        "refused": (facts["refused"], "must not be there"),
        "aborted": (facts["aborted"], "taken back with their transactions; readers of committed records see none"),
        "unknown": (facts["unknown"], "may be there or not, but for all readers alike"),
        "read": (facts["read"], f"in {plural(facts['readings'], 'stretch', 'stretches')} by the group and at the end"),
        "commits": (facts["commits"], "acknowledged to members of the group"),
        "transactions": (facts["transactions"], "committed, aborted, or unknown; each as a whole"),
        "errors": (sum(facts["errors"].values()), errors),
    }
    width = max(len("count"), *(len(f"{count:,}") for count, _ in counts.values()))
    draw_table(
        ["what", "count".rjust(width), "which means"],
        [[name, f"{count:>{width},}", what] for name, (count, what) in counts.items()],
    )
    print()
    for kind, count in facts["anomalies"].items():
        print(f"{wrong(kind)}: {count:,}")
        for sentence in facts["examples"][kind]:
            print(f"  {sentence}")
    for sentence in facts["unfinished"]:
        print(f"unfinished: {sentence}")
    if facts["clean"]:
        print("No anomaly: all that was promised is there, once and in order, and for everybody.")
    else:
        found = plural(sum(facts["anomalies"].values()), "anomaly", "anomalies")
        print(f"{wrong(found)} found; the load had --seed {facts['seed']}.")


def _warn(sentence: str) -> None:
    print(f"riverlog: {sentence}", file=sys.stderr)


@contextmanager
def _progress() -> "Iterator[Callable[[str, History], None]]":
    """Show on a terminal what is being done."""
    if not sys.stderr.isatty():
        yield lambda _part, _history: None
        return
    from rich.console import Console

    console = Console(stderr=True)
    with console.status("connecting") as status:
        yield lambda part, history: status.update(f"{part}: {plural(len(history.writes), 'record')} written")
