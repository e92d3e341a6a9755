"""Tables that fit the terminal: numbers stand to the right, and where there is no room, long cells are cut.

A file or a pipe has no width: lines there are as long as they need to be.
"""

import shutil
import sys
import unicodedata
from collections.abc import Sequence
from typing import Final

from riverlog.cli.terminal.colours import Wrong, wrong

GAP: Final = "   "
NARROW_GAP: Final = "  "
COLUMN_WIDTH_MIN: Final = 6
"""A column is not cut to less, and one that is no wider is not cut at all."""


def draw_table(
    columns: Sequence[str], rows: Sequence[Sequence[object]], title: str | None = None, *, whole: int = 0
) -> None:
    """Print a table; a cell that is `Wrong` is drawn in red. The first `whole` columns are never cut."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    if title is not None:
        print(title)
    for line in table_lines(columns, rows, width, whole=whole):
        print(line)


def table_lines(
    columns: Sequence[str], rows: Sequence[Sequence[object]], width: int | None, *, whole: int = 0
) -> list[str]:
    """Return the lines of a table that is no wider than this. A number is never cut: what is left would be another."""
    cells = [[_text(cell) for cell in row] for row in rows]
    numeric = [_is_numeric(column) for column in zip(*rows, strict=True)] or [False] * len(columns)
    widths = [max(map(_width, column)) for column in zip(columns, *cells, strict=True)]
    gap = GAP
    if width is not None and sum(widths) + len(GAP) * (len(widths) - 1) > width:
        gap = NARROW_GAP
        content = [max(map(_width, column), default=0) for column in zip(*cells, strict=True)] or [0] * len(columns)
        least = [
            widths[index] if index < whole else content[index] if numeric[index] else 0 for index in range(len(widths))
        ]
        widths = fitted(widths, width - len(gap) * (len(widths) - 1), least)

    def line(texts: Sequence[str]) -> str:
        padded = (_padded(*each) for each in zip(texts, widths, numeric, strict=True))
        return gap.join(padded).rstrip()

    return [line(columns), "─" * (sum(widths) + len(gap) * (len(widths) - 1)), *map(line, cells)]


def fitted(widths: Sequence[int], room: int, least: Sequence[int]) -> list[int]:
    """Cut the widest columns to one width, so that all have room; none to less than what it needs at least."""

    def cut_to(most: int) -> list[int]:
        return [min(each, max(most, needed)) for each, needed in zip(widths, least, strict=True)]

    most = max(widths, default=0)
    while most > COLUMN_WIDTH_MIN and sum(cut_to(most)) > room:
        most -= 1
    cut = cut_to(most)
    for index, each in enumerate(widths):  # what is left over goes to the first of those that were cut
        cut[index] += min(each - cut[index], max(0, room - sum(cut)))
    return cut


def _is_numeric(column: Sequence[object]) -> bool:
    """Return whether a column has numbers, and nothing else but cells that are empty."""
    numbers = [isinstance(cell, int | float) for cell in column]
    return any(numbers) and all(number or cell in (None, "-", "") for cell, number in zip(column, numbers, strict=True))


def _text(cell: object) -> str:
    """Return a cell on one line."""
    text = "" if cell is None else cell if isinstance(cell, str) else str(cell)
    return text if "\n" not in text else " ".join(text.split())


def _padded(text: str, width: int, right: bool) -> str:
    shown = text
    if _width(shown) > width:
        while _width(shown) > width - 1:
            shown = shown[:-1]
        shown += "…"
    space = " " * (width - _width(shown))
    shown = wrong(shown) if isinstance(text, Wrong) else shown
    return space + shown if right else shown + space


def _width(text: str) -> int:
    """Count the places that a text takes on a terminal."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(each) in "WF" for each in text)
    return len(text) + wide - sum(unicodedata.combining(each) > 0 for each in text)
