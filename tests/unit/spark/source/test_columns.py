"""Columns for Spark: schemas it is told, schemas it tells, and what is decoded for them."""

import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DayTimeIntervalType,
    DoubleType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimeType,
)

from riverlog.spark.options import BadOption
from riverlog.spark.source.columns import Columns, columns, default_schema, field_names
from riverlog.spark.source.options import BadValues, JsonValues, source_options
from tests.support.spark import TYPES, struct


def schema_for(**options: str) -> str:
    return default_schema(source_options({"subscribe": "a"} | {k.replace("_", "."): v for k, v in options.items()}))


def test_the_usual_columns_are_those_of_sparks_kafka_source() -> None:
    usual = "`key` binary, `value` binary, `topic` string NOT NULL, `partition` int NOT NULL, "
    usual += "`offset` bigint NOT NULL, `timestamp` timestamp, `timestampType` int NOT NULL"
    assert schema_for() == usual
    assert schema_for(includeHeaders="true") == f"{usual}, `headers` array<struct<key: string, value: binary>>"
    assert schema_for(columns="offset,key") == "`offset` bigint NOT NULL, `key` binary"


def test_fields_of_values_come_behind_the_columns_of_records() -> None:
    written = schema_for(value_format="json", value_schema="order long, amount double", columns="offset")
    assert written == "`offset` bigint NOT NULL, order long, amount double"
    assert "value" not in schema_for(value_format="json", value_schema="order long")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": "offset,ofset"}, "there is no column 'ofset'; there are key, value,"),
        ({"columns": ","}, "at least one column is read"),
        ({"value_format": "json"}, "name fields of the values"),
        (
            {"value_format": "json", "value_schema": "Topic string"},
            "records have a column 'Topic', too; leave that out with",
        ),
    ],
)
def test_columns_that_cannot_be(options: dict[str, str], message: str) -> None:
    with pytest.raises(BadOption, match=message):
        schema_for(**options)


def test_names_of_fields_are_found_in_any_schema() -> None:
    assert field_names("a int, `b, c` string, d struct<e: int, f: array<int>>, g decimal(10, 2) not null") == [
        "a",
        "b, c",
        "d",
        "g",
    ]
    assert field_names("a:int,b :  string comment 'x'") == ["a", "b"]
    assert field_names("") == []


@pytest.mark.parametrize(
    ("ddl", "names"),
    [
        ("at\tTIMESTAMP,\n timestamp\n timestamp", ["at", "timestamp"]),
        ("a int COMMENT 'x, y', b int COMMENT \"it's, \\\" (\", c int", ["a", "b", "c"]),
        ("a int /* , x */, -- y int,\n b int", ["a", "b"]),
        ("`a``, b` int, `c\td`: struct<e:int,f:decimal(1,0)>, g int", ["a`, b", "c\td", "g"]),
    ],
)
def test_names_are_found_whatever_stands_around_them(ddl: str, names: list[str]) -> None:
    assert field_names(ddl) == names


def test_every_column_of_a_record_has_sparks_type() -> None:
    found = columns(struct(*TYPES), None)
    assert found.given == found.decoded
    assert found.of_records == list(TYPES)


def test_only_what_is_asked_for_is_decoded() -> None:
    found = columns(struct("offset", "key"), None)
    assert found.decoded.names == ["offset", "key"]
    json = JsonValues("", BadValues.FAIL, None)
    found = columns(struct("partition", order=LongType(), amount=DoubleType()), json)
    assert found.given.names == ["partition", "order", "amount"]
    assert found.decoded.names == ["partition", "value", "offset"]
    assert found.fields is not None
    assert found.fields.names == ["order", "amount"]
    assert found.of_records == ["partition"]
    dead = columns(struct(order=LongType()), JsonValues("", BadValues.DEAD_LETTER, "dead"))
    assert dead.decoded.names == ["value", "offset", "key", "headers"]


def test_a_field_may_have_the_name_of_a_column_that_is_not_read() -> None:
    found: Columns = columns(
        struct("offset", timestamp=StringType()), JsonValues("timestamp string", BadValues.FAIL, None)
    )
    assert found.fields is not None
    assert found.fields.names == ["timestamp"]
    assert found.of_records == ["offset"]


@pytest.mark.parametrize(
    "kind", [TimeType(), DayTimeIntervalType(), MapType(StringType(), LongType()), ArrayType(struct(at=TimeType()))]
)
def test_types_that_the_parser_does_not_know_are_told(kind: DataType) -> None:
    with pytest.raises(
        BadOption, match="fields of this type cannot be read from JSON; read it as a string and cast it"
    ):
        columns(struct(x=kind), JsonValues("x", BadValues.FAIL, None))


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (struct("offset", other=LongType()), "there is no such column; there are key, value"),
        (struct(value=StringType()), "schema='value string': the column is binary; read it as that and cast it"),
        (StructType([StructField("offset", LongType()), StructField("Offset", LongType())]), "a name comes twice"),
        (
            StructType([StructField("offset", LongType(), False), StructField("key", BinaryType(), False)]),
            "schema='key binary NOT NULL': a record may have no key; leave out NOT NULL",
        ),
    ],
)
def test_a_schema_that_cannot_be(schema: StructType, message: str) -> None:
    with pytest.raises(BadOption, match=message):
        columns(schema, None)


@pytest.mark.parametrize(
    ("kind", "bad", "message"),
    [
        (LongType(), BadValues.NULL, "value.schema='x int64 NOT NULL': with badValues=null it is null where"),
        (ArrayType(LongType(), False), BadValues.FAIL, "inside of a field nothing can be NOT NULL"),
        (StructType([StructField("y", LongType(), False)]), BadValues.FAIL, "inside of a field nothing can be NOT"),
    ],
)
def test_a_field_that_must_not_be_null_stands_at_the_top_and_is_never_null(
    kind: DataType, bad: BadValues, message: str
) -> None:
    with pytest.raises(BadOption, match=message):
        columns(StructType([StructField("x", kind, False)]), JsonValues("x", bad, None))
