"""The format `riverlog`: what Spark asks for when a program says `spark.read.format("riverlog")`.

Spark makes one of these in a new process for each step of planning. So nothing is connected here, and what a step does
not need is not imported for it.
"""

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

from riverlog.spark.plain_errors import plainly
from riverlog.spark.worker.tuning import tune

if TYPE_CHECKING:
    from pyspark.sql.datasource import (
        DataSourceArrowWriter,
        DataSourceReader,
        DataSourceStreamArrowWriter,
        DataSourceStreamReader,
    )
    from pyspark.sql.types import StructType


class RiverlogDataSource(DataSource):
    """Topics of any Kafka-compatible cluster, to read and to write, in batches and in streams."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "riverlog"

    @plainly
    def schema(self) -> "str | StructType":
        """Return the columns where the program names none."""
        tune()
        from riverlog.spark.source.columns import default_schema
        from riverlog.spark.source.options import source_options

        return default_schema(source_options(self.options))

    @plainly
    def reader(self, schema: "StructType") -> "DataSourceReader":
        """Read what there is."""
        tune()
        from riverlog.spark.source.batch_reader import BatchReader
        from riverlog.spark.source.options import batch_options

        return BatchReader(batch_options(self.options), schema)

    @plainly
    def streamReader(self, schema: "StructType") -> "DataSourceStreamReader":  # noqa: N802 - Spark's name
        """Read on and on."""
        tune()
        from riverlog.spark.source.options import stream_options
        from riverlog.spark.source.stream_reader import StreamReader

        return StreamReader(stream_options(self.options), schema)

    @plainly
    def writer(self, schema: "StructType", overwrite: bool) -> "DataSourceArrowWriter":
        """Write a DataFrame."""
        tune()
        from riverlog.spark.sink.writers import batch_writer

        return batch_writer(self.options, schema, overwrite=overwrite)

    @plainly
    def streamWriter(self, schema: "StructType", overwrite: bool) -> "DataSourceStreamArrowWriter":  # noqa: N802
        """Write the batches of a streaming query."""
        tune()
        from riverlog.spark.sink.writers import stream_writer

        return stream_writer(self.options, schema, overwrite=overwrite)
