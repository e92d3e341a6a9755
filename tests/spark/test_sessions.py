"""Sessions as programs make them, each in a process of its own: a session belongs to the whole process."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.e2e.clients import create_topic, send
from tests.support.node import Node

pytestmark = pytest.mark.timeout(600)  # a JVM takes its time on a machine that has other work

MADE = """
import os, riverlog.spark
conf = {"spark.ui.enabled": False, "spark.sql.shuffle.partitions": 3}
spark = riverlog.spark.session("shop", master="local[1]", conf=conf)
assert spark.range(10).count() == 10
for name, value in riverlog.spark.settings().items():
    assert spark.conf.get(name) == value, name
assert spark.conf.get("spark.sql.shuffle.partitions") == "3"
assert spark.conf.get("spark.driver.host") == "127.0.0.1"
assert riverlog.spark.session("shop", master="local[1]", conf=conf).sparkContext is spark.sparkContext
try:
    riverlog.spark.session("another", master="local[1]")
except riverlog.spark.AnotherSession as problem:
    print(problem)
imported_from = spark.sparkContext.parallelize([0], 1).map(lambda _: __import__("pyspark").__file__).first()
assert ".zip" not in imported_from, imported_from
assert "SPARK_HOME" not in os.environ
print(os.environ["JAVA_HOME"])
spark.stop()
"""

NOT_OURS = """
import os, sys
os.environ["PYSPARK_PYTHON"] = sys.executable
from pyspark.sql import SparkSession
import riverlog.spark
theirs = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
before = theirs.conf.getAll
try:
    riverlog.spark.session()
except riverlog.spark.AnotherSession as problem:
    print(problem)
assert theirs.conf.getAll == before
theirs.stop()
"""

CONNECT = """
import riverlog.spark
spark = riverlog.spark.session(remote="local[1]", conf={"spark.ui.enabled": False})
print(type(spark).__module__, spark.range(7).count())
assert spark.conf.get("spark.sql.streaming.stateStore.checkpointFormatVersion") == "2"
spark.stop()
"""

COPIED = """
import riverlog.spark
spark = riverlog.spark.session(master="local[2]", conf={"spark.ui.enabled": False})
rows = spark.readStream.format("riverlog").option("kafka.bootstrap.servers", "%s").option("subscribe", "words")
rows = rows.option("startingOffsets", "earliest").load()
writer = rows.writeStream.format("noop").option("checkpointLocation", "%s")
for _ in range(3):
    writer.trigger(availableNow=True).start().awaitTermination()
print("done")
"""

WAITING = """
import time
from riverlog.pipelines import Pipeline
pipeline = Pipeline("interrupted", bootstrap="%s", checkpoints="%s")
pipeline.stream("waited-for").select("key", "value").to("copies")
pipeline.start()
while pipeline.queries[0].lastProgress is None:
    time.sleep(0.1)
print("copied", flush=True)
pipeline.wait()
"""


def run(program: str, environment: Mapping[str, str] = os.environ) -> subprocess.CompletedProcess[str]:
    """Run a program in a Python of its own; a warning is an error there."""
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", "-c", program],
        env=dict(environment),
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


def test_pip_alone_is_enough_also_where_java_home_names_an_old_one(tmp_path: Path) -> None:
    for name in ("bash", "cat", "dirname", "env", "ps", "sh", "uname"):  # what Spark's scripts call
        if found := shutil.which(name):
            (tmp_path / name).symlink_to(found)
    old = tmp_path / "jdk"
    (old / "bin").mkdir(parents=True)
    (old / "bin" / "java").symlink_to("/bin/sh")
    (old / "release").write_text('JAVA_VERSION="11.0.2"\n')
    environment = {"PATH": str(tmp_path), "JAVA_HOME": str(old), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    done = run(MADE, environment)
    told, java_home = done.stdout.splitlines()
    assert told.startswith("a session of riverlog runs that was made with other arguments; stop it first")
    assert Path(java_home).parent == tmp_path / "cache" / "riverlog"
    assert "WARN " not in done.stderr


def test_a_session_of_somebody_else_is_left_alone() -> None:
    assert "riverlog has not started it: it is left as it is" in run(NOT_OURS).stdout


def test_spark_connect() -> None:
    assert run(CONNECT).stdout == "pyspark.sql.connect.session 7\n"


def test_a_program_that_just_ends_leaves_no_traces(node: Node, tmp_path: Path) -> None:
    """Spark tells of its queries until the end, and its workers wait for more: neither finds the program gone."""
    create_topic(node.bootstrap, "words", partitions=2)
    send(node.bootstrap, "words", [b"flow"])
    done = run(COPIED % (node.bootstrap, tmp_path))
    assert done.stdout == "done\n"
    assert not re.findall("ERROR|Traceback|Exception", done.stderr), done.stderr


def test_ctrl_c_ends_a_pipeline_behind_its_batch_and_breaks_nothing(node: Node, tmp_path: Path) -> None:
    create_topic(node.bootstrap, "waited-for", partitions=1)
    send(node.bootstrap, "waited-for", [b"flow"])
    program = subprocess.Popen(
        [sys.executable, "-c", WAITING % (node.bootstrap, tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert program.stdout is not None
    assert program.stdout.readline() == "copied\n"
    program.send_signal(signal.SIGINT)
    _, said = program.communicate(timeout=120)
    assert program.returncode == -signal.SIGINT
    assert said.rstrip().endswith("KeyboardInterrupt"), said
    assert not re.findall("ERROR|[Pp]y4[Jj]", said), said
