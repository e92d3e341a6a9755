"""A node behind relays, numbers on it, and drivers that run queries over them, one after another or two at once."""

from collections.abc import Sequence
from pathlib import Path

from tests.spark.drivers import Driver, Query
from tests.spark.numbers import SECONDS_MAX, Numbers
from tests.support.relay import let_pass
from tests.support.relayed import RelayedNode
from tests.support.waiting import until
from tests.support.webhdfs import WebHdfs


class Crew:
    """Drivers that were started ahead, or are left from a test before: a JVM takes its time to start."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._started: list[Driver] = []
        self._idle: list[Driver] = []

    def prepare(self, count: int) -> None:
        """Have so many that nobody uses."""
        while len(self._idle) < count:
            driver = Driver(self._folder / f"d{len(self._started)}")
            self._started.append(driver)
            self._idle.append(driver)

    def take(self) -> Driver:
        """Return one that runs nothing."""
        self.prepare(1)
        return self._idle.pop(0)

    def give_back(self, driver: Driver) -> None:
        """Return it to others, without its queries."""
        for name in list(driver.running):
            driver.stop(name)
        self._idle.append(driver)

    def close(self) -> None:
        for driver in self._started:
            driver.kill()


class Stage:
    """What a test needs: see above."""

    def __init__(self, relayed: RelayedNode, names: Sequence[str], *, checkpoints: str | None = None) -> None:
        self.relayed = relayed
        self.names = names
        self.numbers = Numbers(relayed.bootstrap)
        self._is_group = checkpoints is None
        """Whether the queries are groups: those are whose checkpoints lie on the node."""
        self.queries: list[Query] = [self.numbers.query(name, checkpoints or relayed.checkpoints) for name in names]

    def run(self, driver: Driver) -> None:
        """Make a driver run the queries."""
        driver.until_ready().run(*self.queries)

    def until_done(self, driver: Driver) -> None:
        """Wait until all queries have come to the end of the numbers, while nothing is struck."""
        self.relayed.watch(let_pass)

        def done() -> bool:
            driver.check()
            return all(self.numbers.is_done(name) for name in self.names)

        until(done, driver.tail, seconds_max=SECONDS_MAX)

    def check(self) -> None:
        """What is seen is right so far."""
        if "copies" in self.names:
            self.numbers.check_copies()
            if self._is_group:
                self.numbers.check_group()
        if "tallies" in self.names:
            self.numbers.check_tallies()

    def check_end(self, driver: Driver) -> None:
        """What is seen in the end is all, once, and the state is that of what is seen."""
        self.check()
        if "copies" in self.names:
            assert self.numbers.copies() == self.numbers.written
        if "tallies" in self.names:
            assert self.numbers.offsets("tallies") == list(map(len, self.numbers.written))
            last = self.numbers.last_tallies()
            assert sum(len(tally["tokens"]) for tally in last.values()) == self.numbers.count
            checkpoint = next(query.checkpoint for query in self.queries if query.query == "tallies")
            assert driver.state(checkpoint) == {key: tally["weight"] for key, tally in last.items()}
            with WebHdfs(self.relayed.checkpoints) as store:
                batches = [int(name) for name in store.names("/pipelines/tallies/commits") if name.isdigit()]
            assert len(self.numbers.tallies()["0"]) == max(batches) + 1, "each batch has one; Spark deletes old commits"
