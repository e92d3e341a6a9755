"""Offsets of a group that are moved on the command line: at once only where that was said."""

import json
from collections.abc import Iterator

import pytest

from tests.support.node import Node
from tests.support.shell import Shell, on_terminal

RESET = ("groups", "reset-offsets", "--group", "billing", "--topic", "orders", "--to-earliest")


@pytest.fixture(autouse=True)
def committed(shell: Shell) -> Iterator[None]:
    """A group that has read three records of a topic."""
    shell.done("topics", "create", "orders", "--partitions", "1")
    shell.done("produce", "orders", given=b"a\nb\nc\n")
    shell.done("groups", "reset-offsets", "billing", "--topic", "orders", "--to-latest", "--execute")
    yield
    shell.done("groups", "delete", "billing")
    shell.done("topics", "delete", "orders")


def stands_at(shell: Shell) -> int:
    (row,) = [json.loads(line) for line in shell.done("lag", "--group", "billing").splitlines()]
    return int(row["committed"])


def test_in_a_script_nothing_is_moved_unless_it_is_told(shell: Shell) -> None:
    code, out, err = shell.run(*RESET)
    plan = {"group": "billing", "topic": "orders", "partition": 0, "before": 3, "after": 0, "replayed": 3, "skipped": 0}
    assert (code, json.loads(out)) == (0, {**plan, "dry_run": True})
    assert err == b"Nothing was moved: this was a dry run. --execute moves the offsets.\n"
    assert json.loads(shell.done(*RESET, "--dry-run")) == {**plan, "dry_run": True}
    text = shell.done(*RESET, "-o", "table").decode()
    assert text.endswith(
        "Nothing was moved: this was a dry run. "
        "With --execute group billing moves: 1 partition, 3 records replayed, 0 skipped.\n"
    )
    assert stands_at(shell) == 3


@pytest.mark.parametrize("flag", ["--execute", "--yes", "-y"])
def test_in_a_script_offsets_are_moved_when_it_is_told(shell: Shell, flag: str) -> None:
    assert json.loads(shell.done(*RESET, flag))["dry_run"] is False
    assert stands_at(shell) == 0
    text = shell.done(*RESET[:-1], "--to-latest", flag, "-o", "table").decode()
    assert text.endswith("\nMoved group billing: 1 partition, 0 records replayed, 3 skipped.\n")
    assert stands_at(shell) == 3


def test_on_a_terminal_it_asks_below_the_plan(shell: Shell, node: Node) -> None:
    code, screen = on_terminal(node, *RESET, typed=b"n\n")
    assert (code, screen.count("orders")) == (1, 1)
    assert "Move group billing: 1 partition, 3 records replayed, 0 skipped? [y/N]" in screen
    assert "nothing was moved" in screen
    assert stands_at(shell) == 3
    code, screen = on_terminal(node, *RESET, typed=b"y\n")
    assert (code, screen.count("orders")) == (0, 1)
    assert screen.endswith("Moved group billing: 1 partition, 3 records replayed, 0 skipped.\n")
    assert stands_at(shell) == 0
    code, screen = on_terminal(node, *RESET, "--dry-run")
    assert (code, "[y/N]" in screen) == (0, False)
    code, screen = on_terminal(node, *RESET, "--execute", "-o", "json")
    assert (code, json.loads(screen)["dry_run"]) == (0, False)


def test_a_group_with_a_slip_of_the_pen_is_seen_to_be_new(shell: Shell) -> None:
    wrong = ("groups", "reset-offsets", "--group", "biling", "--topic", "orders", "--to-earliest", "-o", "table")
    code, out, err = shell.run(*wrong)
    assert code == 0
    assert b"With --execute group biling moves: 1 partition, where it had committed nothing." in out
    assert err == b"riverlog: there is no group biling yet; did you mean 'billing'?\n"


def test_one_way_is_enough(shell: Shell) -> None:
    assert "--dry-run and --execute exclude each other" in shell.refused(*RESET, "--dry-run", "--execute", code=2)


def test_groups_are_deleted_all_or_none(shell: Shell) -> None:
    sentence = shell.refused("groups", "delete", "billing", "biling", code=4)
    assert "nothing was deleted: there is no group biling; did you mean 'billing'?" in sentence
    assert stands_at(shell) == 3
