"""Topics that come into being by a slip of the pen."""

import json
from pathlib import Path

import pytest

from tests.support.node import Node
from tests.support.shell import Shell


def test_a_topic_that_writing_creates_is_named(shell: Shell) -> None:
    shell.done("topics", "create", "orders")
    code, out, err = shell.run("produce", "ordres", given=b"x\n")
    assert (code, json.loads(out)["records"]) == (0, 1)
    assert err == b"riverlog: there is no topic ordres: the first record creates it; did you mean 'orders'?\n"
    shell.done("produce", "ordres", given=b"x\n")


def test_a_topic_that_nobody_creates_is_refused_at_once(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    with Node(tmp_path, settings={"auto.create.topics.enable": "false"}) as node:
        monkeypatch.setenv("RIVERLOG_BOOTSTRAP_SERVERS", node.bootstrap)
        shell = Shell(capfdbinary)
        shell.done("topics", "create", "orders")
        sentence = shell.refused("produce", "ordres", given=b"x\n", code=4)
        assert "there is no topic ordres; did you mean 'orders'? `riverlog topics list` shows" in sentence
        options = ("-X", "linger.ms=5", "-X", "request.timeout.ms=9000")
        assert "there is no topic x; " in shell.refused("produce", "x", *options, given=b"x\n", code=4)


def test_a_topic_of_the_clusters_own_is_not_created_by_writing(shell: Shell) -> None:
    sentence = shell.refused("produce", "__transaction_state", given=b"x\n", code=4)
    assert sentence == "riverlog: only the cluster itself writes to __transaction_state; choose another topic\n"
    assert b"__transaction_state" not in shell.done("topics", "list", "--internal")
