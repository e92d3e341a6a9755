"""What a run of several test processes did not run, and why: each process notes it, and the last line of the run tells.

With NOT_RUN=FOLDER in its environment, every pytest of this repository writes a file into that folder.
`python -m tests.support.not_run FOLDER` prints their sum, and what no target but a longer one runs.
"""

import json
import os
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import pytest

VARIABLE: Final = "NOT_RUN"
SLOW: Final = "marked slow: they take minutes (make spark)"
LONG_FORMS: Final = (
    "make wheel (a new environment, and the README as printed)",
    "make conformance (clients in Java, Go and JavaScript, and their own test suites)",
    "make sim and make fuzz (more seeds), make chaos (more kills), make bench (measurements)",
)


class NotRun:
    """Count the tests of this process that are skipped or deselected, by reason."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._reasons: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped and not hasattr(report, "wasxfail") and isinstance(report.longrepr, tuple):
            self._reasons[report.longrepr[2].removeprefix("Skipped: ")] += 1

    def pytest_deselected(self, items: Iterable[pytest.Item]) -> None:
        for item in items:
            self._reasons[SLOW if item.get_closest_marker("slow") else "not selected"] += 1

    def pytest_sessionfinish(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        (self._folder / f"{os.getpid()}.json").write_text(json.dumps(self._reasons))


def summary(reasons: Mapping[str, int]) -> str:
    """Return what was not run, a line for each reason, the most tests first."""
    lines = [
        f"  {count:,} {'test' if count == 1 else 'tests'}: {reason}" for reason, count in Counter(reasons).most_common()
    ]
    return "\n".join(["not run:", *lines, *(f"  {each}" for each in LONG_FORMS)])


def main(folder: str) -> None:
    """Print what the processes of a run have noted."""
    total: Counter[str] = Counter()
    for path in Path(folder).glob("*.json"):
        total.update(json.loads(path.read_text()))
    print(summary(total))


if __name__ == "__main__":
    main(sys.argv[1])
