"""A driver of Spark in a process of its own: it runs the queries that it is told to run, until it is killed.

    python -m tests.spark.driver '{"master": "local[2,4]", "folder": "/tmp/driver"}'

It is told by lines of JSON, and tells by lines of JSON: that it is ready, and how a query ended.

    copies      every record once more, in its partition: deterministic, without state
    tallies     per key all tokens that its records were ever given; a token is drawn anew whenever its record is read

Or it is told a file: the pipelines in it run together, as under `riverlog pipelines run`.
"""

import json
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as every program of Spark calls it

import riverlog.spark
from riverlog.pipelines.runtime.loader import pipelines_in, run_file


def copies(records: DataFrame) -> DataFrame:
    """Copy each record into the partition where it was."""
    return records.select("key", F.concat(F.lit(b"copy of "), "value").alias("value"), "partition")


def tallies(records: DataFrame) -> DataFrame:
    """Collect the tokens of each key."""
    drawn = records.select("key").mapInArrow(draw, "key binary, token string, weight long")
    tallied = drawn.groupBy("key").agg(F.collect_list("token").alias("tokens"), F.sum("weight").alias("weight"))
    tally = F.to_json(F.struct(F.col("key").cast("string").alias("key"), "tokens", "weight"))
    return tallied.select("key", tally.cast("binary").alias("value"))


def draw(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield each row with a token, another one at each try, and a number that is part of it."""
    for batch in batches:
        tokens = [uuid4() for _ in range(batch.num_rows)]
        columns = [batch["key"], [each.hex for each in tokens], [each.int % 1_000_000 for each in tokens]]
        yield pa.RecordBatch.from_arrays(
            [columns[0], pa.array(columns[1], pa.string()), pa.array(columns[2], pa.int64())],
            names=["key", "token", "weight"],
        )


QUERIES = {"copies": copies, "tallies": tallies}


class Started(Protocol):
    """A query of Spark, or the queries of a file, as far as this driver needs to know."""

    @property
    def name(self) -> str | None: ...
    def awaitTermination(self) -> object: ...  # noqa: N802 - Spark's name
    def stop(self) -> None: ...


class File:
    """All pipelines of a file. Of one that has none, its function `run_pipeline`, again and again."""

    def __init__(self, spark: SparkSession, told: dict[str, Any]) -> None:
        self.name = told["query"]
        os.environ["RIVERLOG_BOOTSTRAP_SERVERS"] = told["bootstrap"]
        spark.conf.set("spark.sql.streaming.checkpointLocation", f"{told['checkpoints']}/pipelines")
        self._module = run_file(Path(told["file"]))
        self._pipelines = pipelines_in(vars(self._module).values())
        self._asked = threading.Event()
        self._runs = (spark, told["bootstrap"], told["checkpoints"])
        for pipeline in self._pipelines:
            pipeline.start()

    def awaitTermination(self) -> None:  # noqa: N802 - Spark's name
        """Wait until they were stopped; raise what one of them failed with."""
        spark, *addresses = self._runs
        spark.createDataFrame([], "nothing long")  # this makes the session that of the thread; else no format is found
        try:
            while any(pipeline.is_active for pipeline in self._pipelines) or not self._asked.is_set():
                if not self._pipelines:
                    self._module.run_pipeline(spark, self._module.Node(*addresses))
                for pipeline in self._pipelines:
                    pipeline.wait(0.5)
        finally:
            self.stop()

    def stop(self) -> None:
        self._asked.set()
        for pipeline in self._pipelines:
            pipeline.stop()


def start(spark: SparkSession, told: dict[str, Any]) -> Started:
    """Start a query as it was told: its name, topics, and checkpoint; or a file."""
    if "file" in told:
        return File(spark, told)
    records = (
        spark.readStream.format("riverlog")
        .option("kafka.bootstrap.servers", told["bootstrap"])
        .option("subscribe", told["input"])
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", told["records_max"])
        .load()
    )
    return (
        QUERIES[told["query"]](records)
        .writeStream.format("riverlog")
        .queryName(told["query"])
        .outputMode("append" if told["query"] == "copies" else "complete")
        .option("kafka.bootstrap.servers", told["bootstrap"])
        .option("topic", told["output"])
        .option("checkpointLocation", told["checkpoint"])
        .start()
    )


def watch(query: Started) -> None:
    """Report how a query ended."""
    try:
        query.awaitTermination()
        problem = None
    except Exception as error:
        problem = str(error)
    tell({"ended": query.name, "problem": problem})


def state(spark: SparkSession, checkpoint: str) -> dict[str, int]:
    """Read the weights of all keys from the state that the last commit names."""
    rows = spark.read.format("statestore").load(checkpoint).select("key.key", "value.*").collect()
    return {bytes(row["key"]).decode(): row["sum"] for row in rows}


def tell(fact: dict[str, Any]) -> None:
    print(json.dumps(fact), flush=True)


def session(folder: Path, master: str) -> SparkSession:
    """Make a session that leaves nothing outside of its folder."""
    conf = {
        "spark.ui.enabled": False,
        "spark.local.dir": folder / "local",
        "spark.sql.warehouse.dir": folder / "warehouse",
        "spark.sql.shuffle.partitions": 2,
        "spark.sql.session.timeZone": "UTC",
    }
    return riverlog.spark.session("riverlog-tests", master=master, conf=conf)


def main() -> None:
    """Do what the lines say until there are no more."""
    arguments = json.loads(sys.argv[1])
    spark = session(Path(arguments["folder"]), arguments["master"])
    tell({"ready": True})
    running: dict[str, Started] = {}
    for line in sys.stdin:
        told = json.loads(line)
        if "query" in told:
            running[told["query"]] = query = start(spark, told)
            threading.Thread(target=watch, args=(query,), daemon=True).start()
        elif "stop" in told:
            running[told["stop"]].stop()
        else:
            tell({"state": state(spark, told["state"])})


if __name__ == "__main__":
    main()
