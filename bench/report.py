"""Turn samples into a table: median, range, ratio, and whether it is the ratio to reach.

The same Markdown goes to the terminal and to a file; a JSON file beside it keeps every sample.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Final

from bench.machine import Machine
from bench.runner import Column, Columns, Entrant
from bench.trial import Better, Line, Row

NOISE: Final = 0.15
"""Differences below this mean nothing on a shared machine."""
HEADINGS: Final = ("line", "number", "riverlog", "Kafka", "ratio", "to reach", "")


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What a reader must know besides the numbers."""

    date: str
    command: str
    machine: Machine
    clients: str
    load_average: tuple[float, float, float]
    runs: int
    seconds: float
    minutes: float
    """How long all of it took."""


def markdown(lines: Sequence[Line], columns: Columns, entrants: Sequence[Entrant], seen: Circumstances) -> str:
    """Write the whole report."""
    cells = [list(HEADINGS), *(cells for line in lines for cells in _rows(line, columns[line.name]))]
    widths = [max(len(row[column]) for row in cells) for column in range(len(HEADINGS))]
    text = [f"| {' | '.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))} |" for row in cells]
    text.insert(1, f"|{'|'.join('-' * (width + 2) for width in widths)}|")
    return (
        "\n".join(
            [*_heading(entrants, seen), "", *text, "", *(f"- {note}" for note in _notes(lines, columns, entrants))]
        )
        + "\n"
    )


def as_json(lines: Sequence[Line], columns: Columns, entrants: Sequence[Entrant], seen: Circumstances) -> str:
    """Write everything that was measured, for programs."""
    return json.dumps(
        {
            "circumstances": asdict(seen),
            "contenders": {
                entrant.name: {"version": entrant.version, "command": entrant.contender.command, "cold": entrant.cold}
                for entrant in entrants
            },
            "lines": {
                line.name: {
                    "about": line.about,
                    "rows": {
                        row.name: {
                            "unit": row.unit,
                            "better": row.better.value,
                            "reach": row.reach,
                            "own_reach": row.own_reach,
                            "ratio": ratio(columns[line.name], row),
                            "verdict": verdict(columns[line.name], row),
                        }
                        for row in line.rows
                    },
                    "columns": {name: asdict(column) for name, column in columns[line.name].items()},
                }
                for line in lines
            },
        },
        indent=1,
    )


def ratio(columns: Mapping[str, Column], row: Row) -> float | None:
    """Divide riverlog's median by Kafka's; None unless both were measured, and are theirs."""
    if row.better is Better.NEITHER:
        return None
    ours, theirs = (_values(columns.get(name), row) for name in ("riverlog", "Kafka"))
    return median(ours) / median(theirs) if ours and theirs and median(theirs) else None


def verdict(columns: Mapping[str, Column], row: Row) -> str:
    """Judge the ratio, or riverlog's number itself, by the row's aim; what misses by less than the noise is near."""
    aim: float | None
    if row.own_reach is not None:
        ours = _values(columns.get("riverlog"), row)
        aim, reached = row.own_reach, median(ours) if ours else None
    else:
        aim, reached = row.reach, ratio(columns, row)
    if not aim or not reached:
        return ""
    shortfall = aim / reached if row.better is Better.HIGHER else reached / aim
    if shortfall <= 1:
        return "reached"
    return "near" if shortfall <= 1 + NOISE else "missed"


def _rows(line: Line, columns: Mapping[str, Column]) -> Iterator[list[str]]:
    for row in line.rows:
        reached = ratio(columns, row)
        yield [
            line.name if row is line.rows[0] else "",
            f"{row.name}, {row.unit}",
            _cell(columns.get("riverlog"), row),
            _cell(columns.get("Kafka"), row),
            "" if reached is None else f"{reached:.2f}",
            _aim(row),
            verdict(columns, row),
        ]


def _cell(column: Column | None, row: Row) -> str:
    """Write median and range, with a dagger where others disturbed more than half of the runs."""
    if column is None:
        return "-"
    values = _values(column, row)
    if not values:
        return (column.absence or "-").partition(":")[0]
    disturbed = sum(sample.is_disturbed for sample in column.samples) * 2 > len(values)
    spread = f" ({_number(min(values))}-{_number(max(values))})" if len(values) > 1 else ""
    return f"{_number(median(values))}{spread}{' †' if disturbed else ''}"


def _values(column: Column | None, row: Row) -> list[float]:
    """Return what counts: nothing where one run failed, for the others say little without it."""
    if column is None or column.absence is not None:
        return []
    return [sample.values[row.name] for sample in column.samples if row.name in sample.values]


def _number(value: float) -> str:
    """Write three significant digits, never an exponent."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}" if abs(value) >= 1 else f"{value:.3f}"


def _aim(row: Row) -> str:
    """Write what is to be reached: by the ratio, or by riverlog's number itself."""
    sign = "≥" if row.better is Better.HIGHER else "≤"
    if row.own_reach is not None:
        return f"{sign} {row.own_reach:.3g} itself"
    return "" if row.reach is None else f"{sign} {row.reach:.3g}"


def _heading(entrants: Sequence[Entrant], seen: Circumstances) -> Iterator[str]:
    versions = " and ".join(f"{entrant.name} {entrant.version or '(not run)'}" for entrant in entrants)
    yield f"{versions}, {seen.date}, `{seen.command}`"
    yield f"on {seen.machine}, {seen.clients}; load average at the start {seen.load_average[0]:.2f}."
    yield (
        f"Median (range) of {seen.runs} runs of {seen.seconds:g} s, alternating, a fresh topic for each run; "
        f"all of it took {seen.minutes:.1f} minutes."
    )


def _notes(lines: Sequence[Line], columns: Columns, entrants: Sequence[Entrant]) -> Iterator[str]:
    if any(sample.is_disturbed for line in columns.values() for column in line.values() for sample in column.samples):
        yield "† others used more than 0.15 of a core during most of these runs."
    for entrant in entrants:
        yield f"{entrant.name}: `{entrant.contender.command}`."
        if entrant.cold is not None:
            yield (
                f"{entrant.name} was warmed up with {entrant.warmed_seconds:.0f} s of mixed load; "
                f"right after its start it did {entrant.cold['rate']:,.0f} small requests/s (8x1)."
            )
    lines_by_absence: dict[tuple[str, str], list[str]] = {}
    for line in lines:
        for name, column in columns[line.name].items():
            if column.absence is not None:
                lines_by_absence.setdefault((name, column.absence), []).append(line.name)
    for (name, absence), names in lines_by_absence.items():
        yield f"{name} {absence} ({'all lines' if len(names) == len(lines) else ', '.join(names)})"
