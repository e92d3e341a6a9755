"""Schemas as programs write them, `customer string, amount double` or a StructType, in either form."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


def struct_of(schema: "str | StructType") -> "StructType":
    """Return a schema as Spark has it."""
    from pyspark.sql.types import StructType

    struct = StructType.fromDDL(schema) if isinstance(schema, str) else schema
    assert isinstance(struct, StructType), "a list of columns is a struct"
    return struct


def ddl_of(schema: "str | StructType") -> str:
    """Return a schema as text."""
    return schema if isinstance(schema, str) else schema.toDDL()
