"""The picture at the top of docs/performance.md, drawn from the tables of that page: docs/performance.svg.

Each bar says how many times better riverlog is than Kafka at one number, on a logarithmic scale; a bar to the left of
the line is a number at which Kafka is better. `python -m tests.support.documents` draws it anew; test_tidy.py compares.
"""

import math
import re
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Final, NamedTuple

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "performance.md"
PICTURE: Final = PAGE.with_suffix(".svg")


class Number(NamedTuple):
    """A number of the tables to show: in words, by its line and name there, and whether less of it is better."""

    words: str
    line: str
    name: str
    less_is_better: bool = False


SHOWN: Final = (
    Number("start on an empty folder", "startup", "first, s", less_is_better=True),
    Number("memory at rest", "memory", "at rest, MB", less_is_better=True),
    Number("recovery after kill -9, 3 GB", "recovery-100", "after kill, s", less_is_better=True),
    Number("produce, 1 KB records", "produce-1k", "rate, MB/s"),
    Number("produce over 1,000 partitions", "partitions-1000", "rate, MB/s"),
    Number("CPU to produce 1 GB", "produce-1k", "CPU, s/GB", less_is_better=True),
    Number("consume, 1 KB records", "consume-1k", "rate, MB/s"),
    Number("small requests, 8 clients, five each", "small-8x5", "rate, /s"),
    Number("small requests, 64 clients, one each", "small-64x1", "rate, /s"),
    Number("64 clients, one each, with fsync", "fsync-small-64x1", "rate, /s"),
    Number("transactions of one record", "transactions-small", "rate, /s"),
    Number("produce to consume, p99", "end-to-end", "p99, ms", less_is_better=True),
)

_ROW: Final = 30
_TOP: Final = 64
_LEFT: Final = 270
_SCALE: Final = 150
"""Pixels for a factor of ten."""
_WIDTH: Final = 860
_ONE: Final = _LEFT + 30
_INK, _FAINT, _OURS, _THEIRS = "#1f2933", "#8895a7", "#2f6fb0", "#c2703d"


@dataclass(frozen=True, slots=True)
class Pair:
    """What was measured of both, as the page prints it."""

    riverlog: str
    kafka: str

    def factor(self, *, less_is_better: bool) -> float:
        """Return how many times better riverlog is."""
        ours, theirs = (float(text.replace(",", "")) for text in (self.riverlog, self.kafka))
        return theirs / ours if less_is_better else ours / theirs


def measured(page: str) -> dict[tuple[str, str], Pair]:
    """Read the tables of the page: the medians of both, by line and name."""
    found: dict[tuple[str, str], Pair] = {}
    line = ""
    for row in re.findall(r"^\|(.*)\|$", page, re.MULTILINE):
        cells = [cell.strip() for cell in row.split("|")]
        line = cells[0] or line
        if len(cells) >= 4 and all(re.match(r"[\d,.]+", cell) for cell in cells[2:4]):
            found[line, cells[1]] = Pair(cells[2].split()[0], cells[3].split()[0])
    return found


def picture(page: str) -> str:
    """Return the picture of a page."""
    pairs = measured(page)
    height = _TOP + _ROW * len(SHOWN) + 16
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif">',
        "<title>riverlog beside Apache Kafka</title>",
        f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>',
        _text(12, 24, "How many times better than Apache Kafka 4.3.1, on the same machine", size=15, bold=True),
    ]
    parts.append(_text(_WIDTH - 130, 44, "riverlog", anchor="end", size=11))
    parts.append(_text(_WIDTH - 65, 44, "Kafka", fill=_FAINT, anchor="end", size=11))
    for factor in (1, 10, 100):
        at = _ONE + _SCALE * math.log10(factor)
        parts.append(
            f'<line x1="{at:.0f}" y1="50" x2="{at:.0f}" y2="{height - 12}" stroke="{_FAINT}" stroke-width="0.7"/>'
        )
        parts.append(
            _text(
                at, 44, "as Kafka" if factor == 1 else f"{factor} times as good", fill=_FAINT, anchor="middle", size=11
            )
        )
    for place, number in enumerate(SHOWN):
        parts += _bar(_TOP + _ROW * place, number, pairs[number.line, number.name])
    return "\n".join([*parts, "</svg>", ""])


def _bar(top: int, number: Number, pair: Pair) -> list[str]:
    factor = pair.factor(less_is_better=number.less_is_better)
    length = _SCALE * math.log10(factor)
    unit = number.name.rpartition(", ")[2]
    begin, end = min(_ONE, _ONE + length), max(_ONE, _ONE + length)
    colour = _OURS if factor >= 1 else _THEIRS
    values = f"{factor:.2f}" if factor < 2 else f"{factor:.1f}" if factor < 10 else f"{factor:.0f}"
    return [
        _text(_LEFT, top + 15, number.words, anchor="end"),
        f'<rect x="{begin:.1f}" y="{top + 2}" width="{end - begin:.1f}" height="18" fill="{colour}"/>',
        _text(end + 6, top + 15, values, bold=True),
        _text(_WIDTH - 130, top + 15, pair.riverlog, anchor="end", size=12),
        _text(_WIDTH - 65, top + 15, pair.kafka, anchor="end", size=12, fill=_FAINT),
        _text(_WIDTH - 55, top + 15, unit, size=12, fill=_FAINT),
    ]


def _text(
    x: float, y: float, words: str, *, fill: str = _INK, anchor: str = "start", size: int = 13, bold: bool = False
) -> str:
    style = f'fill="{fill}" text-anchor="{anchor}" font-size="{size}"' + (' font-weight="bold"' if bold else "")
    return f'<text x="{x:.0f}" y="{y:.0f}" {style}>{escape(words)}</text>'


def main() -> None:
    """Draw the picture anew."""
    PICTURE.write_text(picture(PAGE.read_text()))
