"""How many rows came to a window or join, and how many of them were late: counted in the batches themselves.

Spark observes these numbers in front of the operator, in the task that reads the rows, and reports them with the
progress of each batch. A batch that is run again is counted once: the last ones are known each by its number, those
before them are a sum.
"""

from collections.abc import Iterable, Mapping
from threading import Lock
from typing import Any, NamedTuple

from riverlog.pipelines.limits import ACCOUNTED_BATCHES_MAX
from riverlog.spark.sessions.progress import OBSERVED


class Counts(NamedTuple):
    """What came to one operator."""

    rows: int = 0
    timeless: int = 0
    """Rows without an event time: they belong to no window, and are left out."""
    pairs: int = 0
    """Rows times the windows that they belong to: in a sliding window each row counts in several."""
    late: int = 0
    """Pairs that came too late: dropped, or written to the side output."""

    @property
    def in_time(self) -> int:
        """Pairs that are in results, or will be."""
        return self.pairs - self.late

    def plus(self, other: "Counts") -> "Counts":
        return Counts(*(one + another for one, another in zip(self, other, strict=True)))


class _QueryCounts:
    """The counts of one query's batches: the last ones each, and those before them as a sum."""

    def __init__(self) -> None:
        self.batches: dict[int, dict[str, Counts]] = {}
        self.before: dict[str, Counts] = {}
        self.folded = -1
        """The last batch that is in the sum."""

    def take(self, batch: int, found: dict[str, Counts]) -> None:
        if batch <= self.folded:
            return  # it is in the sum
        self.batches[batch] = found
        while len(self.batches) > ACCOUNTED_BATCHES_MAX:
            self.folded = min(self.batches)
            _add(self.before, self.batches.pop(self.folded))


class RowCounter:
    """Adds up the counts of some queries' batches. Spark reports in a thread of its own, while others may ask."""

    def __init__(self) -> None:
        self._accounts: dict[str, _QueryCounts] = {}
        self._lock = Lock()

    def take(self, query: str, batch: int, observed: Mapping[str, Any]) -> None:
        """Take the observed metrics of a batch; of one that comes twice, the last."""
        found: dict[str, Counts] = {}
        for name, metrics in observed.items():
            if name.startswith(OBSERVED):
                operator = name.removesuffix(":rows")
                found[operator] = found.get(operator, Counts()).plus(_counts(metrics))
        if found:
            with self._lock:
                self._accounts.setdefault(query, _QueryCounts()).take(batch, found)

    def operators(self) -> dict[str, Counts]:
        """Return the sums, by the names of the observed metrics."""
        sums: dict[str, Counts] = {}
        with self._lock:
            for account in self._accounts.values():
                for each in (account.before, *account.batches.values()):
                    _add(sums, each)
        return dict(sorted(sums.items()))


def total(counts: Iterable[Counts]) -> Counts:
    """Add up several operators, or both sides of a join."""
    summed = Counts()
    for each in counts:
        summed = summed.plus(each)
    return summed


def _add(sums: dict[str, Counts], found: Mapping[str, Counts]) -> None:
    for operator, counts in found.items():
        sums[operator] = sums.get(operator, Counts()).plus(counts)


def _counts(metrics: Any) -> Counts:
    given = metrics.asDict() if hasattr(metrics, "asDict") else dict(metrics)
    return Counts(**{name: int(value or 0) for name, value in given.items() if name in Counts._fields})
