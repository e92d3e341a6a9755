"""Schemas as programs write them, `customer string, amount double` or a StructType, in either form."""

from typing import TYPE_CHECKING

from riverlog.pipelines.mistakes import WrongStep, told_plainly

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


def struct_of(schema: "str | StructType") -> "StructType":
    """Return a schema as Spark has it; WrongStep where it is none."""
    from pyspark.sql.types import StructType

    if not isinstance(schema, str):
        return _checked(schema)
    with told_plainly():
        struct = StructType.fromDDL(schema)
    assert isinstance(struct, StructType), "a list of columns is a struct"
    return struct


def ddl_of(schema: "str | StructType") -> str:
    """Return a schema as text."""
    return schema if isinstance(schema, str) else _checked(schema).toDDL()


def _checked(schema: object) -> "StructType":
    from pyspark.sql.types import StructType

    if isinstance(schema, StructType):
        return schema
    raise WrongStep(f"a schema is text, as in 'customer string, amount double', or a StructType, not {schema!r}")
