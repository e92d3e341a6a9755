"""A map that never changes: a changed one shares all but one small bucket with the one before.

A cluster may have a hundred thousand topics, and handlers hold on to the view they started with; copying a whole
dict for each change would make creating topics quadratic. Keys are text.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Final, Generic, TypeVar
from zlib import crc32

from riverlog.metadata.limits import KEYS_PLACED_MAX

Value = TypeVar("Value")

BRANCHES: Final = 32
"""Buckets are reached in two steps of so many branches: a change copies one bucket and two short tuples."""

Bucket = dict[str, Value]


class SharedMap(Generic[Value]):
    """An immutable mapping from text, cheap to derive from. Items come in the order of their keys."""

    __slots__ = ("_branches", "_count")

    def __init__(self) -> None:
        empty: Bucket[Value] = {}
        self._branches: tuple[tuple[Bucket[Value], ...], ...] = ((empty,) * BRANCHES,) * BRANCHES
        self._count = 0

    def get(self, key: str) -> Value | None:
        branch, twig = _place(key)
        return self._branches[branch][twig].get(key)

    def __contains__(self, key: str) -> bool:
        branch, twig = _place(key)
        return key in self._branches[branch][twig]

    def __len__(self) -> int:
        return self._count

    def items(self) -> Iterator[tuple[str, Value]]:
        """Return all entries, sorted by key: the same on every node."""
        entries = (item for branch in self._branches for bucket in branch for item in bucket.items())
        return iter(sorted(entries, key=lambda item: item[0]))

    def with_entry(self, key: str, value: Value) -> "SharedMap[Value]":
        """Return a map that has this entry and otherwise equals this one."""
        branch, twig = _place(key)
        bucket = self._branches[branch][twig]
        return self._derived(branch, twig, {**bucket, key: value}, self._count + (key not in bucket))

    def without(self, key: str) -> "SharedMap[Value]":
        """Return a map that lacks this key and otherwise equals this one."""
        branch, twig = _place(key)
        bucket = self._branches[branch][twig]
        if key not in bucket:
            return self
        kept = {each: value for each, value in bucket.items() if each != key}
        return self._derived(branch, twig, kept, self._count - 1)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SharedMap) and self._branches == other._branches

    def __hash__(self) -> int:
        raise TypeError("a SharedMap is too large to be hashed")

    def __repr__(self) -> str:
        return f"SharedMap({dict(self.items())!r})"

    def _derived(self, branch: int, twig: int, bucket: Bucket[Value], count: int) -> "SharedMap[Value]":
        twigs = list(self._branches[branch])
        twigs[twig] = bucket
        branches = list(self._branches)
        branches[branch] = tuple(twigs)
        derived: SharedMap[Value] = SharedMap.__new__(SharedMap)
        derived._branches = tuple(branches)
        derived._count = count
        return derived


@lru_cache(maxsize=KEYS_PLACED_MAX)
def _place(key: str) -> tuple[int, int]:
    return divmod(crc32(key.encode()) % (BRANCHES * BRANCHES), BRANCHES)
