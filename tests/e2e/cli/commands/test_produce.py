"""Records that are sent: what is acknowledged is counted, and silence is told."""

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.node import Node
from tests.support.shell import PROGRAM, SECONDS_MAX, Shell, environment, on_terminal
from tests.support.waiting import until


@contextmanager
def sending(node: Node, folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """Run a producer that reads a pipe; give it, and the file of what it says."""
    said = folder / "said"
    with (
        said.open("wb") as errors,
        subprocess.Popen(
            [PROGRAM, "produce", "orders"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            env=environment(node),
        ) as producer,
    ):
        yield producer, said
        producer.kill()


def count(shell: Shell) -> int:
    return len(shell.done("consume", "orders", "--from-beginning", "--exit").splitlines())


@pytest.mark.parametrize("gone", [signal.SIGKILL, signal.SIGSTOP], ids=["gone", "frozen"])
def test_silence_is_told_and_an_interrupt_says_what_is_known(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gone: signal.Signals
) -> None:
    with Node(tmp_path) as node:
        monkeypatch.setenv("RIVERLOG_BOOTSTRAP_SERVERS", node.bootstrap)
        shell.done("topics", "create", "orders")
        with sending(node, tmp_path) as (producer, said):
            assert producer.stdin is not None
            producer.stdin.write(b"one\ntwo\n")
            producer.stdin.flush()
            until(lambda: count(shell) == 2, lambda: said.read_text())
            os.kill(node.pid, gone)
            producer.stdin.write(b"three\n")
            producer.stdin.flush()
            until(lambda: "no acknowledgement for 2 s" in said.read_text(), lambda: said.read_text())
            if gone is signal.SIGKILL:
                assert "Connection refused" in said.read_text()
            producer.send_signal(signal.SIGINT)
            assert producer.wait(SECONDS_MAX) == 130
        lines = said.read_text().splitlines()
        assert len(lines) == 2
        assert lines[0].endswith("still trying, Ctrl-C ends")
        assert lines[1] == "riverlog: 3 records sent to orders: 2 acknowledged, 1 unknown (in the topic or not)"


def test_it_goes_on_when_the_cluster_answers_again(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Node(tmp_path) as node:
        monkeypatch.setenv("RIVERLOG_BOOTSTRAP_SERVERS", node.bootstrap)
        shell.done("topics", "create", "orders")
        with sending(node, tmp_path) as (producer, said):
            assert producer.stdin is not None
            producer.stdin.write(b"zero\n")
            producer.stdin.flush()
            until(lambda: count(shell) == 1, lambda: said.read_text())
            node.kill()
            producer.stdin.write(b"one\n")
            producer.stdin.flush()
            until(lambda: "no acknowledgement for 2 s" in said.read_text(), lambda: said.read_text())
            node.start()
            until(lambda: "the cluster answers again" in said.read_text(), lambda: said.read_text())
            producer.stdin.close()
            assert producer.wait(SECONDS_MAX) == 0
        assert len(said.read_text().splitlines()) == 2


def test_the_progress_bar_counts_acknowledgements(shell: Shell, node: Node, tmp_path: Path) -> None:
    shell.done("topics", "create", "progress")
    path = tmp_path / "lines"
    path.write_bytes(b"x\n" * 60)
    code, screen = on_terminal(node, "produce", "progress", "--file", str(path), "--rate", "50")
    assert code == 0
    counted = [int(count) for count in re.findall(r"(\d+) records?, \S+ B acknowledged", screen)]
    assert counted == sorted(counted)
    assert 0 < counted[-1] <= 60
