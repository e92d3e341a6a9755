"""A cluster that does not answer: whatever is asked of it, one line says so soon, and the command goes on waiting."""

import os
import signal
import subprocess
from contextlib import ExitStack
from pathlib import Path

from tests.support.node import Node
from tests.support.shell import PROGRAM, SECONDS_MAX, Shell, environment
from tests.support.waiting import until

ASKED = [
    ["topics", "list"],
    ["lag"],
    ["cluster", "status"],
    ["groups", "reset-offsets", "--group", "billing", "--topic", "orders", "--to-earliest", "--execute"],
    ["consume", "orders"],
    ["consume", "orders", "--group", "billing"],
    ["produce", "orders"],
    ["bench", "--seconds", "1"],
    ["verify", "--seconds", "1"],
    ["pipelines", "list"],
]


def test_every_command_says_that_nobody_answers(tmp_path: Path) -> None:
    settings = {"checkpoints.port": "0"}
    with Node(tmp_path / "node", settings=settings) as node, ExitStack() as at_the_end:
        asking_all = {**environment(node), "RIVERLOG_CHECKPOINTS": node.addresses["checkpoints"]}
        os.kill(node.pid, signal.SIGSTOP)
        at_the_end.callback(os.kill, node.pid, signal.SIGCONT)
        asking = []
        for number, words in enumerate(ASKED):
            said = tmp_path / f"said-{number}"
            with said.open("wb") as errors:
                process = subprocess.Popen(
                    [PROGRAM, *words], stdin=subprocess.DEVNULL, stdout=errors, stderr=errors, env=asking_all
                )
            at_the_end.callback(process.kill)
            asking.append((process, said))
        for process, said in asking:
            until(lambda said=said: "\n" in said.read_text(), lambda said=said: said.read_text())
            assert said.read_text() == "riverlog: no answer for 2 s; still trying, Ctrl-C ends\n"
            process.send_signal(signal.SIGINT)
            assert process.wait(SECONDS_MAX) == 130


def test_the_doctor_says_so_without_a_code(tmp_path: Path, shell: Shell) -> None:
    with Node(tmp_path / "node") as node:
        os.kill(node.pid, signal.SIGSTOP)
        try:
            code, report, _ = shell.run("doctor", "--timeout", "0.5", "-b", node.bootstrap)
        finally:
            os.kill(node.pid, signal.SIGCONT)
    assert code == 5
    assert f"WRONG  connect     {node.bootstrap} did not answer ApiVersions in time\n" in report.decode()
