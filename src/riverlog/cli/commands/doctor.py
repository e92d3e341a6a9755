"""`doctor`: try every address of a cluster, and say what is wrong and what to do about it."""

import asyncio
from collections.abc import Sequence
from itertools import groupby

import click

from riverlog.cli.client_settings import addresses, settings_of
from riverlog.cli.cluster_options import ClusterOptions, cluster_text_options
from riverlog.cli.examination import CheckResult, Examination
from riverlog.cli.terminal.colours import wrong
from riverlog.cli.terminal.exits import ExitCode
from riverlog.cli.terminal.render import plural


@click.command
@click.option(
    "--timeout",
    "seconds",
    type=click.FloatRange(0.1),
    default=5.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for each step.",
)
@cluster_text_options
def doctor(seconds: float, cluster: ClusterOptions) -> int:
    """Try every address of a cluster and say what is wrong.

    It resolves each bootstrap address, connects, and sends requests. Then it does the same with each address that the
    brokers advertise. It also finds clocks that differ, full disks, a missing controller, partitions without a leader,
    and lost internal topics. The exit code is 5 if something is wrong.
    """
    from riverlog.client.network.cluster import Cluster

    (given,) = settings_of([Cluster], cluster.settings)
    examination = Examination(seconds, given.get("security"))
    asyncio.run(examination.examine(addresses(cluster.bootstrap)))
    steps = examination.steps
    cluster.emit([step._asdict() for step in steps], lambda: print(report(steps)))
    return ExitCode.DONE if not _problems(steps) else ExitCode.FOUND


def report(steps: Sequence[CheckResult]) -> str:
    """Write the findings as a person reads them: what was tried, then what to do."""
    lines = []
    for subject, tried in groupby(steps, key=lambda step: step.subject):
        lines.append(subject)
        for step in tried:
            mark = "?    " if step.ok is None else "ok   " if step.ok else wrong("WRONG")
            took = "" if step.milliseconds is None else f" ({step.milliseconds:.1f} ms)"
            lines.append(f"  {mark}  {step.step:<12}{step.found}{took}")
            if step.advice:
                lines.append(f"         {'':<12}{step.advice}")
    problems = _problems(steps)
    lines.append(f"\n{wrong(plural(problems, 'problem'))} found." if problems else "\nNothing is wrong.")
    return "\n".join(lines)


def _problems(steps: Sequence[CheckResult]) -> int:
    """Count what is wrong; what could not be found out is not."""
    return sum(step.ok is False for step in steps)
