"""Bounds of pipelines: how much, how long or how often, and what happens beyond."""

from typing import Final

ACCOUNTED_BATCHES_MAX: Final = 1_000
"""Batches of a pipeline's query that are counted each; Spark reports the last hundred more than once."""
