"""When nodes are told about runs, by a thread that nobody waits for."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from riverlog.spark.sessions import reporter
from riverlog.spark.sessions.reporter import Reporter, ReportReply
from tests.support.waiting import until

PLACE = "webhdfs://127.0.0.1:9870/pipelines/orders"


class Node:
    """Hears reports while it is there."""

    def __init__(self) -> None:
        self.heard: list[dict[str, Any]] = []
        self.asked = 0
        self.there = True
        self.active = True
        self.answer = ReportReply.DELIVERED
        self.stopped: list[str] = []

    def send(self, location: str, facts: dict[str, Any]) -> ReportReply:
        assert location == PLACE
        self.asked += 1
        if not self.there:
            return ReportReply.NOT_DELIVERED
        self.heard.append(facts)
        return self.answer

    def is_active(self, query: str) -> bool:
        assert query == "q"
        return self.active

    def wait(self, condition: Callable[[], bool]) -> None:
        until(condition, lambda: str(self.heard), seconds_max=10)


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> Node:
    for name in ("PAUSE_SECONDS", "HEARTBEAT_SECONDS"):
        monkeypatch.setattr(reporter, name, 0.01)
    return Node()


@pytest.fixture
def reporting(node: Node) -> Iterator[Reporter]:
    reporter = Reporter(node.send, is_active=node.is_active, stop=node.stopped.append)
    reporter.begin("r1", PLACE, {"query": "q", "began_ms": 1})
    yield reporter
    reporter.close()
    node.wait(lambda: not any(each.name == "riverlog-progress" for each in threading.enumerate()))


def test_a_run_is_told_about_from_beginning_to_end(node: Node, reporting: Reporter) -> None:
    node.wait(lambda: len(node.heard) > 0)
    assert node.heard[0] == {"query": "q", "began_ms": 1, "run": "r1", "state": "running"}
    reporting.update("r1", {"batch": 7})
    node.wait(lambda: node.heard[-1].get("batch") == 7)
    reporting.end("r1", {"state": "failed", "error": "no disk"})
    node.wait(lambda: node.heard[-1]["state"] == "failed")
    assert node.heard[-1]["batch"] == 7
    assert node.heard[-1]["ended_ms"] > 0
    node.wait(lambda: reporting.facts("r1") == {})
    reporting.update("r1", {"batch": 8})
    reporting.update("another", {"batch": 8})
    assert reporting.facts("another") == {}


def test_a_run_without_news_is_told_about_while_it_is_there(node: Node, reporting: Reporter) -> None:
    node.wait(lambda: len(node.heard) >= 3)
    assert {each["state"] for each in node.heard} == {"running"}
    node.active = False
    node.wait(lambda: node.heard[-1]["state"] == "stopped")


def test_a_run_that_is_to_stop_is_told_so_once(node: Node, reporting: Reporter) -> None:
    node.answer = ReportReply.STOP
    node.wait(lambda: node.stopped == ["q"])
    asked = node.asked
    node.wait(lambda: node.asked > asked + 2)
    assert node.stopped == ["q"]


def test_a_node_that_was_away_hears_the_latest(node: Node, reporting: Reporter) -> None:
    node.there = False
    asked = node.asked
    reporting.update("r1", {"batch": 1})
    node.wait(lambda: node.asked > asked + 1)
    reporting.end("r1", {"state": "stopped"})
    node.there = True
    node.wait(lambda: node.heard[-1:] != [] and node.heard[-1]["state"] == "stopped")
    assert node.heard[-1]["batch"] == 1


def test_the_end_is_not_sent_for_ever(node: Node, reporting: Reporter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reporter, "END_SECONDS_MAX", 0.02)
    node.there = False
    reporting.end("r1", {"state": "stopped"})
    node.wait(lambda: reporting.facts("r1") == {})


def test_what_runs_ends_with_the_process(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reporter, "EXIT_SECONDS_MAX", 0.5)
    reporting = Reporter(node.send, is_active=node.is_active, stop=node.stopped.append)
    reporting.begin("r1", PLACE, {"query": "q", "began_ms": 1})
    reporting.close()
    assert node.heard[-1]["state"] == "stopped"
    reporting.begin("r2", PLACE, {"query": "q", "began_ms": 2})
    assert reporting.facts("r2") == {}


def test_runs_are_counted(node: Node, reporting: Reporter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reporter, "RUNS_MAX", 1)
    reporting.begin("r2", PLACE, {"query": "q", "began_ms": 2})
    assert reporting.facts("r2") == {}
