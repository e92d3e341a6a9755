"""A reader that gets nothing says why: there is nothing yet, or nobody answers."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.support.node import Node
from tests.support.shell import PROGRAM, SECONDS_MAX, Shell, environment, on_terminal
from tests.support.waiting import until


@pytest.mark.parametrize("options", [(), ("--group", "readers")], ids=["alone", "member"])
@pytest.mark.parametrize("gone", [signal.SIGKILL, signal.SIGSTOP], ids=["gone", "frozen"])
def test_a_reader_says_that_nobody_answers(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gone: signal.Signals, options: tuple[str, ...]
) -> None:
    said = tmp_path / "said"
    with Node(tmp_path) as node, said.open("wb") as errors:
        monkeypatch.setenv("RIVERLOG_BOOTSTRAP_SERVERS", node.bootstrap)
        shell.done("topics", "create", "orders")
        shell.done("produce", "orders", given=b"one\n")
        reader = subprocess.Popen(
            [PROGRAM, "consume", "orders", "--from-beginning", *options],
            stdout=subprocess.PIPE,
            stderr=errors,
            env=environment(node),
        )
        assert reader.stdout is not None
        assert reader.stdout.readline() == b"one\n"
        os.kill(node.pid, gone)
        until(lambda: "no answer for 2 s" in said.read_text(), lambda: said.read_text())
        if gone is signal.SIGKILL:
            assert "Connection refused); still trying" in said.read_text()
            node.kill()
            node.start()
        else:
            os.kill(node.pid, signal.SIGCONT)
        until(lambda: "the cluster answers again" in said.read_text(), lambda: said.read_text())
        assert len(said.read_text().splitlines()) == 2
        shell.done("produce", "orders", given=b"two\n")
        assert reader.stdout.readline() == b"two\n"
        reader.send_signal(signal.SIGINT)
        assert reader.communicate(timeout=SECONDS_MAX) == (b"", None)
        assert reader.returncode == 130


def test_on_a_terminal_a_reader_says_that_it_waits(shell: Shell, node: Node) -> None:
    shell.done("topics", "create", "quiet")
    for options, waits in (
        ((), "Waiting for new records of quiet; --from-beginning prints those that are there. Ctrl-C ends."),
        (("--from-beginning",), "Waiting for more records of quiet; with --exit it stops here. Ctrl-C ends."),
        (("--group", "g"), "Waiting for records of quiet that the group has not read. Ctrl-C ends."),
    ):
        code, screen = on_terminal(node, "consume", "quiet", *options, stop_at=waits)
        assert code == 130
        assert screen.count(waits) == 1
    assert on_terminal(node, "consume", "quiet", "--from-beginning", "--exit") == (0, "")


def test_on_a_terminal_a_reader_says_why_it_ends_with_nothing(shell: Shell, node: Node) -> None:
    shell.done("topics", "create", "read")
    shell.done("produce", "read", given=b"one\n")
    assert on_terminal(node, "consume", "read", "--exit") == (
        0,
        "Only new records would be read, and it ends before them; try --from-beginning.\n",
    )
    member = ("consume", "read", "--group", "done", "--from-beginning", "--exit")
    assert on_terminal(node, *member) == (0, "one\n")
    assert on_terminal(node, *member) == (
        0,
        "Group done has nothing left to read; `riverlog groups reset-offsets` moves it back.\n",
    )
    assert shell.done(*member) == b"", "a script is told nothing"


def test_a_reader_ends_when_nobody_reads_what_it_prints(shell: Shell, node: Node) -> None:
    shell.done("topics", "create", "piped")
    shell.done("produce", "piped", given=b"one\ntwo\n")
    with subprocess.Popen(
        [PROGRAM, "consume", "piped", "--from-beginning"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(node),
    ) as reader:
        assert reader.stdout is not None
        assert reader.stderr is not None
        assert reader.stdout.readline() == b"one\n"
        reader.stdout.close()
        assert reader.wait(SECONDS_MAX) == 0, "though no record comes any more"
        assert reader.stderr.read() == b""


def committed(shell: Shell, group: str) -> int | None:
    (line,) = shell.done("lag", group, "-o", "json").splitlines()
    offset: int | None = json.loads(line)["committed"]
    return offset


def test_a_member_does_not_commit_what_it_could_not_print(shell: Shell, node: Node) -> None:
    shell.done("topics", "create", "unprinted")
    shell.done("produce", "unprinted", given=b"one\n" * 10)
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run(
            [PROGRAM, "consume", "unprinted", "--from-beginning", "--group", "full", "--max-messages", "10"],
            stdout=full,
            stderr=subprocess.PIPE,
            env=environment(node),
            timeout=SECONDS_MAX,
            check=False,
        )
    assert ended.returncode == 1
    assert ended.stderr == b"riverlog: the disk is full; make room\n"
    assert committed(shell, "full") in (None, 0)
    assert shell.done("consume", "unprinted", "--from-beginning", "--group", "full", "--exit") == b"one\n" * 10
    assert committed(shell, "full") == 10


def test_a_member_commits_what_went_into_a_pipe_before_its_reader_went(shell: Shell, node: Node) -> None:
    shell.done("topics", "create", "headed")
    shell.done("produce", "headed", given=b"one\n" * 5_000)
    with subprocess.Popen(
        [PROGRAM, "consume", "headed", "--from-beginning", "--group", "head", "--format", r"%s" + "." * 200 + r"\n"],
        stdout=subprocess.PIPE,
        env=environment(node),
    ) as reader:
        assert reader.stdout is not None
        read = reader.stdout.read(210_000)  # the first portion, and some more: the pipe holds less than the second
        reader.stdout.close()
        assert reader.wait(SECONDS_MAX) == 0
    assert read.startswith(b"one...")
    assert committed(shell, "head") == 1_000


def test_a_member_whose_coordinator_freezes_while_it_joins_does_not_end_as_if_it_were_done(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Node(tmp_path, settings={"group.initial.rebalance.delay.ms": "20000"}) as node:
        monkeypatch.setenv("RIVERLOG_BOOTSTRAP_SERVERS", node.bootstrap)
        shell.done("topics", "create", "orders")
        shell.done("produce", "orders", given=b"one\n")
        with subprocess.Popen(
            [PROGRAM, "consume", "orders", "-e", "--group", "g", "-X", "request.timeout.ms=3000"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(node),
        ) as reader:
            until(lambda: b"PreparingRebalance" in shell.done("groups", "list"), lambda: "it does not join")
            os.kill(node.pid, signal.SIGSTOP)
            out, err = reader.communicate(timeout=SECONDS_MAX)
            os.kill(node.pid, signal.SIGCONT)
        assert (reader.returncode, out) == (3, b"")
        assert b"still trying" in err.splitlines()[0]
