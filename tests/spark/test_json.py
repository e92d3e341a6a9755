"""Values that are JSON: what the source reads is what Spark's own `from_json` reads, and what `to_json` has written."""

import re
from pathlib import Path
from random import Random
from typing import Any, Final
from uuid import uuid4

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import _parse_datatype_string

from riverlog.arrow.json.times import zone_of
from riverlog.arrow.json.values import typed
from tests.spark.json_cases import REFUSED, ZONES, cases, random_cases
from tests.support.node import Node
from tests.support.spark import create, send

PAGE: Final = Path(__file__).parents[2] / "docs" / "spark.md"
REFUSED_CASES: Final = [case for each in REFUSED.values() for case in each]
ZONE: Final = "spark.sql.session.timeZone"


@pytest.mark.parametrize("zone", ZONES)
def test_what_the_source_reads_is_what_from_json_reads(spark: SparkSession, zone: str) -> None:
    given = [*cases(), *random_cases(Random(zone), 3_000)]
    for (ddl, value), expected, (found, reason) in zip(
        given, from_json(spark, zone, given), read(spark, zone, given), strict=True
    ):
        if reason is None:
            assert str(found) == str(expected), f"{value} as {ddl} in {zone}"


def test_what_the_source_refuses_and_from_json_reads_is_known(spark: SparkSession) -> None:
    given = [*cases(), *REFUSED_CASES]
    expected, found = from_json(spark, ZONES[0], given), read(spark, ZONES[0], given)
    differing = [
        case
        for case, there, (_, reason) in zip(given, expected, found, strict=True)
        if reason is not None and there is not None and there["a"] is not None
    ]
    assert differing == REFUSED_CASES


def test_the_differences_are_documented() -> None:
    rows = re.findall(r"^\| (.+?) \| bad \|$", PAGE.read_text(), re.MULTILINE)
    assert rows == list(REFUSED)


def test_what_to_json_writes_is_read_back(spark: SparkSession, node: Node) -> None:
    topic = f"json-{uuid4()}"
    create(node.bootstrap, topic)
    fields = (
        "double double, single float, bytes binary, at timestamp, local timestamp_ntz, day date, amount decimal(20,5), "
        "long bigint, text string, inner struct<list: array<double>>"
    )
    written = spark.sql(
        "SELECT double('NaN') double, float('-Infinity') single, X'6162FF' bytes, "
        "timestamp'2024-07-01 10:00:00.123' at, timestamp_ntz'2024-07-01 10:00:00.123' local, date'2024-01-01' day, "
        "cast(1.5 as decimal(20,5)) amount, 9223372036854775807 long, 'a\tb\"NaN\"' text, "
        "named_struct('list', array(double('Infinity'), 1e300, null)) inner"
    )
    before = spark.conf.get(ZONE)
    spark.conf.set(ZONE, "Europe/Berlin")
    try:
        where = {"kafka.bootstrap.servers": node.bootstrap}
        rows = written.select(sf.to_json(sf.struct("*"), {"ignoreNullFields": "false"}).alias("value"))
        rows.write.format("riverlog").options(**where, topic=topic).mode("append").save()
        read = {"subscribe": topic, "value.format": "json", "value.schema": fields, "columns": ""}
        found = spark.read.format("riverlog").options(**where, **read).load()
        assert str(found.collect()) == str(written.collect())
    finally:
        spark.conf.set(ZONE, before)


def test_times_without_a_zone_are_of_the_session_also_where_none_is_set(spark: SparkSession, node: Node) -> None:
    topic = f"json-{uuid4()}"
    create(node.bootstrap, topic)
    send(node.bootstrap, topic, [b'{"at": "2024-07-01T10:00:00"}'])
    options = {"kafka.bootstrap.servers": node.bootstrap, "subscribe": topic, "value.format": "json", "columns": "key"}
    rows = spark.read.format("riverlog").options(**options).option("value.schema", "at\tTIMESTAMP").load()
    micros = rows.select(sf.unix_micros("at"))
    before = spark.conf.get(ZONE)
    clock: Any = spark._jvm
    assert clock is not None
    of_java = clock.java.util.TimeZone.getDefault()
    try:
        for zone, hour in (("Europe/Berlin", 8), ("America/New_York", 14)):
            spark.conf.set(ZONE, zone)
            assert micros.collect()[0][0] == (19_905 * 24 + hour) * 3_600_000_000
        spark.conf.unset(ZONE)
        clock.java.util.TimeZone.setDefault(clock.java.util.TimeZone.getTimeZone("Asia/Tokyo"))
        assert micros.collect()[0][0] == (19_905 * 24 + 1) * 3_600_000_000
    finally:
        clock.java.util.TimeZone.setDefault(of_java)
        spark.conf.set(ZONE, before)


def test_short_names_of_zones_are_those_of_java(spark: SparkSession) -> None:
    java: Any = spark._jvm
    assert java is not None
    names = dict(java.java.time.ZoneId.SHORT_IDS)
    assert len(names) > 20
    for name, meant in names.items():
        assert zone_of(name) == zone_of(meant), name


def from_json(spark: SparkSession, zone: str, given: list[tuple[str, str]]) -> list[Any]:
    """Read all values by Spark, those of a schema in one column."""
    schemas = list(dict.fromkeys(ddl for ddl, _ in given))
    before = spark.conf.get(ZONE)
    spark.conf.set(ZONE, zone)
    try:
        rows = spark.createDataFrame(
            [(place, schemas.index(ddl), value) for place, (ddl, value) in enumerate(given)],
            "place int, which int, value string",
        )
        columns = [sf.when(sf.col("which") == which, sf.from_json("value", ddl)) for which, ddl in enumerate(schemas)]
        table = rows.coalesce(1).select("place", *(column.alias(f"c{n}") for n, column in enumerate(columns))).toArrow()
    finally:
        spark.conf.set(ZONE, before)
    assert table["place"].to_pylist() == list(range(len(given)))
    found = [comparable(table[f"c{which}"].combine_chunks()) for which in range(len(schemas))]
    return [found[schemas.index(ddl)][place] for place, (ddl, _) in enumerate(given)]


def read(spark: SparkSession, zone: str, given: list[tuple[str, str]]) -> list[tuple[Any, str | None]]:
    """Read all values as a task of the source does: each with what is wrong with it."""
    found: list[tuple[Any, str | None]] = [(None, None)] * len(given)
    for ddl in dict.fromkeys(ddl for ddl, _ in given):
        places = [place for place, case in enumerate(given) if case[0] == ddl]
        schema = to_arrow_schema(_parse_datatype_string(ddl), timezone="UTC")
        values = typed(pa.array([given[place][1].encode() for place in places], pa.binary()), schema, zone_of(zone))
        for row, (place, value) in enumerate(zip(places, comparable(values.values), strict=True)):
            found[place] = (value, values.bad.get(row))
    return found


def comparable(values: Any) -> list[Any]:
    """Return cells as Python has them; times and dates as numbers, for Python has none beyond the year 9999."""
    return values.cast(_comparable(values.type)).to_pylist()


def _comparable(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind):
        return pa.int64()
    if pa.types.is_date(kind):
        return pa.int32()
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _comparable(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(_comparable(kind.value_type))
    return kind
