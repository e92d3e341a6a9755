"""A line about a query while it runs: its batch, rows per second, lag, watermark, how long the batch took. Pure."""

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from riverlog.spark.sessions.progress import OBSERVED


def line_of(name: str, progress: Mapping[str, Any]) -> str:
    """Write a batch as Spark accounts for it."""
    sources = list(progress["sources"])
    parts = [
        f"batch {progress['batchId']}",
        f"{_number(progress['numInputRows']):,} rows",
        f"{_rate(progress['processedRowsPerSecond'])} rows/s",
    ]
    behind = lag(sources)
    parts += [] if behind is None else [f"lag {behind:,}"]
    watermark = _watermark((progress["eventTime"] or {}).get("watermark"))
    parts += [] if watermark is None else [f"watermark {watermark}"]
    late = late_rows(progress)
    parts += [f"{late:,} late"] if late else []
    parts.append(f"{_number((progress['durationMs'] or {}).get('triggerExecution', progress['batchDuration'])):,} ms")
    return f"{name}: {', '.join(parts)}"


def lag(sources: Iterable[Mapping[str, Any]]) -> int | None:
    """Count the records behind what the batch has read; None where no source reports it."""
    behind = [
        max(0, end - done.get(partition, 0))
        for source in sources
        if (done := _offsets(source["endOffset"])) is not None
        and (latest := _offsets(source["latestOffset"])) is not None
        for partition, end in latest.items()
    ]
    return sum(behind) if behind else None


def late_rows(progress: Mapping[str, Any]) -> int:
    """Count the rows that came too late in this batch: those that we took out, and those that Spark dropped."""
    ours = sum(
        _number(dict(_fields(metrics)).get("late"))
        for name, metrics in (progress["observedMetrics"] or {}).items()
        if name.startswith(OBSERVED)
    )
    return ours + sum(_number(each["numRowsDroppedByWatermark"]) for each in progress["stateOperators"])


def _offsets(told: Any) -> dict[tuple[str, str], int] | None:
    """Read offsets as sources write them: `{"orders": {"0": 42}}`, perhaps as text."""
    try:
        found = json.loads(told) if isinstance(told, str) else told
        return {(topic, index): int(offset) for topic, each in found.items() for index, offset in each.items()} or None
    except (ValueError, TypeError, AttributeError):
        return None


def _watermark(text: str | None) -> str | None:
    if not text or text.startswith("1970-01-01T00:00:00"):  # Spark's word for none
        return None
    return datetime.fromisoformat(text).strftime("%Y-%m-%d %H:%M:%S")


def _rate(value: Any) -> str:
    number = float(value or 0.0)
    return "0" if number != number else f"{number:,.1f}" if 0 < number < 10 else f"{number:,.0f}"


def _number(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def _fields(metrics: Any) -> Mapping[str, Any]:
    return metrics.asDict() if hasattr(metrics, "asDict") else dict(metrics)
