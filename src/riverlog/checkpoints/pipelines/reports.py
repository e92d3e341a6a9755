"""The reports of drivers: the latest is in memory, and written to the topic now and then: a restart forgets little.

A report is answered at once, whatever the topic does. When a run begins or ends that is written soon, else the
latest one every ten seconds. What could not be written is in the next report. A driver that is asked to stop
learns it from the answer to its next report; that is in memory alone, and whoever asks repeats it until it is done.
"""

import asyncio
from collections.abc import Iterator

from riverlog.checkpoints.files.changes import Change
from riverlog.checkpoints.files.refusals import RequestRefused
from riverlog.checkpoints.files.tree import StoredDirectory
from riverlog.checkpoints.limits import PROGRESS_KEPT_EVERY_MS, PROGRESS_REPORTED_MAX
from riverlog.checkpoints.pipelines.pipeline import name_of
from riverlog.checkpoints.pipelines.progress import RunProgress, RunState
from riverlog.checkpoints.pipelines.runs import Runs
from riverlog.checkpoints.records import write_fact
from riverlog.checkpoints.storage import FileStorage
from riverlog.observe.samples import PipelineSample


class Reports:
    """Keeps what the drivers of all queries report."""

    def __init__(self, storage: FileStorage) -> None:
        self._storage = storage
        self._latest: dict[str, Runs] = {}
        """What was reported since this store was opened; the tree has what was reported before."""
        self._stops: dict[str, set[str]] = {}
        """Runs that are to stop, by checkpoint."""
        self._due: set[str] = set()
        self._writing: asyncio.Task[None] | None = None

    def note(self, path: str, report: RunProgress) -> bool:
        """Take a report, and return whether its run is to stop.

        RequestRefused for a checkpoint that is not there, and where there are too many.
        """
        if not isinstance(self._storage.tree.find(path), StoredDirectory):
            self._latest.pop(path, None)
            raise RequestRefused.missing(path)
        before = self._runs(path)
        if before is None and sum(1 for _ in self.all()) >= PROGRESS_REPORTED_MAX:
            raise RequestRefused.failed(
                f"the checkpoint store shows how {PROGRESS_REPORTED_MAX:,} queries go, and no more"
            )
        self._latest[path] = known = (before or Runs()).after(report)
        if self._is_due(path, known):
            self._due.add(path)
            if self._writing is None or self._writing.done():
                self._writing = asyncio.get_running_loop().create_task(self._write_due())
        stopping = self._stops.get(path, set())
        if report.state is not RunState.RUNNING:
            stopping.discard(report.run)
        if not stopping:
            self._stops.pop(path, None)
        return report.run in stopping

    def ask_to_stop(self, path: str) -> None:
        """Ask the drivers of a query to stop it; RequestRefused where nobody reports that it runs."""
        report, runs = self.of(path), self._runs(path) or Runs()
        now_ms = self._storage.ports.clock.wall_ms()
        state = RunState.UNKNOWN if report is None else report.state_at(now_ms)
        if report is None or state is RunState.UNKNOWN:
            raise RequestRefused.failed(
                f"nobody reports about {name_of(path)}, so it does not run, or its session is none of riverlog.spark; "
                "stop it where it runs"
            )
        if state is not RunState.RUNNING:
            raise RequestRefused.failed(f"{name_of(path)} does not run: it has {state}")
        self._stops[path] = {each.run for each in runs.alive(now_ms)}

    def forget(self, path: str) -> None:
        """Forget what was reported about a query."""
        self._latest.pop(path, None)
        self._stops.pop(path, None)

    def of(self, path: str) -> RunProgress | None:
        """Return the report that stands for the query whose checkpoint this is."""
        runs = self._runs(path)
        return None if runs is None else runs.shown(self._storage.ports.clock.wall_ms())

    def alive(self, path: str) -> tuple[RunProgress, ...]:
        """Return the runs of a query that report that they run."""
        return (self._runs(path) or Runs()).alive(self._storage.ports.clock.wall_ms())

    def in_doubt(self, path: str) -> tuple[RunProgress, ...]:
        """Return the runs of a query that have fallen silent, so that nobody knows."""
        return (self._runs(path) or Runs()).in_doubt(self._storage.ports.clock.wall_ms())

    def all(self) -> Iterator[tuple[str, RunProgress]]:
        """Yield the latest report of every query whose checkpoint is still there."""
        tree = self._storage.tree
        for path in [path for path in self._latest if not isinstance(tree.find(path), StoredDirectory)]:
            del self._latest[path]
        for path in sorted({*self._latest, *tree.progress}):
            if (shown := self.of(path)) is not None:
                yield path, shown

    def readings(self) -> Iterator[PipelineSample]:
        """Yield the numbers for the metrics."""
        now_ms = self._storage.ports.clock.wall_ms()
        for path, report in self.all():
            yield PipelineSample(
                pipeline=name_of(path),
                running=report.state_at(now_ms) is RunState.RUNNING,
                batch=report.batch,
                batch_at_ms=report.batch_at_ms,
                batch_ms=report.batch_ms,
                rows_per_second=report.rows_per_second,
                watermark_ms=report.watermark_ms,
                late_rows=report.late_rows + report.late_rows_before,
                state_rows=report.state_rows,
            )

    async def close(self) -> None:
        """Wait until what is being written is written."""
        if self._writing is not None:
            await asyncio.wait([self._writing])

    def _runs(self, path: str) -> Runs | None:
        return self._latest.get(path) or self._storage.tree.progress.get(path)

    def _is_due(self, path: str, known: Runs) -> bool:
        """Return whether a run has begun or ended since this was written down, or that was a while ago."""
        kept, now_ms = self._storage.tree.progress.get(path), self._storage.ports.clock.wall_ms()
        if kept is None or kept.states(now_ms) != known.states(now_ms):
            return True
        return known.heard_ms - kept.heard_ms >= PROGRESS_KEPT_EVERY_MS

    async def _write_due(self) -> None:
        while self._due:
            path = self._due.pop()

            def decide(path: str = path) -> Change:
                if path not in self._latest or not isinstance(self._storage.tree.find(path), StoredDirectory):
                    return Change()
                return Change((write_fact(self._latest[path].note(path, self._storage.ports.clock.wall_ms())),))

            try:
                await self._storage.writer.change((f"{path}/progress",), decide)
            except RequestRefused:
                return  # the topic is out of reach: the next report is written instead, by the next store
