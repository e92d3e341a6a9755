"""A map that never changes: a changed one shares all but a few small pieces with the one before.

A cluster may have a million topics, and handlers hold on to the view they started with; copying a whole dict for
each change would make creating topics quadratic. The map is a tree by the bits of the keys' hash: up to 32 entries are
a leaf, more are a branch of 32 trees. So its shape depends on what is in it, and not on how it came there.
"""

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any, Final, Generic, TypeVar
from zlib import crc32

Key = TypeVar("Key", str, bytes)
Value = TypeVar("Value")

LEAF_ENTRIES_MAX: Final = 32
_BITS: Final = 5
_BRANCHES: Final = 1 << _BITS
_HASH_BITS: Final = 32


class Gone(Enum):
    """In the place of a value: the key is to go."""

    GONE = 0


GONE: Final = Gone.GONE

Tree = dict[Any, Any] | tuple[Any, ...]
"""A leaf with its entries, or a branch with 32 trees."""


class SharedMap(Generic[Key, Value]):
    """An immutable mapping from text or bytes, cheap to derive from. Items come in the order of their keys.

    No value is None.
    """

    __slots__ = ("_count", "_root")

    def __init__(self) -> None:
        self._root: Tree = {}
        self._count = 0

    def get(self, key: Key) -> Value | None:
        node = self._root
        if type(node) is tuple:
            place = _hash(key)
            while type(node) is tuple:
                node = node[place & (_BRANCHES - 1)]
                place >>= _BITS
        assert type(node) is dict
        value: Value | None = node.get(key)
        return value

    def __contains__(self, key: Key) -> bool:
        return self.get(key) is not None

    def __len__(self) -> int:
        return self._count

    def items(self) -> Iterator[tuple[Key, Value]]:
        """Return all entries, sorted by key: the same on every node."""
        return iter(sorted(_entries(self._root), key=lambda item: item[0]))

    def with_entry(self, key: Key, value: Value) -> "SharedMap[Key, Value]":
        """Return a map that has this entry and otherwise equals this one."""
        return self.merged({key: value})

    def without(self, key: Key) -> "SharedMap[Key, Value]":
        """Return a map that lacks this key and otherwise equals this one."""
        return self.merged({key: GONE}) if key in self else self

    def merged(self, changes: Mapping[Key, Value | Gone]) -> "SharedMap[Key, Value]":
        """Return a map with all these entries, and without the keys that are to go."""
        derived: SharedMap[Key, Value] = SharedMap.__new__(SharedMap)
        derived._root, grown = _merged(self._root, [(_hash(key), key, value) for key, value in changes.items()], 0)
        derived._count = self._count + grown
        return derived

    def differences(self, other: "SharedMap[Key, Value]") -> Iterator[tuple[Key, Value | None, Value | None]]:
        """Return each key with its value here and in another map, where these are not the same object.

        What the two share is passed over, so that this costs what is different.
        """
        return _differences(self._root, other._root)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SharedMap) and self._root == other._root

    def __hash__(self) -> int:
        raise TypeError("a SharedMap is too large to be hashed")

    def __repr__(self) -> str:
        return f"SharedMap({dict(self.items())!r})"


_Change = tuple[int, Any, Any]
"""A key's hash, the key, and its value, or that it is to go."""


def _hash(key: str | bytes) -> int:
    return crc32(key.encode() if isinstance(key, str) else key)


def _merged(node: Tree, changes: list[_Change], bits: int) -> tuple[Tree, int]:
    """Return a tree with the changes, and by how many entries it is larger; `bits` of the hashes are used above it."""
    if type(node) is dict:
        leaf = dict(node)
        for _place, key, value in changes:
            if value is GONE:
                leaf.pop(key, None)
            else:
                leaf[key] = value
        return _grown(leaf, bits), len(leaf) - len(node)
    by_branch: dict[int, list[_Change]] = {}
    for change in changes:
        by_branch.setdefault(change[0] >> bits & (_BRANCHES - 1), []).append(change)
    branches, grown, shrinks = list(node), 0, False
    for branch, those in by_branch.items():
        branches[branch], more = _merged(branches[branch], those, bits + _BITS)
        grown += more
        shrinks |= more < 0
    return (_shrunk(branches) if shrinks else tuple(branches)), grown


def _grown(leaf: dict[Any, Any], bits: int) -> Tree:
    """Return the tree for so many entries."""
    if len(leaf) <= LEAF_ENTRIES_MAX or bits >= _HASH_BITS:
        return leaf
    branches: list[dict[Any, Any]] = [{} for _ in range(_BRANCHES)]
    for key, value in leaf.items():
        branches[_hash(key) >> bits & (_BRANCHES - 1)][key] = value
    return tuple(_grown(branch, bits + _BITS) for branch in branches)


def _shrunk(branches: list[Tree]) -> Tree:
    """Return a leaf where the branches have no more entries than one may have."""
    leaves = [branch for branch in branches if type(branch) is dict]
    if len(leaves) < _BRANCHES or sum(map(len, leaves)) > LEAF_ENTRIES_MAX:
        return tuple(branches)
    return {key: value for leaf in leaves for key, value in leaf.items()}


def _differences(left: Tree, right: Tree) -> Iterator[tuple[Any, Any, Any]]:
    if left is right:
        return
    if type(left) is tuple and type(right) is tuple:
        for one, other in zip(left, right, strict=True):
            yield from _differences(one, other)
        return
    before, after = dict(_entries(left)), dict(_entries(right))
    for key, value in before.items():
        if after.get(key) is not value:
            yield key, value, after.get(key)
    for key, value in after.items():
        if key not in before:
            yield key, None, value


def _entries(node: Tree) -> Iterator[tuple[Any, Any]]:
    if type(node) is dict:
        yield from node.items()
    else:
        for branch in node:
            yield from _entries(branch)
