"""Spark's side without Spark: schemas and options as a query has them, and parts read as a task reads them."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from riverlog import Admin, Producer
from riverlog.spark.source.batch_reader import BatchReader
from riverlog.spark.source.stream_reader import StreamReader

TYPES: Final[dict[str, DataType]] = {
    "key": BinaryType(),
    "value": BinaryType(),
    "topic": StringType(),
    "partition": IntegerType(),
    "offset": LongType(),
    "timestamp": TimestampType(),
    "timestampType": IntegerType(),
    "headers": ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())])),
}


def struct(*names: str, **fields: DataType) -> StructType:
    """Make a schema of columns of records, and of other fields."""
    chosen = {name: TYPES[name] for name in names} | fields
    return StructType([StructField(name, kind) for name, kind in chosen.items()])


def rows(reader: BatchReader | StreamReader, parts: Sequence[Any]) -> list[dict[str, Any]]:
    """Read parts one after another, as tasks do."""
    return [row for part in parts for batch in reader.read(part) for row in batch.to_pylist()]


def create(bootstrap: str, topic: str, *, partitions: int = 1, configs: Mapping[str, str] | None = None) -> None:
    """Create a topic."""

    async def create() -> None:
        async with Admin(bootstrap) as admin:
            await admin.create_topic(topic, partitions=partitions, configs=configs)

    asyncio.run(create())


def delete(bootstrap: str, topic: str) -> None:
    """Delete a topic."""

    async def delete() -> None:
        async with Admin(bootstrap) as admin:
            await admin.delete_topics(topic)

    asyncio.run(delete())


def send(bootstrap: str, topic: str, values: Sequence[bytes | None], *, partition: int = 0, **more: Any) -> None:
    """Write values to a partition, in one batch or a few; `more` is the same for each record."""

    async def send() -> None:
        async with Producer(bootstrap, linger_ms=5) as producer:
            for value in values:
                producer.send_soon(topic, value, partition=partition, **more)

    asyncio.run(send())
