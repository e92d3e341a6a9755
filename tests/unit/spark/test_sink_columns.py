"""Which DataFrames become records; what is wrong with the others is said in one sentence."""

import pytest
from pyspark.sql import types

from riverlog.spark.sink_columns import BadColumn, check_columns

STRING, BINARY, INT, LONG = types.StringType(), types.BinaryType(), types.IntegerType(), types.LongType()
PAIR = types.StructType().add("key", STRING).add("value", BINARY)
HEADERS = types.ArrayType(PAIR)


def schema(**columns: types.DataType) -> types.StructType:
    return types.StructType([types.StructField(name, kind) for name, kind in columns.items()])


@pytest.mark.parametrize(
    "columns",
    [
        {},
        {"value": BINARY, "key": BINARY, "partition": INT, "timestamp": types.TimestampType(), "headers": HEADERS},
        {"key": STRING, "timestamp": types.TimestampNTZType(), "offset": LONG, "timestampType": INT},
        {"value": types.NullType(), "key": types.NullType()},
    ],
)
def test_the_columns_of_sparks_own_sink_and_a_time(columns: dict[str, types.DataType]) -> None:
    check_columns(schema(**{"value": STRING, "topic": STRING, **columns}), None)


def test_the_option_names_the_topic_of_all_rows() -> None:
    check_columns(schema(value=STRING), "orders")
    check_columns(schema(value=STRING, topic=INT), "orders")


def test_what_must_be_there() -> None:
    with pytest.raises(BadColumn, match='there is no column "value" among key, topic'):
        check_columns(schema(key=STRING, topic=STRING), None)
    with pytest.raises(BadColumn, match='set the option "topic", or add a column "topic"'):
        check_columns(schema(value=STRING), None)


@pytest.mark.parametrize(
    ("name", "kind", "problem"),
    [
        ("value", INT, "type int, and must be string or binary"),
        ("key", LONG, "type bigint, and must be string or binary"),
        ("topic", BINARY, "type binary, and must be string"),
        ("partition", LONG, "type bigint, and must be int"),
        ("timestamp", types.DateType(), "type date, and must be timestamp"),
        ("headers", types.ArrayType(STRING), "must be array<struct<key:string,value:binary>>"),
        (
            "headers",
            types.ArrayType(schema(key=STRING, value=STRING)),
            "must be array<struct<key:string,value:binary>>",
        ),
        ("headers", PAIR, "must be array<struct<key:string,value:binary>>"),
    ],
)
def test_what_cannot_be_written_is_refused(name: str, kind: types.DataType, problem: str) -> None:
    with pytest.raises(BadColumn) as refused:
        check_columns(schema(**{"value": STRING, "topic": STRING, name: kind}), None)
    assert f'the column "{name}"' in str(refused.value)
    assert problem in str(refused.value)
