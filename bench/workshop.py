"""What lines share besides the nodes: one warm Spark, started when a line first asks for it, stopped after the last."""

import contextlib
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from bench import connector
from bench.cache import cache_folder
from bench.connector import QUERY_SETTINGS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Workshop:
    """Holds what was started until it is closed. Its processes outlive the line that asked for them first."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stack = contextlib.ExitStack()
        self._spark: SparkSession | None = None
        self._done: set[str] = set()
        self.pids: set[int] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def spark(self, settings: Mapping[str, str] | None = None) -> "SparkSession":
        """Return the one local Spark, which has its own connector for Kafka, with settings of the caller's own for it.

        Raise NotRun where none can be had.
        """
        if self._spark is None:
            folder = self._folder / "spark"
            self._spark = self._stack.enter_context(connector.session(cache_folder(), folder, _whole()))
            self.pids.add(connector.virtual_machine(self._spark).pid)
        session = self._spark.newSession()
        for name, value in (settings or {}).items():
            session.conf.set(name, value)
        return session

    def is_new(self, what: str) -> bool:
        """Return whether this is done for the first time: a virtual machine compiles what it has done before."""
        new = what not in self._done
        self._done.add(what)
        return new


def _whole() -> dict[str, str]:
    """Return what riverlog has for all of a Spark on one machine; to the connector it makes no difference."""
    from riverlog.spark import settings
    from riverlog.spark.sessions.session import ARROW_OPTIONS

    whole = {name: value for name, value in settings().items() if not name.startswith(QUERY_SETTINGS)}
    return {**whole, "spark.driver.extraJavaOptions": ARROW_OPTIONS}
