"""Internal topics on the command line: neither a script nor a slip of the hand takes offsets and checkpoints away."""

import json
import re

import pytest

from riverlog.checkpoints.remote import RemoteStore
from tests.support.node import Node
from tests.support.shell import Shell, on_terminal


@pytest.fixture(autouse=True)
def used(shell: Shell, node: Node) -> None:
    """Make use of groups and of the checkpoint store, so that their topics are there."""
    shell.done("topics", "create", "orders", "--if-not-exists")
    shell.done("groups", "reset-offsets", "--group", "billing", "--topic", "orders", "--to-earliest", "--execute")
    with RemoteStore(node.addresses["checkpoints"]) as store:
        store.queries()


def internal(shell: Shell) -> set[str]:
    listed = map(json.loads, shell.done("topics", "list", "--internal").splitlines())
    return {row["name"] for row in listed if row["internal"]}


@pytest.mark.parametrize(
    ("name", "kept", "remedy"),
    [
        ("__consumer_offsets", "the committed offsets of all groups", "with --internal it is done"),
        ("__checkpoints", "checkpoints", "only its node does that"),
    ],
)
def test_an_internal_topic_is_not_deleted_or_changed_without_a_word(
    shell: Shell, name: str, kept: str, remedy: str
) -> None:
    before = internal(shell)
    assert name in before
    sentence = shell.refused("topics", "delete", "orders", name, "--yes", code=4)
    assert f"{name} is internal: the cluster keeps" in sentence
    assert kept in sentence
    assert f"Nothing was deleted; {remedy}" in sentence
    assert "orders" in shell.done("topics", "list").decode()
    trimmed = shell.refused("topics", "trim", name, "--all", code=4)
    assert "Nothing was deleted; clusters let no client do that" in trimmed
    for change in (["--config", "cleanup.policy=delete"], ["--delete-config", "cleanup.policy"], ["--partitions", "9"]):
        assert "Nothing was changed" in shell.refused("topics", "alter", name, *change, code=4)
    assert shell.done("topics", "describe", name).decode().splitlines()[0].endswith(", Internal=true")
    assert internal(shell) == before


def test_on_a_terminal_there_is_no_question_about_what_is_not_done(shell: Shell, node: Node) -> None:
    code, screen = on_terminal(node, "topics", "delete", "__consumer_offsets", typed=b"y\n")
    assert code == 4
    assert "[y/N]" not in screen
    assert "__consumer_offsets" in internal(shell)


def test_an_internal_topic_is_deleted_on_demand_but_for_the_nodes_own(shell: Shell, node: Node) -> None:
    assert "__checkpoints" in shell.refused("topics", "delete", "__checkpoints", "--internal", code=4)
    deleted = json.loads(shell.done("topics", "delete", "__consumer_offsets", "--internal"))
    assert deleted == {"topic": "__consumer_offsets", "deleted": True}
    assert internal(shell) == {"__checkpoints", "__transaction_state"} & internal(shell)
    assert "internal topic deleted" in node.log_tail()
    code, report, _ = shell.run("doctor")
    assert (code, b"WRONG  internal    __consumer_offsets was deleted\n" in report) == (5, True)
    assert node.stop() == 0
    node.start()
    assert shell.run("doctor", "-b", node.bootstrap)[0] == 5, "a restart does not bring them back"


def test_the_doctor_finds_an_internal_topic_that_loses_what_it_keeps(shell: Shell) -> None:
    shell.done("topics", "alter", "__consumer_offsets", "--config", "cleanup.policy=delete", "--internal")
    code, report, _ = shell.run("doctor")
    assert code == 5
    mending = re.search(r"`riverlog (topics alter .*)` mends", report.decode())
    assert mending is not None
    shell.done(*mending[1].split())
    assert shell.run("doctor")[0] == 0
