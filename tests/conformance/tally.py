"""A pytest plugin that writes down how each test ended, and lets tests be named as pending.

`--pending FILE` lists tests that cannot pass yet, one per line: the name, then the reason. They run all the same,
each for a short time: one that passes is reported, so that the list never outlives its reasons. `--tally FILE`
receives one JSON object: the outcome of every test, and for those that did not run, why.
"""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

PENDING_SECONDS_MAX: Final = 10
FOR_OTHER_BROKERS: Final = "Requires KAFKA_VERSION <"
"""How kafka-python's tests say that they are meant for brokers of the past; those are not counted at all."""


@dataclass(frozen=True, slots=True)
class Tally:
    """How the tests of one run ended."""

    outcomes: dict[str, str]  # by test: passed, failed, pending, "passed though pending", "not run: ..."

    @classmethod
    def read(cls, path: Path) -> "Tally":
        return cls(json.loads(path.read_text())) if path.exists() else cls({})

    def count(self, outcome: str) -> int:
        return Counter(said.partition(":")[0] for said in self.outcomes.values())[outcome]

    def named(self, outcome: str) -> list[str]:
        return [test for test, said in self.outcomes.items() if said.partition(":")[0] == outcome]

    def reasons(self) -> set[str]:
        """Return why tests were not run."""
        return {said.partition(": ")[2] for said in self.outcomes.values() if said.startswith("not run")}


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("conformance")
    group.addoption("--tally", type=Path, help="write the outcome of each test to this file")
    group.addoption("--pending", type=Path, help="a list of tests that cannot pass yet")


def pytest_configure(config: pytest.Config) -> None:
    if path := config.getoption("--tally"):
        config.pluginmanager.register(_Recorder(path), "tally-recorder")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not (path := config.getoption("--pending")):
        return
    reasons, used = dict(_pending(path)), set[str]()
    for item in items:
        name = item.name if item.name in reasons else item.name.partition("[")[0]
        if name in reasons:
            used.add(name)
            item.add_marker(pytest.mark.xfail(reason=reasons[name], strict=False))
            item.add_marker(pytest.mark.timeout(PENDING_SECONDS_MAX))
    if unknown := reasons.keys() - used:
        raise pytest.UsageError(f"{path} names tests that do not exist: {', '.join(sorted(unknown))}")


class _Recorder:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._outcomes: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        name = report.nodeid
        if hasattr(report, "wasxfail"):
            self._outcomes[name] = "passed though pending" if report.passed else "pending"
        elif report.failed:
            self._outcomes[name] = "failed"
        elif report.skipped:
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
            reason = reason.removeprefix("Skipped: ")
            if not reason.startswith(FOR_OTHER_BROKERS):
                self._outcomes[name] = f"not run: {reason}"
        elif report.when == "call":
            self._outcomes.setdefault(name, "passed")

    def pytest_sessionfinish(self) -> None:
        self._path.write_text(json.dumps(self._outcomes, indent=1))


def _pending(path: Path) -> Iterator[tuple[str, str]]:
    for line in path.read_text().splitlines():
        name, _, reason = line.partition(" ")
        if name and not name.startswith("#"):
            assert reason.strip(), f"{path}: {name} is pending without a reason"
            yield name, reason.strip()
