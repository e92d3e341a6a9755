"""`pipelines run` on a cluster of Spark: a master and a worker as processes of their own, and two executors.

The checkpoint lies on the node, so no file system is shared. A function of the file travels to the executors by value.
"""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pyspark
import pytest

import riverlog
from riverlog.spark.sessions.java import provide_java
from tests.e2e.clients import create_topic, send
from tests.support.node import Node
from tests.support.waiting import until

HOST = "127.0.0.1"
SECONDS_MAX = 800.0

FILE = """
from riverlog.pipelines import Pipeline, tumbling

totals = Pipeline("cluster-totals")
orders = totals.stream("cluster-orders", schema="shop string, cents long, at timestamp", time="at")


def with_tax(row):
    return {**row, "cents": row["cents"] * 2}


taxed = orders.map(with_tax, "shop string, cents long, at timestamp")
taxed.window(tumbling("1 minute"), by=["shop"], late="side-output:cluster-late").aggregate(cents="sum(cents)").to(
    "cluster-totals"
)
"""


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    """Start a master and a worker with room for two executors, as the guide says it; give the master's address."""
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]
    address = f"spark://{HOST}:{port}"
    small = ["--host", HOST, "--webui-port", "0"]
    with ExitStack() as stack:
        log = tmp_path / "master.log"
        stack.enter_context(daemon(log, "master.Master", *small, "--port", str(port)))
        until(lambda: "New state: ALIVE" in log.read_text(), log.read_text, seconds_max=SECONDS_MAX)
        room = ["--cores", "2", "--memory", "2g", "--work-dir", str(tmp_path / "work")]
        worker_log = tmp_path / "worker.log"
        stack.enter_context(daemon(worker_log, "worker.Worker", *small, *room, address))
        until(
            lambda: "Successfully registered with master" in worker_log.read_text(),
            worker_log.read_text,
            seconds_max=SECONDS_MAX,
        )
        yield address


class daemon:  # noqa: N801 - used as a function
    """A process of Spark's, until it is left."""

    def __init__(self, log: Path, name: str, *words: str) -> None:
        environment = dict(os.environ)
        provide_java(environment)
        home = Path(pyspark.__file__).parent
        with log.open("wb") as file:
            self._process = subprocess.Popen(
                [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *words],
                env={**environment, "SPARK_HOME": str(home)},
                stdout=file,
                stderr=file,
            )

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(60)


@pytest.mark.timeout(1200)  # five JVMs take their time on a machine that has other work
def test_a_pipeline_runs_on_two_executors_of_a_cluster(node: Node, master: str, tmp_path: Path) -> None:
    for topic in ("cluster-orders", "cluster-totals", "cluster-late"):
        create_topic(node.bootstrap, topic, partitions=2)
    for minute in range(6):
        row = {"shop": "Oslo", "cents": 100 + minute, "at": f"2026-01-31T10:{minute:02}:15Z"}
        send(node.bootstrap, "cluster-orders", [json.dumps(row).encode()], partition=minute % 2)
    file = tmp_path / "shop.py"
    file.write_text(FILE)
    ran = subprocess.run(
        [
            *(str(Path(sys.executable).with_name("riverlog")), "pipelines", "run", str(file), "--master", master),
            *("-b", node.bootstrap, "--store", node.addresses["checkpoints"], "--trigger", "available-now"),
            *("--conf", "spark.executor.cores=1", "--conf", "spark.executor.memory=512m"),
            *("--conf", "spark.sql.shuffle.partitions=2"),
            *("--conf", f"spark.driver.host={HOST}", "--conf", "spark.ui.enabled=false"),
        ],
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    values = riverlog.scan("cluster-totals", bootstrap=node.bootstrap).to_arrow()["value"].to_pylist()
    found = sorted((row["window"]["start"][11:16], row["cents"]) for row in map(json.loads, values))
    assert found == [(f"10:{minute:02}", 2 * (100 + minute)) for minute in range(5)]
    executors = {path.name for path in (tmp_path / "work").glob("app-*/*")}
    assert executors == {"0", "1"}
