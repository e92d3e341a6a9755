"""Drivers and workers of Spark are killed at every step of a batch: the output is what it must be, exactly once.

One query copies records. One collects tokens that are drawn anew whenever a record is read again, so that its output
and its state agree only if both are of the same attempt. Each driver has a disk of its own, which is lost with it.
Small in `make test`; `make chaos` strikes five times at each step (SPARK_KILLS=5) and prints how often it did.
"""

import os
import random
import signal
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

from riverlog.records.batch import headers
from tests.spark.drivers import Driver
from tests.spark.stage import Crew, Stage
from tests.spark.strikes import FOLDER_STEPS, STEPS, WITH_NODE, WRITTEN, Step, Trap
from tests.support.node import Node
from tests.support.relay import Passing
from tests.support.relayed import RelayedNode

KILLS: Final = int(os.environ.get("SPARK_KILLS", "0"))
"""How often at each step; 0 is the small form: at two steps, once."""
FEW: Final = ("after the tasks' flush", WITH_NODE)
SECONDS_MAX: Final = 900 + 7 * 2 * KILLS * 60


@pytest.mark.timeout(SECONDS_MAX)
@pytest.mark.parametrize("place", ["node", "folder"] if KILLS else ["node"])
def test_a_driver_is_killed_at_every_step(relayed: RelayedNode, crew: Crew, tmp_path: Path, place: str) -> None:
    if place == "folder":
        stage, steps = Stage(relayed, ["copies"], checkpoints=str(tmp_path)), FOLDER_STEPS
    else:
        stage, steps = Stage(relayed, ["copies", "tallies"] if KILLS else ["tallies"]), STEPS
    strike_drivers(stage, crew, steps, [*steps] * KILLS or [*FEW])


def strike_drivers(stage: Stage, crew: Crew, steps: dict[str, Step], labels: list[str]) -> None:
    """Kill one driver after another, each with its disk; the last one comes to the end."""
    chance = random.Random(os.environ.get("KILLS_SEED", "7"))
    counts: Counter[str] = Counter()
    for turn, label in enumerate(labels):
        driver = crew.take()
        killing = Killing(driver, stage.relayed.node if label == WITH_NODE else None)
        trap = Trap(
            steps[label],
            stage.names[turn % len(stage.names)],
            killing.strike,
            spared=chance.randrange(3) if KILLS else 0,
        )
        stage.relayed.watch(trap)
        stage.numbers.write()
        stage.run(driver)
        crew.prepare(1)
        trap.until_struck(driver.check, driver.tail)
        counts[label] += 1
        counts[f"{label}: no marker was written yet"] += killing.finish()
        driver.lose_disk()
        stage.check()
    stage.numbers.write()
    driver = crew.take()
    stage.run(driver)
    stage.until_done(driver)
    stage.check_end(driver)
    crew.give_back(driver)
    tell(counts)


class Killing:
    """The death of a driver, and of a node as soon as its coordinator has written something."""

    def __init__(self, driver: Driver, node: Node | None) -> None:
        self._driver = driver
        self._node = node
        self._written = self._markers = 0
        self._thread = threading.Thread(target=self._kill_node)

    def strike(self, _: Passing) -> None:
        self._driver.kill()
        if self._node is not None:
            self._written = _transactions_bytes(self._node)
            self._markers = _count_markers(self._node)
            self._thread.start()

    def finish(self) -> bool:
        """Wait for all deaths, let the node live again, and tell whether it died before it wrote a marker."""
        if self._node is None:
            return False
        self._thread.join()
        was_between = _count_markers(self._node) == self._markers
        self._node.start()
        return was_between

    def _kill_node(self) -> None:
        assert self._node is not None
        while _transactions_bytes(self._node) == self._written:
            assert self._node.alive
        self._node.kill()


def _transactions_bytes(node: Node) -> int:
    """Measure what coordinators have written about transactions."""
    return sum(path.stat().st_size for path in node.data.glob("__transaction_state-*/*.log"))


def _count_markers(node: Node) -> int:
    """Count the markers in the output."""
    files = [path for name in ("copies", "tallies") for path in node.data.glob(f"{name}-*/*.log")]
    return sum(header.is_control for path in files for _, header in headers(path.read_bytes()))


def test_a_killed_attempt_of_a_task_leaves_nothing_behind(relayed: RelayedNode, crew: Crew) -> None:
    stage = Stage(relayed, ["copies"])
    driver = crew.take()
    stage.numbers.write(1)
    for turn in range(KILLS or 1):

        def strike(passing: Passing) -> None:
            os.kill(driver.owner_of(passing.port, relayed.kafka.port), signal.SIGKILL)

        trap = Trap(WRITTEN, "copies", strike)
        relayed.watch(trap)
        if turn == 0:
            stage.run(driver)
        else:
            stage.numbers.write(1)
        trap.until_struck(driver.check, driver.tail)
        stage.until_done(driver)  # the query has never ended
        stage.check()
        everything = stage.numbers.copies(isolation="read_uncommitted")
        assert sum(map(len, everything)) > stage.numbers.count, "the attempt had written nothing"
    stage.check_end(driver)
    crew.give_back(driver)
    tell(Counter({"a Python worker in its task": KILLS or 1}))


def tell(counts: Counter[str], what: str = "killed") -> None:
    """Print how often something was killed, by step."""
    for label, count in (+counts).items():
        print(f"\n  {what} {count} times: {label}", end="", file=sys.stderr)
