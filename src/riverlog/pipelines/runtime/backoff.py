"""How long to wait before a pipeline that failed is started again, and when to give up. Pure.

The pause doubles with every failure in a row, up to a minute. A batch that was completed shows that the trouble was
over, and the count begins anew. Pauses are shortened at random by up to a quarter, so that pipelines which failed
together do not come back together.
"""

from dataclasses import dataclass, field
from random import Random
from typing import Final

FIRST_SECONDS: Final = 1.0
SECONDS_MAX: Final = 60.0
_SHORTENED_MAX: Final = 0.25


@dataclass
class Backoff:
    """The failures of one query."""

    restarts_max: int
    """How often in a row it is started again."""
    random: Random
    failures: int = 0

    def completed(self) -> None:
        """Note that a batch was completed."""
        self.failures = 0

    def failed(self) -> float | None:
        """Note a failure, and return how many seconds to wait; None where it is not to be started again."""
        self.failures += 1
        if self.failures > self.restarts_max:
            return None
        pause = min(SECONDS_MAX, FIRST_SECONDS * 2.0 ** min(self.failures - 1, 16))
        return pause * (1 - _SHORTENED_MAX * self.random.random())


@dataclass
class Backoffs:
    """The failures of a pipeline's queries, each counted on its own."""

    restarts_max: int
    random: Random
    _of: dict[str, Backoff] = field(default_factory=dict)
    _batches: dict[str, int] = field(default_factory=dict)

    def of(self, query: str) -> Backoff:
        """Return the failures of a query; those of a start that failed have no name."""
        if query not in self._of:
            self._of[query] = Backoff(self.restarts_max, self.random)
        return self._of[query]

    def completed(self, query: str, batch: int) -> None:
        """Note the last batch that a query has completed; one that was known before shows nothing."""
        if batch > self._batches.get(query, -1):
            self._batches[query] = batch
            self.of(query).completed()
            self._of.pop("", None)  # so the pipeline has started
