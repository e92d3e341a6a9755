"""The columns are those of Spark's Kafka source."""

import pyarrow as pa
import pytest

from riverlog.arrow.columns import TYPES, USUAL, schema_of


def test_names_and_types_are_those_that_spark_accepts() -> None:
    element = pa.field("element", pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))
    assert schema_of(TYPES) == pa.schema(
        [
            ("key", pa.binary()),
            ("value", pa.binary()),
            ("topic", pa.string()),
            ("partition", pa.int32()),
            ("offset", pa.int64()),
            ("timestamp", pa.timestamp("us", tz="UTC")),
            ("timestampType", pa.int32()),
            ("headers", pa.list_(element)),
        ]
    )
    assert [*USUAL, "headers"] == list(TYPES)


def test_the_order_is_the_readers() -> None:
    assert schema_of(["value", "key"]).names == ["value", "key"]


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [(["valeu"], "no column 'valeu'; there are key, value"), (["key", "key"], "each once: "), ([], "none were named")],
)
def test_columns_that_do_not_exist_are_refused(columns: list[str], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        schema_of(columns)
