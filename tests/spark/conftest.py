"""One Spark for all tests of this folder: a JVM takes seconds to start."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from pyspark.sql import SparkSession

from riverlog.spark.sessions.java import provide_java
from tests.spark.stage import Crew
from tests.support.node import Node
from tests.support.relayed import RelayedNode

FOLDER: Final = Path(__file__).parent
TEST_SECONDS_MAX: Final = 300
"""For a test of this folder: the first one waits for the JVM, and for all that it does for the first time."""

QUICK: Final = (
    "test_source.py",
    "test_sink.py",
    "test_readme.py",
    "test_pipelines.py",
    "test_kills.py::test_a_driver_is_killed_at_every_step[node]",
)
"""What `make test` has time for; all others are slow, and run by `make spark`."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Allow the tests of this folder, and no others, more time; mark the slow ones."""
    for item in items:
        if item.path.is_relative_to(FOLDER):
            item.add_marker(pytest.mark.timeout(TEST_SECONDS_MAX))
            if not item.nodeid.rpartition("tests/spark/")[2].startswith(QUICK):
                item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Yield a local Spark whose Python workers are this Python."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    provide_java(os.environ)
    folder = tmp_path_factory.mktemp("spark")
    session = (
        SparkSession.builder.master("local[2]")
        .appName("riverlog-tests")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.local.dir", str(folder / "local"))
        .config("spark.driver.extraJavaOptions", f"-Dderby.system.home={folder}")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """Yield a node that tests share; whoever restarts one takes another."""
    with Node(tmp_path_factory.mktemp("node")) as node:
        yield node


@pytest.fixture
def relayed(tmp_path: Path) -> Iterator[RelayedNode]:
    """Yield a node behind relays, which may be killed."""
    with RelayedNode(tmp_path / "node") as relayed:
        yield relayed


@pytest.fixture(scope="session")
def crew(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crew]:
    """Yield drivers in processes of their own, which may be killed."""
    crew = Crew(tmp_path_factory.mktemp("crew"))
    yield crew
    crew.close()


@pytest.fixture
def checkpoint(tmp_path: Path) -> str:
    """Return a place for a query's checkpoint."""
    return str(tmp_path / "checkpoint")
