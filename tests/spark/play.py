"""An example as a play: rows are written portion by portion, and what its pipelines make of them is told in advance.

Spark decides which rows a batch has, and plans that in `offsets/N` before it begins. So the plan is read, and plain
Python says what those batches give: results, and rows that are late. What readers of committed records find is compared
with that: never more, and in the end all of it, once.
"""

import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any, ClassVar, Final

from confluent_kafka import Producer, TopicPartition

import riverlog
from riverlog.checkpoints.pipelines.spark_logs import source_offsets, watermark_ms
from riverlog.pipelines.operators.windows import Window
from tests.e2e.clients import create_topic, read_all
from tests.spark.drivers import File
from tests.support.node import ROOT
from tests.support.relayed import RelayedNode
from tests.support.stream_oracle import Event, windowed
from tests.support.streams import micros
from tests.support.webhdfs import WebHdfs

NINE: Final = datetime(2026, 3, 2, 9, tzinfo=UTC)
PARTITIONS: Final = 2
SECONDS_MAX: Final = 60.0

Row = dict[str, Any]


class Play(ABC):
    """One file of pipelines on a node of its own."""

    file: ClassVar[str]
    """Its path in the repository."""
    queries: ClassVar[tuple[str, ...]]
    inputs: ClassVar[tuple[str, ...]]
    outputs: ClassVar[tuple[str, ...]]

    def __init__(self, relayed: RelayedNode) -> None:
        self.random = Random(11)
        self.portions = 0
        self.foreign = False
        """Whether another client than ours reads."""
        self._relayed = relayed
        self._producer = Producer({"bootstrap.servers": relayed.bootstrap, "enable.idempotence": True, "log_level": 0})
        for topic in (*self.inputs, *self.outputs):
            create_topic(relayed.bootstrap, topic, partitions=PARTITIONS)

    @property
    def told(self) -> File:
        """What a driver is told to run."""
        name = Path(self.file).stem
        return File(name, self._relayed.bootstrap, self._relayed.checkpoints, str(ROOT / self.file))

    def write(self) -> None:
        """Write one more portion: enough to close windows of those before."""
        self.portion(self.portions)
        self.portions += 1

    @abstractmethod
    def portion(self, number: int) -> None:
        """Write the rows of a portion."""

    @abstractmethod
    def expected(self) -> dict[str, Counter[Any]]:
        """Return what the planned batches of all queries give, by output topic."""

    @abstractmethod
    def found(self) -> dict[str, Counter[Any]]:
        """Read what is there, by output topic, in the same form."""

    def check(self) -> None:
        """What is seen is right so far."""
        expected = self.expected()
        for topic, found in self.found().items():
            assert found <= expected[topic], f"{topic} has what no batch gives, or twice: {found - expected[topic]}"

    def is_done(self) -> bool:
        """Return whether all that was written has been taken, and all that it gives is there."""
        return all(map(self._has_taken_all, self.queries)) and self.found() == self.expected()

    def state(self) -> str:
        """Return what is missing."""
        expected, found = self.expected(), self.found()
        missing = {topic: list((expected[topic] - found[topic]).items())[:5] for topic in found}
        return f"missing {missing}; planned {[len(self._plans(query)) for query in self.queries]} batches"

    # For those who know what it gives -----------------------------------------------------------------------------

    def send(self, topic: str, rows: Iterable[Row], *, key: str) -> None:
        for row in rows:
            self._producer.produce(topic, json.dumps(row).encode(), key=str(row[key]).encode())
        assert self._producer.flush(SECONDS_MAX) == 0

    def values(self, topic: str) -> list[Row]:
        """Read all committed rows of a topic."""
        return [row for partition in self._rows(topic).values() for row in partition.values()]

    def batches(self, query: str, topic: str) -> list[list[Row]]:
        """Return the rows of a topic that each batch takes which the query has planned."""
        rows, begins, taken = self._rows(topic), dict.fromkeys(range(PARTITIONS), 0), []
        for plan in self._plans(query):
            batch = []
            for where, partition, end in source_offsets(plan):
                if where == topic:
                    batch += [row for offset, row in rows[partition].items() if begins[partition] <= offset < end]
                    begins[partition] = end
            taken.append(batch)
        return taken

    def windows(
        self,
        query: str,
        batches: list[list[Event]],
        window: Window,
        *,
        delay_ms: int,
        updates: bool = False,
        **more: Any,
    ) -> tuple[Counter[Any], Counter[Any]]:
        """Return results and late rows of all batches; the watermark of each is the one that Spark has planned."""
        outcomes = windowed(batches, window, delay_ms=delay_ms, updates=updates, **more)
        late = Counter(
            (each.pair.event, each.pair.window, each.watermark_ms) for outcome in outcomes for each in outcome.late
        )
        judged_by = [0, *(watermark_ms(plan) for plan in self._plans(query))]
        assert {each[2] for each in late} <= set(judged_by)
        return sum((outcome.results for outcome in outcomes), Counter()), late

    def _has_taken_all(self, query: str) -> bool:
        plans = self._plans(query)
        ends = {(topic, partition): offset for topic, partition, offset in source_offsets(plans[-1])} if plans else {}
        rows = {topic: self._rows(topic) for topic in {topic for topic, _ in ends}}
        return bool(ends) and all(max(rows[topic][index], default=-1) < end for (topic, index), end in ends.items())

    def _plans(self, query: str) -> list[bytes]:
        folder = f"/pipelines/{query}/offsets"
        with WebHdfs(self._relayed.checkpoints) as store:
            numbers = sorted(int(name) for name in store.names(folder) if name.isdigit())
            assert numbers == list(range(len(numbers))), "batches were forgotten"
            return [store.open(f"{folder}/{number}") for number in numbers]

    def _rows(self, topic: str) -> dict[int, dict[int, Row]]:
        """Read what is committed: by our own scan while others wait for it, in the end by a client of others."""
        if self.foreign:
            partitions = [TopicPartition(topic, index) for index in range(PARTITIONS)]
            found = [read_all(self._relayed.bootstrap, partition) for partition in partitions]
            return {index: {at: json.loads(value) for at, value in rows} for index, rows in enumerate(found)}
        rows: dict[int, dict[int, Row]] = {index: {} for index in range(PARTITIONS)}
        columns = ["partition", "offset", "value"]
        for row in riverlog.scan(topic, bootstrap=self._relayed.bootstrap, columns=columns).to_arrow().to_pylist():
            rows[row["partition"]][row["offset"]] = json.loads(row["value"])
        return rows


def at(minutes: float) -> str:
    return (NINE + timedelta(minutes=minutes)).isoformat(timespec="milliseconds")


def span(window: Mapping[str, str]) -> tuple[int, int]:
    """Read a window as results have it."""
    return micros(window["start"]), micros(window["end"])
