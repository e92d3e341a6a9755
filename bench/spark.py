"""What the lines of Spark share: the ways to a topic, topics full of orders, and a meter for time and CPU.

A way is a format with its options: riverlog's, Spark's own connector, and the same as well tuned as its options allow.
All are measured in one warm Spark, one after the other, on the same topic of the same node.
"""

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from bench import clients, loadgen, machine
from bench.clients import fresh_topic
from bench.connector import QUERY_SETTINGS
from bench.frames import batch_load
from bench.trial import Failed, Trial
from riverlog.records.record import BatchBuilder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PARTITIONS: Final = 4
VALUE_BYTES: Final = 100
MARKERS_MAX: Final = 1_000
BATCH_BYTES_MAX: Final = 900_000
RECORD_OVERHEAD_BYTES: Final = 20
CUSTOMERS: Final = 1_000
BATCH_SPAN_MS: Final = 100_000
"""From the first to the last record of a batch: ten windows of 10 s."""
ORDER_SCHEMA: Final = "`order` LONG, customer STRING, amount DOUBLE, note STRING"
MILLION: Final = 1_000_000
WARM_UPS: Final = 8
OURS: Final = "riverlog"

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Way:
    """How a program names a topic to Spark."""

    name: str
    format: str
    options: Mapping[str, str] = field(default_factory=dict)

    def addressed(self, direction: Any, trial: Trial, **options: str) -> Any:
        """Set for a reader or writer of Spark this format, the node's address, and options."""
        bootstrap = {"kafka.bootstrap.servers": f"{trial.node.host}:{trial.node.port}"}
        return direction.format(self.format).options(**bootstrap, **self.options, **options)

    def rows(self, trial: Trial, topic: str, **options: str) -> "DataFrame":
        """Return a topic as it is now."""
        spark = trial.workshop.spark(own_settings() if self.format == OURS else {})
        rows: DataFrame = self.addressed(spark.read, trial, subscribe=topic, **options).load()
        return rows

    def stream(self, trial: Trial, topic: str, spark: "SparkSession", **options: str) -> "DataFrame":
        """Return a topic from its start on."""
        chosen = {"subscribe": topic, "startingOffsets": "earliest", **options}
        rows: DataFrame = self.addressed(spark.readStream, trial, **chosen).load()
        return rows


def own_settings() -> dict[str, str]:
    """Return the settings that riverlog has for queries; those of the whole Spark it has from its start."""
    from riverlog.spark import settings

    return {name: value for name, value in settings().items() if name.startswith(QUERY_SETTINGS)}


RIVERLOG: Final = Way(OURS, "riverlog")
CONNECTOR: Final = Way("connector", "kafka")
TUNED: Final = Way(
    "tuned",
    "kafka",
    {
        "kafka.max.partition.fetch.bytes": str(16 * 1024 * 1024),
        "kafka.max.poll.records": "20000",
        "kafka.receive.buffer.bytes": str(4 * 1024 * 1024),
    },
)


def ways_at(trial: Trial, *ways: Way) -> list[Way]:
    """Choose what is measured at this broker: at another than ours, only what its users would use."""
    return [way for way in ways if trial.contender.name == OURS or way is not RIVERLOG]


class Meter:
    """Wall time, and the CPU time of this process and all that it has started: Spark with its workers, and brokers."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.cpu_seconds = 0.0

    def plus(self, other: "Meter") -> "Meter":
        """Return both together."""
        summed = Meter()
        summed.seconds, summed.cpu_seconds = self.seconds + other.seconds, self.cpu_seconds + other.cpu_seconds
        return summed

    def __enter__(self) -> Self:
        self._cpu_before = machine.usage([os.getpid()]).ours
        self._begin = time.monotonic()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.seconds = time.monotonic() - self._begin
        self.cpu_seconds = machine.usage([os.getpid()]).ours - self._cpu_before


def warm(trial: Trial, what: str, measure: Callable[[], Result]) -> Result:
    """Measure something; what this Spark has never done is done once before, for its compiler."""
    if trial.workshop.is_new(what):
        measure()
    return measure()


def in_turn(trial: Trial, what: str, measures: Mapping[str, Callable[[], Result]]) -> dict[str, Result]:
    """Measure each; where this Spark has never done it, all do it some times before, for the compiler."""
    if trial.workshop.is_new(what):
        for measure in [*measures.values()] * WARM_UPS:
            measure()
    return {name: measure() for name, measure in measures.items()}


@contextlib.contextmanager
def orders(trial: Trial, *, rows: float, value_bytes: int) -> Iterator[tuple[str, int]]:
    """Yield a topic that holds about so many orders, and how many they are."""
    batch = BatchBuilder()
    end_ms = round(time.time() * 1000)
    count = BATCH_BYTES_MAX // (value_bytes + RECORD_OVERHEAD_BYTES)
    for number in range(count):
        text = order(number, value_bytes)
        batch.append(b"%08d" % number, text, timestamp_ms=end_ms - BATCH_SPAN_MS + number * BATCH_SPAN_MS // count)
    requests = max(1, round(rows / count / PARTITIONS))
    with fresh_topic(trial.node, partitions=PARTITIONS) as topic:
        load = batch_load(topic, batch.build(), partitions=PARTITIONS)
        loadgen.replay(load, trial.node, in_flight=2, seconds=60, requests_max=requests)
        yield topic, requests * count * PARTITIONS


def order(number: int, size: int) -> bytes:
    """Write an order as JSON of exactly so many bytes."""
    text = f'{{"order":{number},"customer":"c{number % CUSTOMERS:04}","amount":{number % 10_000 / 100:.2f},"note":"'
    return f'{text}{number:0{size - len(text) - 2}}"}}'.encode()


def expect_rows(seen: int, expected: int) -> None:
    """Fail a run in which Spark saw other rows than there are."""
    if seen != expected:
        raise Failed(f"the topic has {expected} records, but Spark has seen {seen}")


def written_columns(number: str) -> tuple[str, str]:
    """Return the key and the value of 100 B, as expressions over a column of numbers."""
    digits = f"lpad(CAST({number} AS STRING), 8, '0')"
    value = f"""concat('{{"order":"', {digits}, '","note":"{"x" * (VALUE_BYTES - 30)}"}}')"""
    return f"CAST({digits} AS BINARY) AS key", f"CAST({value} AS BINARY) AS value"


def expect_written(trial: Trial, topic: str, count: int) -> None:
    """Fail a run whose rows are not there for readers of committed records; markers take offsets, too."""
    end = clients.end_offset(trial.node, topic, PARTITIONS, committed=True)
    if not count <= end <= count + MARKERS_MAX:
        raise Failed(f"{count} rows were written, but the topic ends at {end}")
