"""The data source as Spark finds it."""

import subprocess
import sys
from importlib import import_module
from pkgutil import iter_modules

from riverlog.spark.data_source import RiverlogDataSource


def test_spark_finds_the_format_by_itself() -> None:
    names = [module.name for module in iter_modules() if module.name.startswith("pyspark_")]
    found = [import_module(name).DefaultSource for name in names]
    assert [source.name() for source in found if issubclass(source, RiverlogDataSource)] == ["riverlog"]


STEPS = """
import sys
from pyspark_riverlog import DefaultSource
from pyspark.sql.types import LongType, StructType
source = DefaultSource({"subscribe": "orders", "startingOffsets": "earliest"})
source.schema()
source.streamReader(StructType().add("offset", LongType()))
print([name for name in sys.modules if name.startswith("riverlog.client.")])
"""


def test_steps_that_ask_no_cluster_load_no_client() -> None:
    """Spark takes them in processes of their own, and a query waits for each to start."""
    done = subprocess.run([sys.executable, "-c", STEPS], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[]\n", "")
