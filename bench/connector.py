"""Spark's own Kafka connector: its archives fetched once, and local Spark sessions that have it.

For Spark 4.3 there is none in Maven's repository; that for 4.2 runs on it. The token provider of the connector's own
version is not there either, so that an older one stands in: it is asked for nothing without Kerberos.
"""

import contextlib
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench import jars
from bench.cache import compiled
from bench.jars import Artifact, Dependency
from bench.trial import NotRun

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VERSION: Final = "4.2.0"
ARCHIVES: Final = (
    Dependency(Artifact("org.apache.spark", "spark-sql-kafka-0-10_2.13"), VERSION),
    Dependency(Artifact("org.apache.spark", "spark-token-provider-kafka-0-10_2.13"), "4.1.0-preview1"),
    Dependency(Artifact("org.apache.kafka", "kafka-clients"), "3.9.2"),
    Dependency(Artifact("org.apache.commons", "commons-pool2"), "2.13.1"),
)
"""All that the connector needs besides what comes with Spark."""
CORES: Final = 2
MEMORY: Final = "2g"
QUERY_SETTINGS: Final = "spark.sql."
"""How settings begin that a query may have for itself; others are those of all of Spark."""


def archives(cache: Path) -> list[Path]:
    """Return the connector's archives, fetching those that are not in the cache; raise NotRun where that cannot be."""
    folder = cache / f"spark-connector-{VERSION}"
    try:
        repository = jars.Repository(jars.repository_url(), folder)
        return [repository.archive(each) for each in ARCHIVES]
    except OSError as error:
        raise NotRun(f"the archives of Spark's connector cannot be fetched: {error}") from error


@contextlib.contextmanager
def session(cache: Path, folder: Path, settings: Mapping[str, str] | None = None) -> "Iterator[SparkSession]":
    """Start a local Spark that has the connector, with its files in `folder`, and stop it with its virtual machine."""
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        raise NotRun("no Java is installed")
    try:
        from pyspark import SparkContext
        from pyspark.sql import SparkSession
    except ImportError:
        raise NotRun("no Spark is installed beside this Python; run `make setup`") from None

    logging.getLogger("py4j").setLevel(logging.ERROR)
    os.environ["PYSPARK_PYTHON"] = sys.executable  # workers would take whatever python3 is on the path
    os.environ |= compiled(cache)
    builder = SparkSession.builder.master(f"local[{CORES}]").appName("riverlog")
    chosen = {
        "spark.jars": ",".join(map(str, archives(cache))),
        "spark.driver.memory": MEMORY,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": str(folder),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(CORES),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        **(settings or {}),
    }
    for name, value in chosen.items():
        builder = builder.config(name, value)
    from riverlog.spark.sessions.spark_home import light_home

    with light_home(os.environ):  # as a session of riverlog has it; the connector has no Python
        spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    try:
        yield spark
    finally:
        gateway, process = spark.sparkContext._gateway, virtual_machine(spark)
        assert gateway is not None
        spark.stop()
        gateway.shutdown()
        SparkContext._gateway = SparkContext._jvm = None  # the next session starts another one
        process.communicate()  # it lives as long as somebody might write to it


def virtual_machine(spark: "SparkSession") -> "subprocess.Popen[bytes]":
    """Return the process that a session has started."""
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    process: subprocess.Popen[bytes] = gateway.proc
    return process
