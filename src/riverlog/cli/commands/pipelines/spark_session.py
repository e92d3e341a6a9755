"""What commands that start Spark share: options, a session or a sentence why there is none, a file's pipelines."""

import os
import re
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from riverlog.cli.client_settings import ClientSettings, addresses
from riverlog.cli.cluster_options import ClusterOptions
from riverlog.cli.terminal.exits import CommandError, ExitCode, usage_error
from riverlog.cli.terminal.expressions import pairs
from riverlog.cli.terminal.options import Argument

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from riverlog.pipelines import Pipeline

_REACHED_MS: Final = "5000"
_CAUSE: Final = "Caused by: "
_MASTER_SECONDS: Final = 5.0
"""For one attempt to connect."""
_MASTER_SECONDS_MAX: Final = 60.0
_MASTER_PAUSE_SECONDS: Final = 0.5
_MASTER: Final = re.compile(r"local(-cluster)?(\[(\d+|\*)(,\d+)*\])?|yarn|k8s://.+|spark://[^,/]+:\d+(,[^,/]+:\d+)*")
_QUERIES: Final = "org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution"

file_argument: Final = click.argument(
    "file",
    cls=Argument,
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="A Python file that defines pipelines.",
)
store_beside_option: Final = click.option(
    "--store",
    "address",
    envvar="RIVERLOG_CHECKPOINTS",
    metavar="HOST:PORT",
    help="The node's checkpoint store. Without it: port 9870 of the first broker.",
)


def spark_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--master` and `--conf` to a command."""
    master = click.option(
        "--master",
        metavar="URL",
        help="Where Spark runs: local[2], spark://host:7077, yarn. Without it: all cores here.",
    )
    conf = click.option("--conf", multiple=True, metavar="NAME=VALUE", help="A setting of Spark.")
    return master(conf(command))


@contextmanager
def session(
    name: str,
    *,
    master: str | None,
    conf: tuple[str, ...],
    bootstrap: str | None = None,
    store: str | None = None,
    folder: Path | None = None,
) -> "Iterator[SparkSession]":
    """Start Spark, and stop it in the end. `folder` is where modules beside a file are found, also by the workers."""
    given = {"spark.ui.showConsoleProgress": "false", **pairs(conf, option="--conf")}  # it would draw over our lines
    need_spark()
    check_master(master or os.environ.get("MASTER") or "local[*]")
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    from riverlog.spark import AnotherSession, NoJava
    from riverlog.spark import session as make
    from riverlog.spark.error_words import reason

    if folder is not None:
        known = os.environ.get("PYTHONPATH")
        os.environ["PYTHONPATH"] = str(folder.resolve()) + (f"{os.pathsep}{known}" if known else "")
    if sys.stderr.isatty():
        print("Spark starts, which takes some seconds", file=sys.stderr, flush=True)
    try:
        with _deaf_children():
            spark = make(name, master=master, conf=given, bootstrap=bootstrap, checkpoints=store)
    except (NoJava, AnotherSession) as problem:
        raise CommandError(str(problem)) from problem
    except (PySparkException, Py4JError) as problem:
        raise CommandError(f"Spark did not start: {reason(_first_cause(str(problem)))}") from problem
    except ValueError as problem:
        raise usage_error(str(problem)) from problem
    if "spark.driver.extraJavaOptions" not in given:
        _silence_failures(spark)
    try:
        yield spark
    finally:
        spark.stop()


def _first_cause(said: str) -> str:
    """Return what went wrong first: Java wraps it, and Spark's own words for that name a class."""
    causes = [line for line in said.splitlines() if line.startswith(_CAUSE)]
    return causes[-1].removeprefix(_CAUSE) if causes else said


def _silence_failures(spark: "SparkSession") -> None:
    """Keep Java from logging with which trace a query has failed: the commands say why, in one line."""
    jvm: Any = spark.sparkContext._jvm
    log4j = jvm.org.apache.logging.log4j
    log4j.core.config.Configurator.setLevel(_QUERIES, log4j.Level.OFF)


class _Children:
    """What becomes of processes that this one starts; one for each process, as Python's hooks are."""

    are_deaf = False
    has_hook = False


@contextmanager
def _deaf_children() -> Iterator[None]:
    """Start processes that ignore SIGTERM, which may be sent to all of a group: Java ends with us, not before us."""
    if not _Children.has_hook:
        os.register_at_fork(after_in_child=_deafen)  # hooks cannot be taken back, and PySpark's start runs them
        _Children.has_hook = True
    _Children.are_deaf = True
    try:
        yield
    finally:
        _Children.are_deaf = False


def _deafen() -> None:
    if _Children.are_deaf:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)


@contextmanager
def bootstrap_for_all(bootstrap: str) -> Iterator[None]:
    """Set the cluster for pipelines that name none, in this process and in the workers of Spark."""
    before = os.environ.get("RIVERLOG_BOOTSTRAP_SERVERS")
    os.environ["RIVERLOG_BOOTSTRAP_SERVERS"] = bootstrap
    try:
        yield
    finally:
        if before is None:
            del os.environ["RIVERLOG_BOOTSTRAP_SERVERS"]
        else:
            os.environ["RIVERLOG_BOOTSTRAP_SERVERS"] = before


def loaded(file: Path) -> "list[Pipeline]":
    """Return the pipelines of a file, or raise a sentence about why there are none."""
    from riverlog.pipelines.runtime.loader import NotLoaded, load

    try:
        return load(file)
    except NotLoaded as problem:
        raise CommandError(str(problem)) from problem


def check_file(file: Path) -> None:
    """Refuse a file that is not there, or is not Python, before anything is started for it."""
    if not file.is_file():
        raise usage_error(f"there is no file {file}; name one that defines a Pipeline")
    from riverlog.pipelines.runtime.loader import NotLoaded, check_syntax

    try:
        check_syntax(file)
    except NotLoaded as problem:
        raise CommandError(str(problem)) from problem


def need_spark() -> None:
    """Refuse a command that runs Spark where PySpark is not installed."""
    from riverlog.arrow.extras import MissingExtra, need

    try:
        need("pyspark")
    except MissingExtra as missing:
        raise CommandError(str(missing)) from missing


def check_master(master: str, *, seconds_max: float = _MASTER_SECONDS_MAX) -> None:
    """Refuse a master that Spark does not know, or that does not answer: of either it would print pages.

    One that was started a moment ago is waited for, as Spark does.
    """
    if not _MASTER.fullmatch(master):
        raise usage_error(
            f"'{master}' is no master of Spark; --master takes local[2], spark://host:7077, yarn or k8s://https://host"
        )
    named = master.removeprefix("spark://")
    addresses_there = named.split(",") if named != master else []
    deadline = time.monotonic() + seconds_max
    is_told = False
    while (problems := [_unreached(address) for address in addresses_there]) and all(problems):
        left = deadline - time.monotonic()
        if left <= 0:
            raise CommandError(
                f"no master of Spark answers at {named}: {problems[0]}; its log names the address", ExitCode.UNREACHABLE
            )
        if not is_told:
            print(f"no master of Spark answers at {named} yet: waiting for {left:.0f} s", file=sys.stderr, flush=True)
            is_told = True
        time.sleep(_MASTER_PAUSE_SECONDS)


def _unreached(address: str) -> str:
    """Return why nothing can be reached at an address; empty where something can."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_MASTER_SECONDS).close()
    except OSError as problem:
        return str(problem.strerror or problem)
    return ""


def check_broker(bootstrap: str) -> None:
    """Refuse to start Spark for a cluster that does not answer: that is said sooner and better here."""
    addresses(bootstrap)
    settings = ClientSettings({"request.timeout.ms": _REACHED_MS})
    ClusterOptions(bootstrap, settings, None).ask(lambda admin: admin.describe_cluster())
