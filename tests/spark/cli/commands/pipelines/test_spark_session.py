"""The start of Spark as a person at a terminal sees it: that it takes a while, and one sentence where it fails."""

from pathlib import Path

from riverlog.cli.terminal.exits import ExitCode
from tests.support.node import Node
from tests.support.shell import on_terminal


def test_a_terminal_is_told_that_spark_starts_and_why_it_does_not(tmp_path: Path) -> None:
    file = tmp_path / "revenue.py"
    file.write_text("x = 1\n")
    with Node(tmp_path) as node:
        code, screen = on_terminal(node, "pipelines", "picture", str(file), "--conf", "spark.driver.memory=lots")
    assert code == ExitCode.FAILED
    lines = screen.splitlines()
    assert lines[0] == "Spark starts, which takes some seconds"
    assert "Invalid maximum heap size: -Xmxlots" in lines
    assert lines[-1] == "riverlog: Spark did not start: Java gateway process exited before sending its port number."
    assert "Traceback" not in screen
