"""A session of Spark with the settings that streaming needs, on this machine unless another master is named.

`session` makes one, or gives the one that it made; it never changes a session that somebody else made. Who builds
sessions in another way takes `settings` for it, and `watch` (riverlog.spark.sessions.progress) to let nodes show its
queries.
"""

import hashlib
import json
import os
import sys
import warnings
from collections.abc import Mapping
from contextlib import nullcontext
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from riverlog.arrow.extras import need
from riverlog.spark.sessions.java import provide_java
from riverlog.spark.sessions.spark_home import light_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CHECKPOINTS_PORT: Final = 9870
_ASKED: Final = "spark.riverlog.asked"
"""The setting by which a session of ours is known, and with which arguments it was made."""

_STREAMING: Final = {
    # State of windows and joins: as large as the disk, and a batch writes what it changed.
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",  # commits/N names the files of its state
    # Checkpoints: half as many requests, no checksums beside records that have some, a restart of a node is a pause.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    "spark.hadoop.dfs.http.client.retry.policy.enabled": "true",
    "spark.hadoop.dfs.http.client.retry.policy.spec": "200,150",  # tries every 200 ms for 30 s
    # Short batches: the source waits for records by itself, tasks start at once, a batch is planned once.
    "spark.sql.streaming.pollingDelay": "1ms",
    "spark.locality.wait": "0",
    "spark.sql.adaptive.streaming.stateless.enabled": "false",
    "spark.python.unix.domain.socket.enabled": "true",
    # Batch queries: the source reads what the query asks for.
    "spark.sql.python.filterPushdown.enabled": "true",
}

ARROW_OPTIONS: Final = "-Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false"
"""For Java: reads columns without asking, for each cell, whether it lies within the column. Who makes them has asked:
here that is pyarrow, or Spark. A row of seven cells is made in two thirds of the time."""

_NOT_OURS: Final = (
    "Spark runs in this process, and riverlog has not started it: it is left as it is. Use that session, or stop it "
    "first: spark.stop(). riverlog.spark.settings() has the settings to build one with"
)


class AnotherSession(RuntimeError):
    """A session runs that is not the one that was asked for."""


def session(
    app_name: str = "riverlog",
    *,
    master: str | None = None,
    conf: Mapping[str, object] | None = None,
    bootstrap: str | None = None,
    checkpoints: str | None = None,
    remote: str | None = None,
) -> "SparkSession":
    """Return a session of Spark for pipelines; asked the same again, the same one.

    `master` is `local[*]` where none is named and the program was not started by spark-submit. `conf` has the last word
    about every setting. With `checkpoints` (`host:9870`), or `bootstrap` and the usual port, queries keep their
    checkpoints on that node, in /pipelines under their names, unless they say where. `remote` (`sc://host`, or
    `local[*]`) makes a session of Spark Connect. Raises NoJava, and AnotherSession where one runs that is not this one.
    """
    said = [app_name, master, dict(conf or {}), bootstrap, checkpoints, remote]
    asked = hashlib.sha256(json.dumps(said, sort_keys=True, default=str).encode()).hexdigest()  # may hold secrets
    chosen = settings(checkpoints or _store_beside(bootstrap))
    if (running := _running()) is not None:
        return _the_same(running, asked)
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if remote is None and not submitted:
        master = master or os.environ.get("MASTER") or "local[*]"
    if not submitted and not (remote or "").startswith("sc:"):
        provide_java(os.environ)
    if (url := remote or master or "").startswith("local"):
        chosen |= _local(url)
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    chosen = {**chosen, "spark.app.name": app_name, _ASKED: asked}
    if submitted:
        chosen = _left_open(chosen)
    chosen |= {name: _text(value) for name, value in (conf or {}).items()}
    with light_home(os.environ) if url.startswith("local") and not submitted else nullcontext():
        made = _make(chosen, master, remote)
    if remote is None:  # a listener of Spark Connect would keep a program from ending that does not stop its session
        from riverlog.spark.sessions.progress import watch

        watch(made)
    return made


def settings(checkpoints: str | None = None) -> dict[str, str]:
    """Return the settings for those who build sessions by themselves: `SparkSession.builder.config(map=settings())`.

    With `checkpoints`, the address of a node's checkpoint store, queries keep theirs there under their names.
    """
    if checkpoints is None:
        return dict(_STREAMING)
    return {**_STREAMING, "spark.sql.streaming.checkpointLocation": f"{_store(checkpoints)}/pipelines"}


def _store(address: str) -> str:
    """Read `host:9870`, with or without `webhdfs://`, as the address of a store."""
    parts = urlsplit(address if "://" in address else f"webhdfs://{address}")
    if parts.scheme not in ("webhdfs", "swebhdfs") or not parts.hostname or parts.path.strip("/"):
        raise ValueError(f"{address!r} is no address of a checkpoint store; the ready line of a node names it")
    return f"{parts.scheme}://{parts.netloc if parts.port else f'{parts.netloc}:{CHECKPOINTS_PORT}'}"


def _store_beside(bootstrap: str | None) -> str | None:
    """Name the store of the first broker, on the port where it is unless somebody chose another."""
    if bootstrap is None:
        return os.environ.get("RIVERLOG_CHECKPOINTS")
    host = urlsplit(f"//{bootstrap.split(',')[0].strip()}").hostname
    if not host:
        raise ValueError(f"{bootstrap!r} names no broker; give one as host:9092")
    return os.environ.get("RIVERLOG_CHECKPOINTS") or f"{f'[{host}]' if ':' in host else host}:{CHECKPOINTS_PORT}"


def _local(master: str) -> dict[str, str]:
    """Return what is right where all of Spark runs on this machine: its loopback address, its cores, few words."""
    logging = files("riverlog.spark.sessions").joinpath("log4j2.properties")
    return {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": str(_cores(master)),
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.extraJavaOptions": f'"-Dlog4j2.configurationFile={logging}" {ARROW_OPTIONS}',
    }


def _cores(master: str) -> int:
    """Count the tasks that run at once: `local`, `local[2]`, `local[*,4]`, `local-cluster[2,1,1024]`."""
    kind, _, numbers = master.rstrip("]").partition("[")
    counts = [int(number) if number.strip().isdigit() else os.cpu_count() or 1 for number in numbers.split(",")]
    if kind == "local-cluster" and len(counts) == 3:
        return max(1, counts[0] * counts[1])
    return max(1, counts[0]) if numbers else 1


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _left_open(chosen: dict[str, str]) -> dict[str, str]:
    """Leave out what was said to spark-submit."""
    from pyspark import SparkConf

    said = SparkConf()
    return {name: value for name, value in chosen.items() if not said.contains(name)}


def _running() -> "SparkSession | None":
    """Return the session that runs, if one does."""
    need("pyspark")
    from pyspark import SparkContext
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    try:
        return SparkSession.active()
    except PySparkRuntimeError:
        if SparkContext._active_spark_context is not None:
            raise AnotherSession(_NOT_OURS) from None
        return None


def _the_same(running: "SparkSession", asked: str) -> "SparkSession":
    made_with = running.conf.get(_ASKED, None)
    if made_with == asked:
        return running
    if made_with is None:
        raise AnotherSession(_NOT_OURS)
    raise AnotherSession(
        "a session of riverlog runs that was made with other arguments; stop it first: spark.stop(), or change what "
        "can be changed: spark.conf.set(name, value)"
    )


def _make(chosen: Mapping[str, str], master: str | None, remote: str | None) -> "SparkSession":
    from pyspark.sql import SparkSession

    builder: Any = SparkSession.builder
    if remote is not None:
        builder = builder.remote(remote)
    elif master is not None:
        builder = builder.master(master)
    with warnings.catch_warnings():
        if remote is not None:  # what a server was started with is set once more by the client, and refused
            warnings.filterwarnings("ignore", message="Failed to set spark")
        made: SparkSession = builder.config(map=dict(chosen)).getOrCreate()
    return made
