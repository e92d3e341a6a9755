"""Schemas as text and as Spark has them."""

from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StringType, StructField, StructType

from riverlog.pipelines.schemas import ddl_of, struct_of

STRUCT = StructType([StructField("customer", StringType()), StructField("orders", LongType())])


def test_a_schema_is_the_same_in_either_form(spark: SparkSession) -> None:
    assert struct_of("customer string, orders long") == STRUCT
    assert struct_of(STRUCT) is STRUCT
    assert ddl_of("customer string") == "customer string"
    assert struct_of(ddl_of(STRUCT)) == STRUCT
