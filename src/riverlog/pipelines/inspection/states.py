"""What windows and joins of a query keep between batches, read from its checkpoint by Spark's own reader of state."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class State(NamedTuple):
    """The state of one operator; a join has one for each side."""

    operator: int
    name: str
    side: str | None
    frame: "DataFrame"
    """Columns `partition`, `key` and `value`."""

    def about(self) -> dict[str, object]:
        """Describe whose state it is."""
        told: dict[str, object] = {"operator": self.operator, "name": self.name}
        return told if self.side is None else {**told, "side": self.side}


def read_state(spark: "SparkSession", checkpoint: str, *, operator: int | None = None) -> Iterator[State]:
    """Return the state of each operator of a query behind its last committed batch."""
    listed = spark.read.format("state-metadata").load(checkpoint).select("operatorId", "operatorName").distinct()
    for row in sorted(listed.collect()):
        if operator is not None and row.operatorId != operator:
            continue
        sides = ("left", "right") if "join" in row.operatorName.lower() else (None,)
        for side in sides:
            read = spark.read.format("statestore").option("operatorId", row.operatorId)
            if side is not None:
                read = read.option("joinSide", side)
            frame = read.load(checkpoint).selectExpr("partition_id AS partition", "key", "value")
            yield State(row.operatorId, row.operatorName, side, frame)
