"""Streams of files for tests of pipelines: one file is one batch, and what comes out is kept batch by batch."""

import json
import os
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession

from riverlog.pipelines import Pipeline
from riverlog.pipelines.operators.row_counts import Counts, RowCounter
from tests.support.stream_oracle import Event

SCHEMA = "key string, number long, at timestamp"


class Ran(NamedTuple):
    """What a query did: records by batch, Spark's count of rows that it dropped, our counts."""

    records: dict[int, list[dict[str, Any]]]
    dropped: int
    counts: dict[str, Counts]
    batches: int


def write_batches(folder: Path, batches: Sequence[Sequence[Event]]) -> Path:
    """Write a file for each batch, in an order that Spark sees."""
    folder.mkdir(parents=True)
    for number, batch in enumerate(batches):
        path = folder / f"{number:05}.json"
        rows = [{"key": event.key, "number": event.number, "at": iso(event.at_us)} for event in batch]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
    return folder


def read_batches(spark: SparkSession, folder: Path) -> DataFrame:
    """Read the files as a stream, each as a batch."""
    return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(folder))


def run(pipeline: Pipeline, number: int = 0) -> Ran:
    """Run the query of an output over all that is there, and keep what it would write."""
    output = pipeline.outputs[number]
    kept: dict[int, list[dict[str, Any]]] = defaultdict(list)

    def keep(rows: DataFrame, batch: int) -> None:
        kept[batch] = [row.asDict(recursive=True) for row in rows.collect()]

    writer = pipeline.records(output).writeStream.foreachBatch(keep).outputMode(output.stream.properties.mode)
    query = writer.option("checkpointLocation", pipeline.checkpoint(output)).trigger(availableNow=True).start()
    query.awaitTermination()
    progress = query.recentProgress
    accounts = RowCounter()
    for each in progress:
        accounts.take(str(query.runId), each["batchId"], each["observedMetrics"])
    dropped = sum(operator["numRowsDroppedByWatermark"] for each in progress for operator in each["stateOperators"])
    return Ran(kept, dropped, accounts.operators(), len(progress))


def iso(at_us: int | None) -> str | None:
    return (
        None
        if at_us is None
        else datetime.fromtimestamp(at_us // 1_000_000, UTC)
        .replace(microsecond=at_us % 1_000_000)
        .isoformat(timespec="microseconds")
    )


def micros(text: str) -> int:
    """Read a time as Spark's JSON has it."""
    moment = datetime.fromisoformat(text)
    return int(moment.replace(microsecond=0).timestamp()) * 1_000_000 + moment.microsecond
