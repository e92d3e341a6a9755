"""`pipelines run` as a user starts it: it tells how it goes, stops when asked from elsewhere, begins anew when reset.

Then what is kept is looked at: the state, a batch once more, the picture.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import riverlog
from riverlog.cli.main import main
from riverlog.cli.terminal.exits import ExitCode
from tests.e2e.clients import create_topic, send
from tests.support.node import Node
from tests.support.waiting import until

SECONDS_MAX = 500.0

FILE = """
import os
import sys

import beside
from riverlog.pipelines import Pipeline, tumbling

totals = Pipeline("totals")
orders = totals.stream("orders", schema="shop string, cents long, at timestamp", time="at", watermark="10 seconds")


def with_tax(row):
    print("mapped in", os.getpid(), file=sys.stderr)
    return {**row, "cents": beside.taxed(row["cents"])}


taxed = orders.map(with_tax, "shop string, cents long, at timestamp")
(taxed.window(tumbling("1 minute"), by=["shop"], late="side-output:late")
      .aggregate(cents="sum(cents)")
      .to("totals"))
"""

COMMANDS = """
import contextlib, io, json, os, sys
from riverlog.cli.main import main

print(os.getpid())
for words in json.loads(sys.argv[1]):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(words)
    print(json.dumps([int(code), out.getvalue(), err.getvalue()]))
"""


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    with Node(tmp_path, settings={"metrics.port": "-1", "checkpoints.port": "0"}) as node:
        for topic in ("orders", "totals", "late"):
            create_topic(node.bootstrap, topic)
        yield node


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "beside.py").write_text("def taxed(cents):\n    return cents * 2\n")
    file = tmp_path / "shop.py"
    file.write_text(FILE)
    return file


def order(node: Node, minute: int, cents: int) -> None:
    row = {"shop": "Oslo", "cents": cents, "at": f"2026-01-31T10:{minute:02}:15Z"}
    send(node.bootstrap, "orders", [json.dumps(row).encode()])


def totals(node: Node) -> list[tuple[str, int]]:
    values = riverlog.scan("totals", bootstrap=node.bootstrap).to_arrow()["value"].to_pylist()
    return sorted((row["window"]["start"][11:16], row["cents"]) for row in map(json.loads, values))


def store(node: Node) -> list[str]:
    return ["--store", node.addresses["checkpoints"]]


def cluster(node: Node) -> list[str]:
    return [*store(node), "-b", node.bootstrap, "--master", "local[2]"]


def running_command(node: Node, file: Path) -> list[str]:
    return [str(Path(sys.executable).with_name("riverlog")), "pipelines", "run", str(file), *cluster(node)]


def in_one_process(*commands: list[str]) -> tuple[int, list[tuple[int, str, str]]]:
    """Run commands one after another in a process of their own: its JVM is started once."""
    ran = subprocess.run(
        [sys.executable, "-c", COMMANDS, json.dumps(commands)], capture_output=True, text=True, timeout=900, check=False
    )
    lines = ran.stdout.splitlines()
    assert len(lines) == len(commands) + 1, ran.stdout + ran.stderr
    return int(lines[0]), [tuple(json.loads(line)) for line in lines[1:]]


def described(node: Node, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main(["pipelines", "describe", "totals", "-o", "json", *store(node)]) == ExitCode.DONE
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.timeout(1200)  # three JVMs take their time on a machine that has other work
def test_a_pipeline_runs_is_stopped_looked_at_and_begins_anew(
    node: Node, file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for minute in (0, 1, 2):
        order(node, minute, 100 + minute)
    command = running_command(node, file)
    said = tmp_path / "run.log"
    with said.open("wb") as log, subprocess.Popen(command, stderr=log, stdin=subprocess.DEVNULL) as running:
        try:
            until(lambda: len(totals(node)) == 2, said.read_text, seconds_max=SECONDS_MAX)
            until(lambda: "totals: batch " in said.read_text(), said.read_text, seconds_max=SECONDS_MAX)
            assert main(["pipelines", "stop", "totals", "--timeout", "300", *store(node)]) == ExitCode.DONE
            assert json.loads(capsys.readouterr().out)["state"] == "stopped"
            assert running.wait(300) == ExitCode.DONE, said.read_text()
        finally:
            running.kill()
    assert "totals has stopped" in said.read_text()
    assert totals(node) == [("10:00", 200), ("10:01", 202)]
    found = described(node, capsys)
    assert (found["state"], found["lag"]) == ("stopped", 0)
    assert found["state_rows"] == 1
    assert found["state_commit_ms"] is not None

    svg = tmp_path / "shop.svg"
    pid, (state, printed, replayed, drawn, wrote) = in_one_process(
        ["pipelines", "state", "totals", *store(node)],
        ["pipelines", "replay", "totals", "--batch", "0", *cluster(node)],
        ["pipelines", "replay", "totals", "--batch", "0", "--file", str(file), *cluster(node)],
        ["pipelines", "picture", str(file)],
        ["pipelines", "picture", str(file), "--svg", str(svg)],
    )
    assert state[0] == ExitCode.DONE, state
    (kept,) = map(json.loads, state[1].splitlines())
    assert kept["name"] == "stateStoreSave"
    assert kept["key"]["shop"] == "Oslo"
    assert 204 in kept["value"].values()

    rows = [json.loads(line) for line in printed[1].splitlines()]
    assert rows, printed
    assert [json.loads(row["value"])["cents"] for row in rows] == [100, 101, 102]

    made = [json.loads(line) for line in replayed[1].splitlines()]
    assert {row["topic"] for row in made} == {"totals"}, replayed
    assert sorted(json.loads(row["value"])["cents"] for row in made) == [200, 202, 204]
    assert f"mapped in {pid}" in replayed[2]
    assert totals(node) == [("10:00", 200), ("10:01", 202)], "a batch that is replayed writes nothing"

    assert drawn[1].splitlines() == [
        "query totals",
        "  topic orders",
        "  | values as JSON",
        "  | watermark at - 10 seconds",
        "  | map with_tax",
        "  | windows of 1 minute by shop: cents; late rows to late",
        "  => topic totals",
        "  => topic late: late rows",
    ]
    assert wrote[1] == f"Wrote {svg}\n"
    assert svg.read_text().startswith("<svg ")

    assert main(["pipelines", "reset", "totals", "--to-earliest", "--yes", *store(node)]) == ExitCode.DONE
    order(node, 3, 103)
    ran = subprocess.run([*command, "--trigger", "available-now"], capture_output=True, timeout=900, check=False)
    assert ran.returncode == ExitCode.DONE, ran.stderr.decode()
    assert b"totals has read what there was" in ran.stderr
    assert totals(node) == [("10:00", 200)] * 2 + [("10:01", 202)] * 2 + [("10:02", 204)]


@pytest.mark.timeout(600)
def test_a_pipeline_that_is_stopped_while_spark_starts_does_not_begin(node: Node, file: Path, tmp_path: Path) -> None:
    said = tmp_path / "run.log"
    with (
        said.open("wb") as log,
        subprocess.Popen(running_command(node, file), stderr=log, stdin=subprocess.DEVNULL, process_group=0) as running,
    ):
        try:
            until(lambda: "SparkSubmit" in commands_of_children(running.pid), said.read_text, seconds_max=SECONDS_MAX)
            os.killpg(running.pid, signal.SIGTERM)
            assert running.wait(300) == ExitCode.DONE, said.read_text()
        finally:
            running.kill()
    assert "totals was stopped before it began" in said.read_text()


def commands_of_children(pid: int) -> str:
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return " ".join(Path(f"/proc/{child}/cmdline").read_text().replace("\0", " ") for child in found)


@pytest.mark.timeout(1200)
def test_mistakes_are_told_in_a_line_each(node: Node, file: Path, tmp_path: Path) -> None:
    """Neither a plan nor a trace of Java nor a column that only a pipeline knows of is in what a user reads."""
    riverlog_command = str(Path(sys.executable).with_name("riverlog"))

    def told(*words: str) -> str:
        command = [riverlog_command, "pipelines", *words]
        ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=500, check=False)
        assert (ran.returncode, ran.stdout) == (ExitCode.FAILED, "")
        return ran.stderr

    file.write_text(FILE.replace('by=["shop"]', 'by=["shp"]'))
    wrong = "riverlog: shop.py, line 18: there is no column shp; did you mean shop?\n"
    assert told("picture", "shop.py") == wrong
    assert told("picture", "shop.py", "--conf", "spark.sql.shuffle.partitions=many") == (
        "riverlog: Spark did not start: The value 'many' in the config \"spark.sql.shuffle.partitions\" is invalid. "
        "It should be a/an 'int' value\n"
    )
    file.write_text(FILE.replace('**row, "cents"', '"at": row["time"], "shop": "Oslo", "cents"'))
    order(node, 0, 100)
    lines = told("run", "shop.py", "--restarts", "0", "--trigger", "available-now", *cluster(node)).splitlines()
    times = [line[9:] for line in lines if line[2:3] == ":"]
    assert times == [
        "runs totals; `riverlog pipelines stop` or Ctrl-C ends it",
        "totals failed and is not started again: KeyError: 'time' (shop.py, line 14)",
    ]
    assert lines[-1] == "riverlog: totals failed; `riverlog pipelines describe totals` says how far it came"
    assert not [line for line in lines if line.startswith("\tat ") or "org.apache" in line or "WARN" in line]
