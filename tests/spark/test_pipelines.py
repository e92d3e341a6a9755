"""Whole pipelines on a real node: topics in, topics out, late rows and results in one transaction, dead letters."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Producer
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

import riverlog
from riverlog.pipelines import Pipeline, sliding, tumbling
from riverlog.pipelines.operators.row_counts import total
from tests.e2e.clients import create_topic
from tests.support.node import Node
from tests.support.stream_oracle import SECOND_US, Event, disorder, windowed
from tests.support.streams import iso, micros

SCHEMA = "key string, number long, at timestamp"


@pytest.fixture
def run() -> str:
    """Return a name that no other test uses."""
    return uuid4().hex[:8]


def checkpoints(node: Node) -> str:
    return f"{node.addresses['checkpoints']}/pipelines"


def produce(node: Node, topic: str, partitions: dict[int, Sequence[bytes]], *, count: int) -> None:
    """Create a topic and write into some of its partitions; the others are idle."""
    create_topic(node.bootstrap, topic, partitions=count)
    producer = Producer({"bootstrap.servers": node.bootstrap})
    for partition, values in partitions.items():
        for value in values:
            producer.produce(topic, value, partition=partition)
    assert producer.flush(30) == 0


def values(node: Node, topic: str) -> list[dict[str, Any]]:
    table = riverlog.scan(topic, bootstrap=node.bootstrap).to_arrow()
    return [json.loads(value) for value in table["value"].to_pylist()]


def row(event: Event) -> bytes:
    return json.dumps({"key": event.key, "number": event.number, "at": iso(event.at_us)}).encode()


def batches_of(told: Iterable[Any], partitions: dict[int, list[Event]]) -> list[list[Event]]:
    """Find out from Spark's progress which rows each batch had."""
    taken = []
    for progress in told:
        (source,) = progress["sources"]
        starts, ends = (
            next(iter((json.loads(source[name] or "null") or {"": {}}).values()))
            for name in ("startOffset", "endOffset")
        )
        batch = [
            event
            for index, events in partitions.items()
            for event in events[int(starts.get(str(index), 0)) : int(ends[str(index)])]
        ]
        taken.append(batch)
    while not taken[-1]:  # the one in which the watermark closed the last windows
        taken.pop()
    return taken


def results(rows: Iterable[dict[str, Any]]) -> Counter[Any]:
    return Counter(
        ((micros(each["window"]["start"]), micros(each["window"]["end"])), each["key"], each["total"], each["events"])
        for each in rows
    )


def test_windows_over_an_idle_partition_with_a_failure_on_the_way(
    spark: SparkSession, node: Node, run: str, tmp_path: Path
) -> None:
    random = Random(5)
    rows = [
        event
        for batch in disorder(
            random, batches=12, rows=40, keys="abcd", step_us=SECOND_US, disorder_us=4 * SECOND_US,
            stray_us=90 * SECOND_US,
        )
        for event in batch
    ]  # fmt: skip
    partitions: dict[int, list[Event]] = {0: [], 2: []}
    for event in rows:
        partitions[random.choice((0, 2))].append(event)
    newest = max(event.at_us or 0 for event in rows)
    partitions[0].append(Event("end", 0, newest + 1_000 * SECOND_US))
    topic, out, late = f"events-{run}", f"sums-{run}", f"late-{run}"
    produce(node, topic, {index: [row(event) for event in events] for index, events in partitions.items()}, count=3)
    for name in (out, late):
        create_topic(node.bootstrap, name, partitions=2)
    window = sliding("10 seconds", every="4 seconds")

    pipeline = Pipeline(f"sums-{run}", bootstrap=node.bootstrap, spark=spark, checkpoints=checkpoints(node))
    events = pipeline.stream(
        topic, schema=SCHEMA, time="at", watermark="2 seconds", options={"maxOffsetsPerTrigger": len(rows) // 6}
    )
    failed, middle = tmp_path / "failed", iso(newest - 100 * SECOND_US)

    def fail_once(batch: Any) -> Any:
        if not failed.exists() and any(at is not None and at.isoformat() > middle for at in batch["at"].to_pylist()):
            failed.touch()
            raise RuntimeError("the power is gone")
        return batch

    summed = events.map_arrow(fail_once, SCHEMA).window(window, by=["key"], late=f"side-output:{late}")
    summed.aggregate(total="sum(number)", events="count(*)").to(out)
    with pytest.raises(StreamingQueryException, match="the power is gone"):
        pipeline.run(trigger="available-now")
    before = pipeline.queries[0].recentProgress
    pipeline.run(trigger="available-now")

    batches = batches_of([*before, *pipeline.queries[0].recentProgress], partitions)
    assert sum(map(len, batches)) == len(rows) + 1
    expected = windowed(batches, window, delay_ms=2_000)
    assert results(values(node, out)) == sum((each.results for each in expected), Counter())
    lates = [late for each in expected for late in each.late]
    assert Counter(micros(each["row"]["at"]) for each in values(node, late)) == Counter(
        each.pair.event.at_us for each in lates
    )
    again = expected[len(before) :]  # counts are those since the last start
    counts = total(pipeline.counts().values())
    assert (counts.pairs, counts.late) == (sum(each.pairs for each in again), sum(len(each.late) for each in again))
    assert before
    assert len(lates) > 0


def test_two_pipelines_in_a_row_and_dead_letters(spark: SparkSession, node: Node, run: str) -> None:
    start = 1_767_225_600 * SECOND_US
    good = [Event("abc"[index % 3], index, start + index * SECOND_US) for index in range(180)]
    lines = [row(event) for event in good]
    lines[50:50] = [b"no JSON at all", b'{"key": "a", "number": "many"}']
    topic, minutes, most, bad = f"orders-{run}", f"minutes-{run}", f"most-{run}", f"bad-{run}"
    produce(node, topic, {0: lines}, count=1)
    for name in (minutes, most, bad):
        create_topic(node.bootstrap, name, partitions=1)

    first = Pipeline(f"first-{run}", bootstrap=node.bootstrap, spark=spark, checkpoints=checkpoints(node))
    orders = first.stream(topic, schema=SCHEMA, time="at", bad=f"dead-letter:{bad}")
    orders.window(tumbling("1 minute"), by=["key"]).aggregate(total="sum(number)").to(minutes)
    second = Pipeline(f"second-{run}", bootstrap=node.bootstrap, spark=spark, checkpoints=checkpoints(node))
    schema = "window struct<start: timestamp, end: timestamp>, key string, total long"
    sums = second.stream(minutes, schema=schema).filter("total > 1000").select("key", "total")
    sums.to(most, key="key", value="cast(total as string)")
    for _ in range(2):  # the second time there is nothing to do
        first.run(trigger="available-now")
        second.run(trigger="available-now")

    expected: Counter[tuple[int, str]] = Counter()
    for event in good[:120]:  # two windows are closed
        expected[(event.at_us or 0) // (60 * SECOND_US), event.key] += event.number
    assert sorted(each["total"] for each in values(node, minutes)) == sorted(expected.values())
    table = riverlog.scan(most, bootstrap=node.bootstrap).to_arrow()
    assert sorted(map(int, table["value"].to_pylist())) == sorted(sum for sum in expected.values() if sum > 1000)
    dead = riverlog.scan(bad, bootstrap=node.bootstrap).to_arrow()
    assert sorted(dead["value"].to_pylist()) == sorted(lines[50:52])


def test_a_pipeline_runs_in_any_thread(spark: SparkSession, node: Node, run: str) -> None:
    produce(node, f"in-{run}", {0: [b"one", b"two"]}, count=1)
    create_topic(node.bootstrap, f"out-{run}", partitions=1)
    pipeline = Pipeline(f"thread-{run}", bootstrap=node.bootstrap, spark=spark, checkpoints=checkpoints(node))
    pipeline.stream(f"in-{run}").to(f"out-{run}", value="value")
    with ThreadPoolExecutor(1) as threads:
        threads.submit(pipeline.run, trigger="available-now").result()
    table = riverlog.scan(f"out-{run}", bootstrap=node.bootstrap).to_arrow()
    assert table["value"].to_pylist() == [b"one", b"two"]
