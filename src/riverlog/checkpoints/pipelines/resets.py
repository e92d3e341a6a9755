"""Resets of queries: in one step the checkpoint is deleted, and replaced by where the query is to begin.

The next run is a new incarnation: Spark gives it a new query id, so none of its batches is taken for one that was
committed before. A query that runs, or may, is refused: a driver that goes on would leave half a checkpoint there.
"""

from riverlog.checkpoints.files import changes
from riverlog.checkpoints.files.changes import Change
from riverlog.checkpoints.files.refusals import RequestRefused
from riverlog.checkpoints.files.tree import StoredDirectory, is_checkpoint
from riverlog.checkpoints.limits import PROGRESS_SILENT_MS_MAX
from riverlog.checkpoints.pipelines.decisions import Decisions
from riverlog.checkpoints.pipelines.overview import content_of
from riverlog.checkpoints.pipelines.pipeline import name_of
from riverlog.checkpoints.pipelines.reports import Reports
from riverlog.checkpoints.pipelines.starts import FILE, Start
from riverlog.checkpoints.records import FileFacts
from riverlog.checkpoints.storage import FileStorage


class Resets:
    """Resets queries."""

    def __init__(self, storage: FileStorage, decisions: Decisions, reports: Reports) -> None:
        self._storage = storage
        self._decisions = decisions
        self._reports = reports

    async def reset(self, path: str, start: Start | None, *, force: bool) -> None:
        """Reset the query with this checkpoint; RequestRefused where there is none, or where it runs."""
        noted = None if start is None else self._file(path, start)

        def decide() -> Change:
            self._check(path, force=force)
            return changes.begin_anew(self._storage.tree, path, noted)

        async def work() -> None:
            await self._storage.writer.change((path,), decide)
            self._reports.forget(path)

        self._check(path, force=force)
        await self._decisions.run_settled(path, work)

    def _check(self, path: str, *, force: bool) -> None:
        folder = self._storage.tree.find(path)
        if not isinstance(folder, StoredDirectory) or not (is_checkpoint(folder) or FILE in folder.children):
            raise RequestRefused.missing(path)
        if alive := self._reports.alive(path):
            runs = ", ".join(each.run for each in alive)
            raise RequestRefused.failed(f"{name_of(path)} runs; stop it first (run {runs})")
        is_known = self._reports.of(path) is not None and not self._reports.in_doubt(path)
        if is_known or not is_checkpoint(folder):
            return
        now_ms = self._storage.ports.clock.wall_ms()
        commit = self._storage.tree.file(f"{path}/commits/{content_of(self._storage.tree, path).committed}")
        if commit is not None and now_ms - commit.facts.modified_ms < PROGRESS_SILENT_MS_MAX:
            raise RequestRefused.failed(
                f"{name_of(path)} has just committed a batch, so it may run; stop it, or wait a minute"
            )
        if not force:
            raise RequestRefused.failed(
                f"nobody reports whether {name_of(path)} runs; make sure that it does not, then repeat with --force"
            )

    def _file(self, path: str, start: Start) -> tuple[str, FileFacts, bytes]:
        content = start.content()
        ports = self._storage.ports
        name = f"{ports.random.getrandbits(128):032x}"
        return f"{path}/{FILE}", FileFacts(name, len(content), ports.clock.wall_ms()), content
