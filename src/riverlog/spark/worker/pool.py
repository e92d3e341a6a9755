"""What a worker of Spark keeps from one task to the next: connections, and what is known of a cluster.

A worker lives for many tasks, and Spark hands a task nothing that outlives it. So pools of such things are all that
modules of this package have of their own. Each thing is lent to one task at a time; after a failure it is not kept.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, Generic, Protocol, TypeVar

KEPT_MAX: Final = 4
"""Things that a pool keeps; of further ones the oldest is closed."""


class Closable(Protocol):
    """What can be closed."""

    def close(self) -> None:
        """Close it."""


C = TypeVar("C", bound=Closable)


class ResourcePool(Generic[C]):
    """Things of one kind that wait for the next task, by what they were made for."""

    def __init__(self) -> None:
        self._kept: dict[str, C] = {}

    @contextmanager
    def lend(self, key: str, make: Callable[[], C]) -> Iterator[C]:
        """Lend one that was kept, or a new one."""
        lent = self._kept.pop(key, None)
        if lent is None:
            lent = make()
        try:
            yield lent
        except BaseException:
            lent.close()
            raise
        self._kept[key] = lent
        while len(self._kept) > KEPT_MAX:
            self._kept.pop(next(iter(self._kept))).close()

    @property
    def waiting(self) -> list[C]:
        """Return what waits, the oldest first."""
        return [*self._kept.values()]

    def close(self) -> None:
        """Close it."""
        while self._kept:
            self._kept.popitem()[1].close()
