"""Run the lines: ours, Kafka, ours, Kafka, each with a fresh topic, and keep every sample.

Both nodes stay up between their turns, so that the peer's compiler stays warm; an idle node costs next to nothing.
What cannot be measured leaves a sentence in its place, never a gap.
"""

import contextlib
import itertools
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from bench import machine, nodes
from bench.trial import Contender, Failed, Line, Node, NotRun, Trial, Values
from bench.workshop import Workshop

OURS: Final = "riverlog"
COLD_SECONDS: Final = 2.0
WARM_UP_STEP_SECONDS: Final = 2.0
DISTURBED_CORES: Final = 0.15
"""A sample during which others used more of the machine than this is marked."""

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Sample:
    """One run of one line, and how many cores everybody else used and the host took away meanwhile."""

    values: Values
    others_cores: float

    @property
    def is_disturbed(self) -> bool:
        return self.others_cores > DISTURBED_CORES


@dataclass(slots=True)
class Column:
    """What one contender did in one line: samples, or the reason why there are none."""

    samples: list[Sample] = field(default_factory=list)
    absence: str | None = None


@dataclass(slots=True)
class Entrant:
    """A contender in this run: its version or why it is absent, its node, and how it did before it was warm."""

    contender: Contender
    version: str | None = None
    absence: str | None = None
    node: Node | None = None
    cold: Values | None = None
    warmed_seconds: float = 0.0

    @property
    def name(self) -> str:
        return self.contender.name


@dataclass(frozen=True, slots=True)
class Plan:
    """What is measured, how often and for how long, and where the data lies."""

    lines: Sequence[Line]
    runs: int
    seconds: float
    folder: Path
    cold_line: Line
    """The line that is also measured once before the warm-up."""
    warm_up_lines: Sequence[Line]
    warm_seconds_max: float
    workshop: Workshop


Columns = dict[str, dict[str, Column]]
"""By the line's name, then by the contender's."""


def prepare(contenders: Sequence[Contender], say: Say) -> list[Entrant]:
    """Fetch what each contender needs; one that cannot run says why and keeps its column."""
    entrants = [Entrant(contender) for contender in contenders]
    for entrant in entrants:
        try:
            entrant.version = entrant.contender.prepare()
        except NotRun as reason:
            entrant.absence = f"NOT RUN: {reason}"
        say(f"{entrant.name} {entrant.version or entrant.absence}")
    return entrants


def run(plan: Plan, entrants: Sequence[Entrant], say: Say) -> Columns:
    """Measure every line for every entrant, first those that start nodes of their own."""
    columns: Columns = {
        line.name: {entrant.name: Column() for entrant in entrants if _takes_part(entrant, line)} for line in plan.lines
    }
    shared = [line for line in plan.lines if line.on_shared_node]
    try:
        with contextlib.ExitStack() as stack:
            _alternate(plan, [line for line in plan.lines if not line.on_shared_node], entrants, columns, stack, say)
            for entrant in entrants:
                if shared and entrant.absence is None:
                    _enter(plan, entrant, stack, say)
            _alternate(plan, shared, entrants, columns, stack, say)
    except Failed as reason:  # a node that would not stop spoils none of the numbers
        say(str(reason))
    return columns


def _takes_part(entrant: Entrant, line: Line) -> bool:
    return entrant.name == OURS or not line.ours_only


def _alternate(
    plan: Plan,
    lines: Sequence[Line],
    entrants: Sequence[Entrant],
    columns: Columns,
    stack: contextlib.ExitStack,
    say: Say,
) -> None:
    for line, number, entrant in itertools.product(lines, range(1, plan.runs + 1), entrants):
        if not _takes_part(entrant, line) or number > line.runs(plan.runs):
            continue
        column = columns[line.name][entrant.name]
        column.absence = column.absence or entrant.absence
        if column.absence is not None:
            continue
        samples = len(column.samples)
        said = _add_sample(plan, line, entrant, column)
        say(f"{line.name}, run {number} of {line.runs(plan.runs)}, {entrant.name}: {said}")
        if len(column.samples) == samples and line.on_shared_node:
            _replace_if_dead(plan, entrant, stack, say)


def _enter(plan: Plan, entrant: Entrant, stack: contextlib.ExitStack, say: Say) -> None:
    """Start the node that stays up, take one cold figure, and warm it with a mix of lines."""
    warm_seconds = min(entrant.contender.warm_seconds, plan.warm_seconds_max)
    say(f"{entrant.name}: starting, then {warm_seconds:g} s of mixed load to warm it up")
    folder = Path(tempfile.mkdtemp(prefix=f"{entrant.name}-", dir=plan.folder))
    try:
        entrant.node = stack.enter_context(nodes.running(entrant.contender, folder))
    except Failed as reason:
        entrant.absence = f"FAILED: {reason}"
        say(f"{entrant.name} {entrant.absence}")
        return
    begin = machine.now()
    entrant.warmed_seconds = 0.0
    try:
        entrant.cold = _probe(plan, plan.cold_line, entrant, COLD_SECONDS)
        for line in itertools.cycle(plan.warm_up_lines):
            if entrant.warmed_seconds >= warm_seconds:
                break
            _probe(plan, line, entrant, WARM_UP_STEP_SECONDS)
            entrant.warmed_seconds = machine.now() - begin
    except Exception as reason:  # the line that needs it will say so in its own place
        say(f"{entrant.name}: the warm-up ended early: {reason}")


def _replace_if_dead(plan: Plan, entrant: Entrant, stack: contextlib.ExitStack, say: Say) -> None:
    """Start another node where a line that failed has taken the shared one with it: the next lines need it."""
    assert entrant.node is not None
    if not nodes.answers_metadata(entrant.node.host, entrant.node.port):
        say(f"{entrant.name}: its node is gone; starting another one")
        _enter(plan, entrant, stack, say)


def _add_sample(plan: Plan, line: Line, entrant: Entrant, column: Column) -> str:
    """Measure once, keep what came of it, and say it in a few words."""
    before, begin = machine.usage([os.getpid()]), machine.now()
    try:
        values = _probe(plan, line, entrant, plan.seconds)
    except NotRun as reason:
        column.absence = f"NOT RUN: {reason}"
        return column.absence
    except Failed as reason:
        column.absence = f"FAILED: {reason}"
        return column.absence
    except Exception as error:  # whatever it is, it concerns this line alone, and a long run must not end with it
        column.absence = f"FAILED: {type(error).__name__}: {' '.join(str(error).split())}"
        return column.absence
    used, elapsed = machine.usage([os.getpid()]).since(before), machine.now() - begin
    column.samples.append(Sample(values, others_cores=(used.others + used.stolen) / elapsed))
    return ", ".join(f"{row.name} {values[row.name]:,.4g} {row.unit}" for row in line.rows if row.name in values)


def _probe(plan: Plan, line: Line, entrant: Entrant, seconds: float) -> Values:
    folder = plan.folder / f"{line.name}-{entrant.name}"
    folder.mkdir(parents=True)
    before = machine.children(os.getpid())
    try:
        return line.probe(Trial(entrant.contender, entrant.node, folder, seconds, plan.workshop))
    finally:
        for pid in (
            machine.children(os.getpid()) - before - plan.workshop.pids
        ):  # a probe that failed may have left its node behind
            os.kill(pid, signal.SIGKILL)
        shutil.rmtree(folder, ignore_errors=True)  # what a killed node still holds goes with the run's own folder
