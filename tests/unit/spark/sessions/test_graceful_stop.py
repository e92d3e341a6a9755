"""A query stops behind its batch, and a batch without an end is not waited for."""

from collections.abc import Iterator
from typing import Any

import pytest

from riverlog.spark.sessions.graceful_stop import stop_behind_batch


class Query:
    """A query of Spark that goes one step on whenever it is looked at."""

    def __init__(self, steps: list[tuple[bool, int | None]]) -> None:
        self._steps: Iterator[tuple[bool, int | None]] = iter(steps)
        self._busy, self._batch = next(self._steps)
        self.isActive = True

    @property
    def status(self) -> dict[str, Any]:
        self._busy, self._batch = next(self._steps, (self._busy, self._batch))
        return {"isTriggerActive": self._busy, "isDataAvailable": self._busy}

    @property
    def lastProgress(self) -> dict[str, Any] | None:  # noqa: N802 - Spark's name
        return None if self._batch is None else {"batchId": self._batch}

    def stop(self) -> None:
        self.isActive = False

    def left(self) -> int:
        return len(list(self._steps))


@pytest.mark.parametrize(
    ("steps", "left"),
    [
        ([(False, 3), (False, 3), (True, 3)], 1),
        ([(True, 3), (True, 3), (True, 3), (True, 4), (True, 4)], 1),
        ([(True, None), (True, None), (True, 0), (True, 0)], 1),
        ([(True, 3), (True, 3), (False, 3), (True, 4)], 1),
    ],
)
def test_the_batch_at_which_it_is_comes_to_its_end(steps: list[tuple[bool, int | None]], left: int) -> None:
    query = Query(steps)
    stop_behind_batch(query)  # type: ignore[arg-type]
    assert not query.isActive
    assert query.left() == left


def test_a_batch_that_takes_too_long_is_not_waited_for() -> None:
    query = Query([(True, 3)])
    stop_behind_batch(query, seconds_max=0.0)  # type: ignore[arg-type]
    assert not query.isActive
