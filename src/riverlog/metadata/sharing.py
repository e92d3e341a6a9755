"""A map that never changes: a changed one shares all but one small bucket with the one before.

A cluster may have a hundred thousand topics, and handlers hold on to the view they started with; copying a whole
dict for each change would make creating topics quadratic. Keys are text.
"""

from collections.abc import Iterator
from typing import Final, Generic, TypeVar
from zlib import crc32

Value = TypeVar("Value")

BUCKETS: Final = 1_024


class SharedMap(Generic[Value]):
    """An immutable mapping from text, cheap to derive from. Items come in the order of their keys."""

    __slots__ = ("_buckets", "_count")

    def __init__(self) -> None:
        empty: dict[str, Value] = {}
        self._buckets: tuple[dict[str, Value], ...] = tuple([empty] * BUCKETS)
        self._count = 0

    def get(self, key: str) -> Value | None:
        return self._buckets[_bucket(key)].get(key)

    def __contains__(self, key: str) -> bool:
        return key in self._buckets[_bucket(key)]

    def __len__(self) -> int:
        return self._count

    def items(self) -> Iterator[tuple[str, Value]]:
        """Give all entries, sorted by key: the same on every node."""
        return iter(sorted((item for bucket in self._buckets for item in bucket.items()), key=lambda item: item[0]))

    def with_entry(self, key: str, value: Value) -> "SharedMap[Value]":
        """Give a map that has this entry and otherwise equals this one."""
        bucket = self._buckets[_bucket(key)]
        return self._derived(key, {**bucket, key: value}, self._count + (key not in bucket))

    def without(self, key: str) -> "SharedMap[Value]":
        """Give a map that lacks this key and otherwise equals this one."""
        bucket = self._buckets[_bucket(key)]
        if key not in bucket:
            return self
        return self._derived(key, {each: value for each, value in bucket.items() if each != key}, self._count - 1)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SharedMap) and self._buckets == other._buckets

    def __hash__(self) -> int:
        raise TypeError("a SharedMap is too large to be hashed")

    def __repr__(self) -> str:
        return f"SharedMap({dict(self.items())!r})"

    def _derived(self, key: str, bucket: dict[str, Value], count: int) -> "SharedMap[Value]":
        buckets = list(self._buckets)
        buckets[_bucket(key)] = bucket
        derived: SharedMap[Value] = SharedMap.__new__(SharedMap)
        derived._buckets = tuple(buckets)
        derived._count = count
        return derived


def _bucket(key: str) -> int:
    return crc32(key.encode()) % BUCKETS
