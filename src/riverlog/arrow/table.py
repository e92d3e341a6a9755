"""The columns of a scan: those of the record, and behind them those of its value where a schema says what is in it.

A value that is not what the schema says ends the scan (`fail`), or has null in all of its columns (`null`).
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, Literal

from riverlog.arrow.columns import USUAL, schema_of
from riverlog.model.ids import TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa

    from riverlog.arrow.json.values import Fields

BadValues = Literal["fail", "null"]
_BAD_VALUES: Final = ("fail", "null")


class BadValue(ValueError):
    """A record's value is not what the schema says; `partition` and `offset` name it."""

    def __init__(self, partition: TopicPartition, offset: int, reason: str) -> None:
        super().__init__(
            f"the value at offset {offset} of {partition} is not what the schema says: {reason}; "
            'with bad_values="null" such values are null'
        )
        self.partition = partition
        self.offset = offset


class TableColumns:
    """What is decoded of records, and what a table has in the end."""

    def __init__(
        self, columns: Iterable[str] | None, fields: "pa.Schema | Fields | None", bad_values: BadValues
    ) -> None:
        """Choose columns; with `fields` and no choice, all usual ones but the value itself."""
        if bad_values not in _BAD_VALUES:
            raise ValueError(f"bad_values={bad_values!r}: choose {' or '.join(map(repr, _BAD_VALUES))}")
        usual = USUAL if fields is None else [name for name in USUAL if name != "value"]
        self.schema = self.decoded = record = schema_of(usual if columns is None else columns)
        self._fields: pa.Schema | None = None
        self._may_be_bad = bad_values == "null"
        if fields is None:
            return
        from riverlog.arrow.json.values import json_schema

        self._fields = json_schema(fields)
        for name in self._fields.names:
            if name in record.names:
                raise ValueError(f"both records and their values have {name!r}; leave it out of columns")
        for field in self._fields:
            self.schema = self.schema.append(field)
        self.decoded = schema_of(dict.fromkeys([*record.names, "value", "offset"]))

    def of(self, decoded: "pa.RecordBatch", partition: TopicPartition) -> "pa.RecordBatch":
        """Return the table's columns of decoded ones; raise BadValue where the reader wants that."""
        if self._fields is None:
            return decoded
        from riverlog.arrow.json.values import typed

        found = typed(decoded["value"], self._fields)
        if found.bad and not self._may_be_bad:
            row, reason = next(iter(found.bad.items()))
            raise BadValue(partition, decoded["offset"][row].as_py(), reason)
        by_name: dict[str, Any] = dict(zip(self._fields.names, found.values.flatten(), strict=True))
        arrays = [by_name[name] if name in by_name else decoded[name] for name in self.schema.names]
        return type(decoded).from_arrays(arrays, schema=self.schema)
