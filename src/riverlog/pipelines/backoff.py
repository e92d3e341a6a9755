"""How long to wait before a pipeline that failed is started again, and when to give up. Pure.

The pause doubles with every failure in a row, up to a minute. A batch that was completed shows that the trouble was
over, and the count begins anew. Pauses are shortened at random by up to a quarter, so that pipelines which failed
together do not come back together.
"""

from dataclasses import dataclass
from random import Random
from typing import Final

FIRST_SECONDS: Final = 1.0
SECONDS_MAX: Final = 60.0
_SHORTENED_MAX: Final = 0.25


@dataclass
class Backoff:
    """The failures of one pipeline."""

    restarts_max: int
    """How often in a row it is started again."""
    random: Random
    failures: int = 0

    def completed(self) -> None:
        """Note that a batch was completed."""
        self.failures = 0

    def failed(self) -> float | None:
        """Note a failure, and give how many seconds to wait; None where it is not to be started again."""
        self.failures += 1
        if self.failures > self.restarts_max:
            return None
        pause = min(SECONDS_MAX, FIRST_SECONDS * 2.0 ** min(self.failures - 1, 16))
        return pause * (1 - _SHORTENED_MAX * self.random.random())
