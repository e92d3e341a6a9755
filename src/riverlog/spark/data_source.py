"""The format `riverlog`: what Spark asks for when a program says `spark.read.format("riverlog")`.

Spark makes one of these in a new process for each step of planning. So nothing is connected here, and what a step does
not need is not imported for it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter
    from pyspark.sql.types import StructType

SINK: Final = "riverlog.spark.sink"


class RiverlogDataSource(DataSource):
    """Topics of any Kafka-compatible cluster, to read and to write, in batches and in streams."""

    @classmethod
    def name(cls) -> str:
        """Give the name of the format."""
        return "riverlog"

    def writer(self, schema: "StructType", overwrite: bool) -> "DataSourceArrowWriter":
        """Write a DataFrame."""
        writer: DataSourceArrowWriter = import_module(SINK).batch_writer(self.options, schema, overwrite=overwrite)
        return writer

    def streamWriter(self, schema: "StructType", overwrite: bool) -> "DataSourceStreamArrowWriter":  # noqa: N802
        """Write the batches of a streaming query."""
        writer: DataSourceStreamArrowWriter = import_module(SINK).stream_writer(
            self.options, schema, overwrite=overwrite
        )
        return writer
