"""The home that a Spark on this machine is started with."""

import sys
from pathlib import Path

import pyspark
import pytest

from riverlog.spark.sessions.spark_home import light_home

PACKAGE = Path(pyspark.__file__).parent


def test_workers_are_left_the_installed_package(tmp_path: Path) -> None:
    environment = {"XDG_CACHE_HOME": str(tmp_path)}
    with light_home(environment):
        home = Path(environment["SPARK_HOME"])
        assert (home / "bin" / "spark-submit").samefile(PACKAGE / "bin" / "spark-submit")
        assert (home / "jars").samefile(PACKAGE / "jars")
        assert not (home / "python").exists()
    assert "SPARK_HOME" not in environment
    with light_home(environment):
        assert environment["SPARK_HOME"] == str(home)
    assert list(home.parent.iterdir()) == [home]


@pytest.mark.parametrize("chosen", [{"SPARK_HOME": "/opt/spark"}, {"PYSPARK_PYTHON": "/opt/python"}])
def test_who_chose_a_spark_or_a_python_keeps_it(tmp_path: Path, chosen: dict[str, str]) -> None:
    environment = {"XDG_CACHE_HOME": str(tmp_path), **chosen}
    with light_home(environment):
        assert environment == {"XDG_CACHE_HOME": str(tmp_path), **chosen}
    assert environment == {"XDG_CACHE_HOME": str(tmp_path), **chosen}


def test_a_package_that_workers_would_not_find_stays_in_its_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("riverlog.spark.sessions.spark_home.site.getsitepackages", lambda: [str(tmp_path)])
    environment = {"XDG_CACHE_HOME": str(tmp_path), "PYSPARK_PYTHON": sys.executable}
    with light_home(environment):
        assert "SPARK_HOME" not in environment
