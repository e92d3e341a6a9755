"""How many rows came to a window or join, and how many of them were late: counted in the batches themselves.

Spark observes these numbers in front of the operator, in the task that reads the rows, and tells them with the progress
of each batch. A batch that is run again is counted once.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from riverlog.spark.progress import OBSERVED


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


class Accounts:
    """Adds up what the batches of some queries tell."""

    def __init__(self) -> None:
        self._batches: dict[tuple[str, int], dict[str, Counts]] = {}

    def take(self, query: str, batch: int, observed: Mapping[str, Any]) -> None:
        """Take the observed metrics of a batch; of one that comes twice, the last."""
        found: dict[str, Counts] = {}
        for name, metrics in observed.items():
            if name.startswith(OBSERVED):
                operator = name.removesuffix(":rows")
                found[operator] = found.get(operator, Counts()).plus(_counts(metrics))
        if found:
            self._batches[query, batch] = found

    def operators(self) -> dict[str, Counts]:
        """Give the sums, by the names of the observed metrics."""
        sums: dict[str, Counts] = {}
        for batch in self._batches.values():
            for operator, counts in batch.items():
                sums[operator] = sums.get(operator, Counts()).plus(counts)
        return dict(sorted(sums.items()))


def total(counts: Iterable[Counts]) -> Counts:
    """Add up several operators, or both sides of a join."""
    summed = Counts()
    for each in counts:
        summed = summed.plus(each)
    return summed


def _counts(metrics: Any) -> Counts:
    given = metrics.asDict() if hasattr(metrics, "asDict") else dict(metrics)
    return Counts(**{name: int(value or 0) for name, value in given.items() if name in Counts._fields})
