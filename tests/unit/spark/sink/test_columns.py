"""Which DataFrames become records; what is wrong with the others is said in one sentence."""

import pyarrow as pa
import pytest
from pyspark.sql import types

from riverlog.spark.sink.columns import BadColumn, record_columns, renamed

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
        {"key": STRING, "timestamp": types.TimestampType(), "offset": LONG, "timestampType": INT},
        {"value": types.NullType(), "key": types.NullType()},
    ],
)
def test_the_columns_of_sparks_own_sink_and_a_time(columns: dict[str, types.DataType]) -> None:
    record_columns(schema(**{"value": STRING, "topic": STRING, **columns}), None)


def test_the_option_names_the_topic_of_all_rows() -> None:
    record_columns(schema(value=STRING), "orders")
    record_columns(schema(value=STRING, topic=INT), "orders")


def test_names_may_be_written_in_any_case() -> None:
    names = record_columns(schema(Key=STRING, VALUE=STRING, other=INT, Topic=STRING), None)
    assert names == {"value": "VALUE", "key": "Key", "topic": "Topic"}
    frame = pa.record_batch({"Key": ["k"], "VALUE": ["v"], "other": [1], "Topic": ["t"]})
    assert renamed(frame, names).to_pylist() == [{"value": "v", "key": "k", "topic": "t"}]
    exact = record_columns(schema(value=STRING, VALUE=INT), "orders")
    assert exact == {"value": "value"}
    assert renamed(frame, {"other": "other"}) is frame
    with pytest.raises(BadColumn, match='the columns Key and KEY differ in their case alone; call one of them "key"'):
        record_columns(schema(value=STRING, Key=STRING, KEY=STRING), "orders")


def test_what_must_be_there() -> None:
    with pytest.raises(BadColumn, match='there is no column "value" among key, topic'):
        record_columns(schema(key=STRING, topic=STRING), None)
    with pytest.raises(BadColumn, match='set the option "topic", or add a column "topic"'):
        record_columns(schema(value=STRING), None)


@pytest.mark.parametrize(
    ("name", "kind", "problem"),
    [
        ("value", INT, "type int, and must be string or binary"),
        ("key", LONG, "type bigint, and must be string or binary"),
        ("topic", BINARY, "type binary, and must be string"),
        ("partition", LONG, "type bigint, and must be int"),
        ("timestamp", types.DateType(), "type date, and must be timestamp"),
        ("timestamp", types.TimestampNTZType(), "must be timestamp, which one without a zone becomes by a cast"),
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
        record_columns(schema(**{"value": STRING, "topic": STRING, name: kind}), None)
    assert f'the column "{name}"' in str(refused.value)
    assert problem in str(refused.value)
