"""The columns of a scan, with those of its values."""

import pyarrow as pa
import pytest

from riverlog.arrow.columns import USUAL
from riverlog.arrow.table import BadValue, TableColumns
from riverlog.model.ids import TopicPartition

HERE = TopicPartition("orders", 3)
FIELDS = {"order": "int64", "paid": "bool"}


def decoded(columns: TableColumns, *values: bytes | None) -> pa.RecordBatch:
    cells = {"key": [b"k"] * len(values), "value": list(values), "offset": list(range(7, 7 + len(values)))}
    return pa.RecordBatch.from_arrays(
        [pa.array(cells[field.name], field.type) for field in columns.decoded], schema=columns.decoded
    )


def test_without_a_schema_columns_are_what_was_decoded() -> None:
    columns = TableColumns(None, None, "fail")
    assert tuple(columns.schema.names) == USUAL
    assert columns.decoded is columns.schema
    batch = decoded(TableColumns(["key"], None, "fail"), b"x")
    assert columns.of(batch, HERE) is batch


def test_with_a_schema_the_value_makes_way_for_its_columns() -> None:
    assert TableColumns(None, FIELDS, "fail").schema.names == [
        *(name for name in USUAL if name != "value"),
        "order",
        "paid",
    ]
    columns = TableColumns(["key"], FIELDS, "fail")
    assert columns.decoded.names == ["key", "value", "offset"]
    rows = columns.of(decoded(columns, b'{"order": 1, "paid": true}', None), HERE)
    assert rows.to_pylist() == [{"key": b"k", "order": 1, "paid": True}, {"key": b"k", "order": None, "paid": None}]


def test_the_value_stays_where_it_is_asked_for() -> None:
    columns = TableColumns(["value"], FIELDS, "fail")
    assert columns.of(decoded(columns, b'{"order": 1}'), HERE).to_pylist() == [
        {"value": b'{"order": 1}', "order": 1, "paid": None}
    ]


def test_bad_values_are_null_or_named() -> None:
    columns = TableColumns(["offset"], FIELDS, "null")
    batch = decoded(columns, b'{"order": 1}', b"{", b'{"order": 2}')
    assert [row["order"] for row in columns.of(batch, HERE).to_pylist()] == [1, None, 2]
    with pytest.raises(BadValue, match="offset 8 of orders-3 is not what the schema says: it is not one JSON object"):
        TableColumns(["offset"], FIELDS, "fail").of(batch, HERE)


def test_mistakes_are_refused() -> None:
    with pytest.raises(ValueError, match="both records and their values have 'key'"):
        TableColumns(["key"], {"key": "string"}, "fail")
    with pytest.raises(ValueError, match="choose 'fail' or 'null'"):
        TableColumns(None, None, "skip")  # type: ignore[arg-type]
