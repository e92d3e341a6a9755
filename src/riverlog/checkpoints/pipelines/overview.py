"""Every query whose checkpoint lies here, described: its offsets, how far behind it is, its progress.

A checkpoint is a folder with Spark's log of offsets. What `offsets/N` and `commits/N` say is known of any query; the
rest is what its driver reports, where one does.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from riverlog.checkpoints.files.paths import ROOT, is_temporary, log_file_of
from riverlog.checkpoints.files.refusals import RequestRefused
from riverlog.checkpoints.files.tree import StoredDirectory, StoredFile, Tree, is_checkpoint
from riverlog.checkpoints.pipelines.groups import Groups
from riverlog.checkpoints.pipelines.pipeline import name_of
from riverlog.checkpoints.pipelines.progress import RunState
from riverlog.checkpoints.pipelines.reports import Reports
from riverlog.checkpoints.pipelines.spark_logs import SourceOffset, source_offsets, watermark_ms
from riverlog.checkpoints.storage import FileStorage


@dataclass(slots=True)
class Content:
    """What lies in a checkpoint."""

    files: int = 0
    size: int = 0
    state_size: int = 0
    planned: int | None = None
    committed: int | None = None


class Overview:
    """Describes queries."""

    def __init__(self, storage: FileStorage, reports: Reports, groups: Groups) -> None:
        self._storage = storage
        self._reports = reports
        self._groups = groups

    async def describe_all(self) -> list[dict[str, Any]]:
        """Describe every query, without its partitions."""
        found = []
        for path in checkpoints(self._storage.tree):
            found.append(await self._facts(path))
            await asyncio.sleep(0)  # others may have their turn: a tree can be large
        ends = await self._groups.ends(tuple(each for one in found for each in one["_offsets"]))
        return [_with_lag(one, ends, partitions=False) for one in found]

    async def describe(self, path: str) -> dict[str, Any]:
        """Describe the query with this checkpoint; RequestRefused where there is none."""
        folder = self._storage.tree.find(path)
        if not isinstance(folder, StoredDirectory) or not is_checkpoint(folder):
            raise RequestRefused.missing(path)
        found = await self._facts(path)
        return _with_lag(found, await self._groups.ends(found["_offsets"]), partitions=True)

    async def _facts(self, path: str) -> dict[str, Any]:
        tree = self._storage.tree
        content = content_of(tree, path)
        commit = tree.file(f"{path}/commits/{content.committed}")
        done = await self._plan(path, content.committed)
        planned = done if content.planned == content.committed else await self._plan(path, content.planned)
        watermarks = [found_ms for plan in (done, planned) if (found_ms := watermark_ms(plan))]  # 0: none yet
        facts: dict[str, Any] = {
            "pipeline": name_of(path),
            "checkpoint": path,
            "state": RunState.UNKNOWN.value,
            "since_ms": None if commit is None else commit.facts.modified_ms,
            "batch": content.committed,
            "planned_batch": content.planned,
            "committed_ms": None if commit is None else commit.facts.modified_ms,
            "rows_per_second": None,
            "rows": None,
            "output_rows": None,
            "batch_ms": None,
            "late_rows": None,
            "state_rows": None,
            "state_memory_bytes": None,
            "state_commit_ms": None,
            "state_bytes": content.state_size,
            "checkpoint_files": content.files,
            "checkpoint_bytes": content.size,
            "query": None,
            "run": None,
            "error": None,
            "error_ms": None,
            "_offsets": source_offsets(done),
        }
        if (report := self._reports.of(path)) is not None:
            now_ms = self._storage.ports.clock.wall_ms()
            copied = ("query", "run", "rows", "rows_per_second", "output_rows", "batch_ms", "error_ms", "state_rows")
            facts |= {name: getattr(report, name) for name in (*copied, "state_memory_bytes", "state_commit_ms")}
            facts |= {"state": report.state_at(now_ms).value, "since_ms": report.since_ms(now_ms)}
            facts |= {"late_rows": report.late_rows + report.late_rows_before, "error": report.error or None}
            watermarks += [] if report.watermark_ms is None else [report.watermark_ms]
        facts["watermark_ms"] = max(watermarks, default=None)
        return facts

    async def _plan(self, path: str, number: int | None) -> bytes:
        file = None if number is None else self._storage.tree.file(f"{path}/offsets/{number}")
        content = None if file is None else await self._storage.whole(file)
        return content or b""


def checkpoints(tree: Tree, path: str = ROOT) -> Iterator[str]:
    """Name the folders that are checkpoints, by path."""
    folder = tree.find(path)
    if not isinstance(folder, StoredDirectory):
        return
    if is_checkpoint(folder):
        yield path
        return
    for name in sorted(folder.children):
        yield from checkpoints(tree, f"{path.rstrip('/')}/{name}")


def content_of(tree: Tree, path: str) -> Content:
    """Add up what lies in a checkpoint."""
    content = Content()
    for each_path, each in tree.walk(path):
        if not isinstance(each, StoredFile) or is_temporary(each_path):
            continue
        content.files += 1
        content.size += each.facts.size
        if each_path.startswith(f"{path}/state/"):
            content.state_size += each.facts.size
        log_file = log_file_of(each_path)
        if log_file is not None and log_file.checkpoint == path:
            if log_file.log == "offsets":
                content.planned = max(content.planned or 0, log_file.number)
            elif log_file.log == "commits":
                content.committed = max(content.committed or 0, log_file.number)
    return content


def _with_lag(one: dict[str, Any], ends: dict[tuple[str, int], int], *, partitions: bool) -> dict[str, Any]:
    """Add how far behind the query is; partitions of other clusters have no end here."""
    offsets: tuple[SourceOffset, ...] = one.pop("_offsets")
    rows = [
        {"topic": topic, "partition": index, "offset": offset, "end": end, "lag": max(0, end - offset)}
        for topic, index, offset in offsets
        if (end := ends.get((topic, index))) is not None
    ]
    one["lag"] = sum(row["lag"] for row in rows) if rows else None
    return {**one, "partitions": rows} if partitions else one
