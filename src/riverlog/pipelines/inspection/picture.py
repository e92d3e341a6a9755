"""The picture of a pipeline: topics, what is done to their rows, and where it goes; as text and as SVG. Pure.

It is made of what streams know about themselves, so it shows the pipeline that runs. What several outputs share is
drawn once.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from html import escape
from textwrap import wrap
from typing import Final, NamedTuple, assert_never

from riverlog.pipelines.lineage import Lineage
from riverlog.pipelines.outputs import ConsoleTarget, CustomTarget, ParquetTarget, Target, TopicTarget


class BoxKind(Enum):
    """What a box stands for."""

    TOPIC = "topic"
    STEP = "step"
    OUTPUT = "output"


class OutputPicture(NamedTuple):
    """An output as the picture needs it: the query, its stream's lineage, where results and late rows go."""

    name: str
    lineage: Lineage
    target: Target
    side_topic: str | None = None


class Box(NamedTuple):
    """A box, its words, and a note: whose output it is."""

    kind: BoxKind
    words: str
    note: str = ""


class Arrow(NamedTuple):
    """From one box to another, by number."""

    tail: int
    head: int


@dataclass
class Graph:
    """Boxes and arrows; boxes are numbered so that every arrow leads to a higher number."""

    boxes: list[Box] = field(default_factory=list)
    arrows: list[Arrow] = field(default_factory=list)
    _places: dict[object, int] = field(default_factory=dict)

    def box(self, box: Box, key: object, tails: Iterable[int] = ()) -> int:
        """Return the number of a box, which is drawn once for each key."""
        if key not in self._places:
            self._places[key] = len(self.boxes)
            self.boxes.append(box)
            self.arrows += [Arrow(tail, self._places[key]) for tail in tails]
        return self._places[key]

    def topic(self, topic: str, key: object, note: str, tails: Iterable[int]) -> None:
        """Add a topic that is written; who reads it further down begins with this box."""
        self._places.setdefault(_read(topic), self.box(Box(BoxKind.OUTPUT, f"topic {topic}", note), key, tails))


def as_text(outputs: Iterable[OutputPicture]) -> str:
    """Draw each query from its topics down to where it writes."""
    parts = []
    for name, lineage, target, side_topic in outputs:
        lines = [f"query {name}", *(f"  {line}" for line in _stream_lines(lineage)), f"  => {_target(target)}"]
        lines += [] if side_topic is None else [f"  => topic {side_topic}: late rows"]
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def graph(outputs: Iterable[OutputPicture]) -> Graph:
    """Return boxes and arrows."""
    drawn = Graph()
    for name, lineage, target, side_topic in outputs:
        last = _add_stream(drawn, lineage)
        if isinstance(target, TopicTarget):
            drawn.topic(target.topic, (name,), f"query {name}", last)
        else:
            drawn.box(Box(BoxKind.OUTPUT, _target(target), f"query {name}"), (name,), last)
        if side_topic is not None:
            drawn.topic(side_topic, (name, "late"), f"late rows of {name}", last)
    return drawn


def as_svg(title: str, outputs: Iterable[OutputPicture]) -> str:
    """Draw all queries as one picture, from left to right."""
    drawn = graph(outputs)
    columns = _columns(drawn)
    rows = _rows(drawn, columns)
    wrapped = [wrap(box.words, _WORDS_MAX) or [""] for box in drawn.boxes]
    notes = [wrap(box.note, _NOTE_MAX) for box in drawn.boxes]
    heights = [_LINE * (len(lines) + len(more)) + _PADDING for lines, more in zip(wrapped, notes, strict=True)]
    lane = max(heights, default=_LINE) + _GAP_DOWN
    width = _MARGIN * 2 + (max(columns, default=0) + 1) * (_BOX + _GAP_RIGHT) - _GAP_RIGHT
    height = _TITLE + (max(rows, default=0) + 1) * lane + _MARGIN

    def corner(number: int) -> tuple[int, int]:
        top = _TITLE + rows[number] * lane + (lane - _GAP_DOWN - heights[number]) // 2
        return _MARGIN + columns[number] * (_BOX + _GAP_RIGHT), top

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}"',
        ' font-family="sans-serif" font-size="12">',
        f"<title>{escape(title)}</title>{_STYLE}",
        f'<text x="{_MARGIN}" y="{_TITLE - 14}" class="title">{escape(title)}</text>\n',
    ]
    for tail, head in drawn.arrows:
        (left, left_top), (right, right_top) = corner(tail), corner(head)
        begin = (left + _BOX, left_top + heights[tail] // 2)
        parts.append(_arrow(begin, (right, right_top + heights[head] // 2)))
    for number, (box, lines, more) in enumerate(zip(drawn.boxes, wrapped, notes, strict=True)):
        parts.append(_drawn_box(box.kind, lines, more, *corner(number), heights[number]))
    return "".join(parts) + "</svg>\n"


def _stream_lines(lineage: Lineage) -> list[str]:
    """Write a stream: what flows together is indented, what is done to it follows."""
    lines = [f"topic {topic}" for topic in lineage.begins] or ["rows"]
    for words, beside in lineage.steps:
        if beside is None:
            lines.append(f"| {words}")
        else:
            lines = [*(f"  {line}" for line in (*lines, *_stream_lines(beside))), words]
    return lines


def _add_stream(drawn: Graph, lineage: Lineage) -> list[int]:
    """Add a stream, and return the boxes in which it ends."""
    last = [drawn.box(Box(BoxKind.TOPIC, f"topic {topic}"), _read(topic)) for topic in lineage.begins]
    last = last or [drawn.box(Box(BoxKind.TOPIC, "rows"), lineage)]
    so_far: object = lineage.begins
    for words, beside in lineage.steps:
        more = [] if beside is None else _add_stream(drawn, beside)
        so_far = (so_far, words, tuple(more))
        last = [drawn.box(Box(BoxKind.STEP, words), so_far, (*last, *more))]
    return last


def _read(topic: str) -> object:
    """Return the key of the box in which streams of a topic begin."""
    return "topic", topic


def _target(target: Target) -> str:
    match target:
        case TopicTarget(topic):
            return f"topic {topic}"
        case ConsoleTarget():
            return "console"
        case ParquetTarget(path):
            return f"files in {path}"
        case CustomTarget():
            return "a writer of Spark"
        case _:
            assert_never(target)


# Where boxes stand


def _columns(drawn: Graph) -> list[int]:
    """Put each box right of all that lead to it."""
    columns = [0] * len(drawn.boxes)
    for tail, head in sorted(drawn.arrows, key=lambda arrow: arrow.head):
        columns[head] = max(columns[head], columns[tail] + 1)
    return columns


def _rows(drawn: Graph, columns: list[int]) -> list[int]:
    """Put each box on the row of the first that leads to it, or the next free one below."""
    rows = [0] * len(drawn.boxes)
    taken: set[tuple[int, int]] = set()
    for number in sorted(range(len(drawn.boxes)), key=lambda number: (columns[number], number)):
        row = min((rows[tail] for tail, head in drawn.arrows if head == number), default=0)
        while (columns[number], row) in taken:
            row += 1
        taken.add((columns[number], row))
        rows[number] = row
    return rows


_BOX: Final = 190
_GAP_RIGHT: Final = 60
_GAP_DOWN: Final = 24
_LINE: Final = 16
_PADDING: Final = 18
_MARGIN: Final = 20
_TITLE: Final = 50
_WORDS_MAX: Final = 28
"""Letters in a line of a box."""
_NOTE_MAX: Final = 34

_STYLE: Final = (
    "<style>.title{font-size:16px;font-weight:bold}.topic rect{fill:#dbeafe;stroke:#1d4ed8}"
    ".step rect{fill:#f8fafc;stroke:#475569}.output rect{fill:#dcfce7;stroke:#15803d}"
    "path{fill:none;stroke:#475569}.note{fill:#475569;font-size:10px}</style>"
    '<defs><marker id="tip" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto">'
    '<path d="M0,0 L8,4 L0,8 z" style="fill:#475569;stroke:none"/></marker></defs>'
)


def _arrow(begin: tuple[int, int], end: tuple[int, int]) -> str:
    middle = (begin[0] + end[0]) // 2
    return (
        f'<path d="M{begin[0]},{begin[1]} C{middle},{begin[1]} {middle},{end[1]} {end[0]},{end[1]}"'
        ' marker-end="url(#tip)"/>\n'
    )


def _drawn_box(kind: BoxKind, lines: list[str], notes: list[str], left: int, top: int, height: int) -> str:
    corners = {BoxKind.TOPIC: 14, BoxKind.STEP: 3, BoxKind.OUTPUT: 14}[kind]
    looks = ["words"] * len(lines) + ["note"] * len(notes)
    words = "".join(
        f'<text x="{left + _BOX // 2}" y="{top + _PADDING // 2 + _LINE * number + 12}" text-anchor="middle"'
        f' class="{look}">{escape(line)}</text>'
        for number, (line, look) in enumerate(zip((*lines, *notes), looks, strict=True))
    )
    return (
        f'<g class="{kind.value}"><rect x="{left}" y="{top}" width="{_BOX}" height="{height}" rx="{corners}"/>'
        f"{words}</g>\n"
    )
