"""Two pipelines in a row: sums of a minute, and the totals of what the first has written."""

from typing import TYPE_CHECKING

from riverlog.pipelines import Pipeline, tumbling

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

first = Pipeline("minutes")
sales = first.stream("sales", schema="key string, number long, at timestamp", time="at", watermark="10 seconds")
sums = sales.window(tumbling("1 minute"), by=["key"]).aggregate(number="sum(number)", sales="count(*)")
sums.to("minutes", key="key")


def totals(minutes: "DataFrame") -> "DataFrame":
    """Add up the minutes of each key."""
    from pyspark.sql import functions as sql

    return minutes.groupBy("key").agg(sql.sum("number").alias("number"), sql.count("*").alias("minutes"))


second = Pipeline("totals")
minutes = second.stream("minutes", schema="key string, number long")
minutes.apply(totals, keys=["key"], updates=True).to("totals", key="key")
