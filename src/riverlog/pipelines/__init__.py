"""Pipelines: windows, joins and late data over Spark's DataFrames, a thin layer in which everything stays reachable.

    from riverlog.pipelines import Pipeline, tumbling

Spark is imported on first use of Pipeline or Stream, so that windows and policies can be named without it.
"""

from typing import TYPE_CHECKING, Any

from riverlog.pipelines.operators.late_rows import Drop, Recompute, SideOutput, recompute, side_output
from riverlog.pipelines.operators.windows import Session, Sliding, Tumbling, session, sliding, tumbling

if TYPE_CHECKING:
    from riverlog.pipelines.operators.row_counts import Counts
    from riverlog.pipelines.pipeline import Output, Pipeline
    from riverlog.pipelines.stream import Stream, Windowed

__all__ = [
    "Counts",
    "Drop",
    "Output",
    "Pipeline",
    "Recompute",
    "Session",
    "SideOutput",
    "Sliding",
    "Stream",
    "Tumbling",
    "Windowed",
    "recompute",
    "session",
    "side_output",
    "sliding",
    "tumbling",
]

_HOMES = {
    "Counts": "riverlog.pipelines.operators.row_counts",
    "Output": "riverlog.pipelines.pipeline",
    "Pipeline": "riverlog.pipelines.pipeline",
    "Stream": "riverlog.pipelines.stream",
    "Windowed": "riverlog.pipelines.stream",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'riverlog.pipelines' has no attribute {name!r}")
    from importlib import import_module

    from riverlog.arrow.extras import need

    need("pyspark")
    return getattr(import_module(_HOMES[name]), name)
