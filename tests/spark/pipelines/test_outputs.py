"""What is written: records of results, of rows that are records, and of late rows."""

from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as sql

from riverlog.pipelines.outputs import TopicTarget, is_record, records
from riverlog.pipelines.rows import LATE


def test_a_result_is_json_under_its_keys(spark: SparkSession) -> None:
    rows = spark.createDataFrame([("ann", 5)], "customer string, total int")
    (record,) = records(rows, TopicTarget("revenue"), keys=("customer",), side_topic=None).collect()
    assert record.asDict() == {
        "topic": "revenue",
        "key": '{"customer":"ann"}',
        "value": '{"customer":"ann","total":5}',
    }


def test_key_and_value_can_be_chosen(spark: SparkSession) -> None:
    rows = spark.createDataFrame([("ann", 5)], "customer string, total int")
    target = TopicTarget("revenue", key="customer", value=sql.col("total").cast("string"))
    (record,) = records(rows, target, keys=(), side_topic=None).collect()
    assert (record.key, record.value) == ("ann", "5")


def test_rows_that_are_records_are_written_as_they_are(spark: SparkSession) -> None:
    assert is_record(["key", "value", "offset"])
    assert not is_record(["key", "value", "customer"])
    assert not is_record(["key"])
    rows = spark.createDataFrame([(b"k", b"v", 7)], "key binary, value binary, offset long")
    (record,) = records(rows, TopicTarget("copy"), keys=(), side_topic=None).collect()
    assert record == Row(topic="copy", key=bytearray(b"k"), value=bytearray(b"v"))


def test_late_rows_become_records_of_their_topic(spark: SparkSession) -> None:
    schema = f"total int, {LATE} array<struct<key: string, value: string>>"
    rows = spark.createDataFrame([(5, None), (None, [("k", "late"), ("k", "late")])], schema)
    found = records(rows, TopicTarget("results"), keys=("total",), side_topic="strays").collect()
    assert sorted(map(tuple, found)) == [
        ("results", '{"total":5}', '{"total":5}'),
        ("strays", "k", "late"),
        ("strays", "k", "late"),
    ]
