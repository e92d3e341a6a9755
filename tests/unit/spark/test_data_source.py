"""The data source as Spark finds it."""

from importlib import import_module
from pkgutil import iter_modules

from riverlog.spark.data_source import RiverlogDataSource


def test_spark_finds_the_format_by_itself() -> None:
    names = [module.name for module in iter_modules() if module.name.startswith("pyspark_")]
    found = [import_module(name).DefaultSource for name in names]
    assert [source.name() for source in found if issubclass(source, RiverlogDataSource)] == ["riverlog"]
