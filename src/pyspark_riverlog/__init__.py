"""What Spark finds by itself: the data source behind `format("riverlog")`. No jar, and nothing to register."""

from riverlog.spark.data_source import RiverlogDataSource


class DefaultSource(RiverlogDataSource):
    """Found by its name: Spark imports every top-level module `pyspark_…` and takes the class of this name."""
