"""What windows and joins give, in plain Python, batch by batch: the rules of Spark's watermarks without Spark.

Times are microseconds, watermarks milliseconds, as in Spark. A batch is judged by the watermark of the batch before it,
and closes windows by its own. Spark adds a batch without rows when the watermark moved with the last one.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple, assert_never

from riverlog.pipelines.operators.windows import Session, Sliding, Tumbling, Window

SECOND_US = 1_000_000


class Event(NamedTuple):
    """A row: its key, a number to add up, and its time, which may be missing."""

    key: str
    number: int
    at_us: int | None


class Pair(NamedTuple):
    """A row in one of its windows."""

    event: Event
    window: tuple[int, int]


class Late(NamedTuple):
    """A pair that missed its window, and the watermark by which it did."""

    pair: Pair
    watermark_ms: int


Group = tuple[tuple[int, int], list[Event]]
"""A window, and the rows of one key in it."""
Result = tuple[tuple[int, int], str, int, int]
"""A window, a key, the sum of its numbers, and how many they are."""


def windows_of(window: Window, at_us: int) -> list[tuple[int, int]]:
    """Return start and end of each window of a row, the newest last; of a session, the row's own part."""
    match window:
        case Tumbling(size_ms, offset_ms):
            return _on_grid(at_us, size_ms * 1000, size_ms * 1000, offset_ms * 1000)
        case Sliding(size_ms, every_ms, offset_ms):
            return _on_grid(at_us, size_ms * 1000, every_ms * 1000, offset_ms * 1000)
        case Session(gap_ms):
            return [(at_us, at_us + gap_ms * 1000)]
        case _:
            assert_never(window)


def _on_grid(at_us: int, size_us: int, every_us: int, offset_us: int) -> list[tuple[int, int]]:
    last = at_us - (at_us - offset_us) % every_us
    starts = range(last, at_us - size_us, -every_us)
    return [(start, start + size_us) for start in reversed(starts)]


def sum_of(key: str, group: Group) -> Result:
    """Return a result as most tests want it."""
    place, events = group
    return place, key, sum(event.number for event in events), len(events)


@dataclass
class BatchOutcome:
    """What one batch gives."""

    results: Counter[Any] = field(default_factory=Counter)
    late: list[Late] = field(default_factory=list)
    pairs: int = 0
    timeless: int = 0


def watermarks_ms(batches: Sequence[Sequence[Event]], delay_ms: int) -> list[int]:
    """Return the watermark of each batch, and that of the one without rows behind them."""
    found, newest = [0], 0
    for batch in batches:
        newest = max([newest, *(event.at_us // 1000 - delay_ms for event in batch if event.at_us is not None)])
        found.append(newest)
    return found


def windowed(
    batches: Sequence[Sequence[Event]],
    window: Window,
    *,
    delay_ms: int,
    updates: bool = False,
    watermarks: Sequence[int] | None = None,
    result: Callable[[str, Group], Any] = sum_of,
) -> list[BatchOutcome]:
    """Return what each batch gives, and the one behind the last; as updates, which sessions do not have.

    The watermarks may be those of several streams.
    """
    assert not (updates and isinstance(window, Session))
    watermarks = watermarks or watermarks_ms(batches, delay_ms)
    state: dict[str, list[Group]] = defaultdict(list)
    outcomes = []
    for number, batch in enumerate([*batches, []]):
        judged_by = watermarks[max(number - 1, 0)] if number else 0
        outcome = BatchOutcome(timeless=sum(event.at_us is None for event in batch))
        touched: set[tuple[str, tuple[int, int]]] = set()
        for event in batch:
            for place in windows_of(window, event.at_us) if event.at_us is not None else []:
                outcome.pairs += 1
                if place[1] <= judged_by * 1000:
                    outcome.late.append(Late(Pair(event, place), judged_by))
                else:
                    _take(state[event.key], event, place, merge=isinstance(window, Session))
                    touched.add((event.key, place))
        for key, groups in state.items():
            closed = [group for group in groups if group[0][1] <= watermarks[number] * 1000]
            given = [group for group in groups if (key, group[0]) in touched] if updates else closed
            outcome.results.update(result(key, group) for group in given)
            state[key] = [group for group in groups if group not in closed]
        outcomes.append(outcome)
    return outcomes


def joined(
    left: Sequence[Sequence[Event]],
    right: Sequence[Sequence[Event]],
    *,
    delay_ms: tuple[int, int],
    before_ms: int,
    after_ms: int,
    how: str,
) -> tuple[Counter[tuple[Event | None, Event | None]], list[tuple[str, Event, int]]]:
    """Return what a join of all batches gives once the watermark has passed all, and the late rows of both sides."""
    global_ms = [
        min(pair) for pair in zip(watermarks_ms(left, delay_ms[0]), watermarks_ms(right, delay_ms[1]), strict=True)
    ]
    taken: dict[str, list[Event]] = {"left": [], "right": []}
    late = []
    for number, sides in enumerate(zip(left, right, strict=True)):
        judged_by = global_ms[number - 1] if number else 0
        for name, batch in zip(("left", "right"), sides, strict=True):
            for event in batch:
                if event.at_us is not None and event.at_us <= judged_by * 1000:
                    late.append((name, event, judged_by))
                elif event.at_us is not None:
                    taken[name].append(event)
    by_key: dict[str, list[Event]] = defaultdict(list)
    for event in taken["right"]:
        by_key[event.key].append(event)
    found: Counter[tuple[Event | None, Event | None]] = Counter()
    met: set[int] = set()
    for one in taken["left"]:
        matches = [each for each in by_key[one.key] if -before_ms * 1000 <= _gap(one, each) <= after_ms * 1000]
        met.update(map(id, matches))
        found.update((one, each) for each in matches)
        if not matches and how in ("left", "full"):
            found[one, None] += 1
    if how == "full":
        found.update((None, each) for each in taken["right"] if id(each) not in met)
    return found, late


def disorder(
    random: Random, *, batches: int, rows: int, keys: Sequence[str], step_us: int, disorder_us: int, stray_us: int
) -> list[list[Event]]:
    """Make batches of rows that are out of order, a few of them far behind, with keys that come again and again."""
    made: list[list[Event]] = []
    now = 1_767_225_600 * SECOND_US
    for _ in range(batches):
        batch = []
        for _ in range(random.randrange(rows + 1)):
            now += random.randrange(step_us)
            behind = random.randrange(stray_us) if random.random() < 0.1 else random.randrange(disorder_us)
            at_us = None if random.random() < 0.02 else now - behind
            batch.append(Event(random.choice(keys), random.randrange(5), at_us))
        batch += random.choices(batch, k=len(batch) // 10)  # the same again
        made.append(batch)
    return [batch for batch in made if batch]


def _take(groups: list[Group], event: Event, place: tuple[int, int], merge: bool) -> None:
    """Put a row into its window; sessions that it bridges become one."""
    if not merge:
        same = [group for group in groups if group[0] == place]
    else:
        same = [group for group in groups if group[0][0] <= place[1] and place[0] <= group[0][1]]
    for group in same:
        groups.remove(group)
    start = min([place[0], *(group[0][0] for group in same)])
    end = max([place[1], *(group[0][1] for group in same)])
    groups.append(((start, end), [*(each for group in same for each in group[1]), event]))


def _gap(one: Event, other: Event) -> int:
    assert one.at_us is not None
    assert other.at_us is not None
    return other.at_us - one.at_us
