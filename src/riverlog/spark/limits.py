"""Bounds of Spark's sources and sinks: how much, how long or how often, and what happens beyond."""

from typing import Final

from riverlog.model.limits import INCARNATIONS_REMEMBERED_MAX

SINK_WRITES_PER_BATCH_MAX: Final = INCARNATIONS_REMEMBERED_MAX - 1
"""Writes of one batch, in a query's foreachBatch, where its checkpoint is not on the node; further ones are refused."""
