"""Python functions over rows, run by Spark's Python workers in batches of Arrow.

A function of one row costs a Python call per row; one of a whole batch costs a call per ten thousand. Both are pickled
and run on executors, again whenever a batch is run again: what they do besides giving rows may happen twice.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

Row = dict[str, Any]


class EachRow:
    """Turns batches into batches by a function from a row to rows."""

    def __init__(self, function: Callable[[Row], Iterable[Mapping[str, Any]]], schema: "pa.Schema") -> None:
        self._function = function
        self._schema = schema

    def __call__(self, batches: Iterator["pa.RecordBatch"]) -> Iterator["pa.RecordBatch"]:
        import pyarrow as pa

        names = frozenset(self._schema.names)
        for batch in batches:
            made = [self._checked(row, names) for given in batch.to_pylist() for row in self._function(given)]
            yield pa.RecordBatch.from_pylist(made, schema=self._schema)

    @staticmethod
    def _checked(row: Any, names: frozenset[str]) -> Row:
        if not isinstance(row, Mapping):
            raise TypeError(f"a mapped row is a dict of columns, not {type(row).__name__}; return {{'name': value}}")
        if not names.issuperset(row):
            extra = ", ".join(sorted(set(row) - names))
            raise ValueError(f"the schema has no column {extra}; name it there, or leave it out of the row")
        return dict(row)


class EachBatch:
    """Turns batches into batches by a function of a whole one."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            yield self._function(batch)


def one(function: Callable[[Row], Mapping[str, Any]]) -> Callable[[Row], Iterable[Mapping[str, Any]]]:
    """Wrap a function that returns one row into one that returns a list of them."""

    def mapped(row: Row) -> Iterable[Mapping[str, Any]]:
        return (function(row),)

    return mapped
