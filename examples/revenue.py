"""Orders in, revenue per shop and ten minutes out: a pipeline on Spark, exactly once. What `riverlog demo` shows.

Starts `riverlog dev` on a folder that stays, sends an hour of orders, many of them out of order, and lets Spark add up
what each shop took: windows over event time, read from a topic and written to a topic, with the checkpoint in the log.
A second run sends the next hour, and the pipeline goes on where it stopped: windows that were open are finished then.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

import riverlog.spark
from riverlog import Admin, KafkaError, Producer

SHOPS = ("Lisbon", "Oslo", "Turin")
ORDERS_PER_HOUR = 3_000
OPENING = datetime.fromisoformat("2026-03-02T09:00:00+00:00")
SETTINGS = {"spark.ui.enabled": False, "spark.sql.session.timeZone": "UTC"}
SHUFFLED_MINUTES = 5
"""How far behind the clock an order may arrive; the pipeline waits ten minutes for them."""


class Node(NamedTuple):
    """The addresses that the node prints once it is ready."""

    kafka: str
    checkpoints: str


def main() -> None:
    """Tell the story from start to end; every line printed is something that has just happened."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="riverlog-demo", help="the node's folder; it stays (default: %(default)s)")
    folder = parser.parse_args().data
    with node_on(folder) as node:
        hour = asyncio.run(send_orders(node.kafka))
        before = described(node)
        if before is None:
            say("the pipeline is new: it starts with the first order")
        else:
            say(f"the pipeline goes on where it stopped, after batch {before['batch']}: {before['lag']:,} orders wait")

        started = time.monotonic()
        spark = riverlog.spark.session("revenue", master="local[2]", conf=SETTINGS)
        say(f"started Spark {spark.version} on this machine in {time.monotonic() - started:.1f} s")
        started = time.monotonic()
        run_pipeline(spark, node)
        say(f"the pipeline read all orders, and stopped, in {time.monotonic() - started:.1f} s")
        spark.stop()

        revenue = read(node.kafka, "revenue")
        show(revenue)
        check(read(node.kafka, "orders"), revenue)
        say("what the command line knows about it:\n")
        for words in (("pipelines", "describe", "revenue"), ("lag", "--group", "revenue", "-o", "table")):
            print(f"$ riverlog {' '.join(words)}", riverlog_says(node, *words), sep="\n")
    say(f"stopped the node; {folder} has everything, and the next run goes on with hour {hour + 2}")
    invite(folder)


def invite(folder: str) -> None:
    """Say where to look."""
    command = Path(sys.executable).with_name("riverlog")
    shown = command.relative_to(Path.cwd()) if command.is_relative_to(Path.cwd()) else command
    print("\nLook around, with the node in one terminal and the rest in another:\n")
    print(f"  {shown} dev --data {folder}")
    for words in (
        "pipelines list",
        "consume revenue --from-beginning -e",
        "scan orders --offset -5",
        "groups describe revenue",
    ):
        print(f"  {shown} {words}")
    print()


async def send_orders(bootstrap: str) -> int:
    """Send the next hour of orders, shuffled by some minutes, and tell the how manieth that is."""
    async with Admin(bootstrap) as admin:
        for topic, partitions in (("orders", 3), ("revenue", 1)):
            try:
                await admin.create_topic(topic, partitions=partitions)
            except KafkaError as problem:
                if problem.code.name != "TOPIC_ALREADY_EXISTS":
                    raise
        partitions = [riverlog.TopicPartition("orders", index) for index in range(3)]
        ends = await admin.list_offsets(dict.fromkeys(partitions, "latest"))
    hour = sum(end.offset for end in ends.values()) // ORDERS_PER_HOUR
    orders = an_hour_of_orders(hour)
    async with Producer(bootstrap) as producer:
        for order in orders:
            producer.send_soon("orders", json.dumps(order), key=order["shop"])
    arrived = [order["placed_at"] for order in orders]
    behind = sum(1 for one, next_one in pairwise(arrived) if next_one < one)
    say(f"sent {len(orders):,} orders, hour {hour + 1} since the opening; {behind:,} came behind a younger one")
    return hour


def an_hour_of_orders(hour: int) -> list[dict[str, Any]]:
    """Make up the orders of an hour, in the order in which they arrive; the same hour is always the same."""
    random = Random(hour)
    begin = OPENING + timedelta(hours=hour)
    orders = []
    for number in range(ORDERS_PER_HOUR):
        placed_at = begin + timedelta(seconds=3600 * number / ORDERS_PER_HOUR)
        late = timedelta(minutes=random.random() * SHUFFLED_MINUTES) if random.random() < 0.3 else timedelta()
        order = {
            "id": hour * ORDERS_PER_HOUR + number,
            "shop": random.choice(SHOPS),
            "cents": random.randrange(100, 20_000),
            "placed_at": placed_at.isoformat(timespec="milliseconds"),
        }
        orders.append((placed_at + late, order))
    return [order for _, order in sorted(orders, key=lambda each: each[0])]


def run_pipeline(spark: SparkSession, node: Node) -> None:
    """Read what is new, add it up by shop and window, write every window that is complete."""
    orders = (
        spark.readStream.format("riverlog")
        .option("kafka.bootstrap.servers", node.kafka)
        .option("subscribe", "orders")
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", 1_000)
        .load()
    )
    query = (
        revenue_of(orders)
        .writeStream.format("riverlog")
        .option("kafka.bootstrap.servers", node.kafka)
        .option("topic", "revenue")
        .option("checkpointLocation", f"{node.checkpoints}/pipelines/revenue")
        .outputMode("append")
        .trigger(availableNow=True)  # take what is there, then stop; without this line it runs for ever
        .start()
    )
    query.awaitTermination()


def revenue_of(orders: DataFrame) -> DataFrame:
    """Turn records of orders into records of revenue: ordinary Spark, nothing of riverlog in it."""
    parsed = orders.select(
        f.from_json(f.col("value").cast("string"), "shop string, cents long, placed_at timestamp").alias("order")
    )
    taken = (
        parsed.select("order.*")
        .withWatermark("placed_at", "10 minutes")
        .groupBy(f.window("placed_at", "10 minutes"), "shop")
        .agg(f.count("*").alias("orders"), f.sum("cents").alias("cents"))
    )
    begin = f.date_format("window.start", "yyyy-MM-dd'T'HH:mm")
    value = f.to_json(f.struct(begin.alias("window"), "shop", "orders", "cents"))
    return taken.select(f.col("shop").alias("key"), value.alias("value"))


def show(revenue: list[dict[str, Any]]) -> None:
    """Print the last windows that are complete, shops side by side."""
    table: dict[str, dict[str, int]] = defaultdict(dict)
    for row in revenue:
        table[row["window"]][row["shop"]] = row["cents"]
    say(f"revenue by window and shop, {len(table)} windows in all; the last ones:\n")
    print(f"    {'from':<18}" + "".join(f"{shop:>12}" for shop in SHOPS))
    for window in sorted(table)[-6:]:
        print(
            f"    {window.replace('T', ' '):<18}"
            + "".join(f"{table[window].get(shop, 0) / 100:>12,.2f}" for shop in SHOPS)
        )
    print()


def check(orders: list[dict[str, Any]], revenue: list[dict[str, Any]]) -> None:
    """Add up by hand: each window is there once, and has every order once."""
    expected: Counter[tuple[str, str]] = Counter()
    for order in orders:
        placed_at = datetime.fromisoformat(order["placed_at"])
        window = placed_at.replace(minute=placed_at.minute // 10 * 10)
        expected[window.strftime("%Y-%m-%dT%H:%M"), order["shop"]] += order["cents"]
    found = {(row["window"], row["shop"]): row["cents"] for row in revenue}
    assert len(found) == len(revenue), "a window was written twice"
    assert found == {place: expected[place] for place in found}, "a window has other orders than were sent for it"
    counted = sum(row["orders"] for row in revenue)
    say(
        f"counted by hand: all {len(found)} sums are right, with {counted:,} orders, each once; "
        f"{len(orders) - counted:,} are in windows that are still open"
    )


def read(bootstrap: str, topic: str) -> list[dict[str, Any]]:
    """Give all committed records of a topic, as a table would show them."""
    values = riverlog.scan(topic, bootstrap=bootstrap, columns=["value"]).to_arrow().column("value").to_pylist()
    return [json.loads(value) for value in values]


def described(node: Node) -> dict[str, Any] | None:
    """Ask the node what it knows about the pipeline; nothing before its first batch."""
    listed = [json.loads(line) for line in riverlog_says(node, "pipelines", "list", "-o", "json").splitlines()]
    return next((each for each in listed if each["pipeline"] == "revenue" and each["batch"] is not None), None)


def riverlog_says(node: Node, *words: str) -> str:
    """Run a command as a user would."""
    command = [str(Path(sys.executable).with_name("riverlog")), *words]
    where = ["--store", node.checkpoints] if words[0] == "pipelines" else ["-b", node.kafka]
    return subprocess.run([*command, *where], capture_output=True, text=True, check=True).stdout


@contextmanager
def node_on(folder: str) -> Iterator[Node]:
    """Run a node in a process of its own, on free ports; give the addresses that it prints once it is ready."""
    command = [str(Path(sys.executable).with_name("riverlog")), "dev", "--port", "0", "--data", folder]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    try:
        ready = process.stdout.readline()
        if not ready:
            raise SystemExit(f"the node did not start; run `{' '.join(command)}` to see why")
        addresses = dict(word.split("=", 1) for word in ready.split() if "=" in word)
        print()
        say(f"started a node: {ready.strip()}")
        yield Node(addresses["kafka"], addresses["checkpoints"])
    finally:
        process.terminate()
        code = process.wait(20)
        process.stdout.close()
    assert code == 0


def say(what: str) -> None:
    print(f"· {what}", flush=True)


if __name__ == "__main__":
    main()
