"""The checkpoint store: an application over the client that serves files in a topic, and what belongs to their queries.

It holds its parts and passes each request to the one concerned; none of them knows the store. It answers only for what
is kept: once it is no longer `usable`, another store is to be opened.
"""

from dataclasses import dataclass

from riverlog.checkpoints.files import changes
from riverlog.checkpoints.files.paths import log_file_of
from riverlog.checkpoints.files.tree import StoredDirectory, StoredFile
from riverlog.checkpoints.files.upload import Upload
from riverlog.checkpoints.journal import Journal
from riverlog.checkpoints.pipelines.decisions import Decisions
from riverlog.checkpoints.pipelines.groups import Groups
from riverlog.checkpoints.pipelines.overview import Overview
from riverlog.checkpoints.pipelines.owners import Owners
from riverlog.checkpoints.pipelines.reports import Reports
from riverlog.checkpoints.pipelines.resets import Resets
from riverlog.checkpoints.storage import FileStorage
from riverlog.client.network.security import Security
from riverlog.client.ports import Ports
from riverlog.model.ids import TopicId
from riverlog.observe.logging import get_logger


@dataclass(frozen=True, slots=True)
class Status:
    """A file or folder as clients see it."""

    name: str
    is_folder: bool
    size: int = 0
    modified_ms: int = 0
    user: str = ""
    children: int = 0


class Store:
    """Serves files in a topic."""

    def __init__(self, journal: Journal, owners: Owners, groups: Groups, ports: Ports) -> None:
        self.storage = FileStorage(journal, ports)
        self.decisions = Decisions(self.storage, owners, groups)
        self.reports = Reports(self.storage)
        self.resets = Resets(self.storage, self.decisions, self.reports)
        self.overview = Overview(self.storage, self.reports, groups)

    async def open(self) -> None:
        """Become the one store, read what is kept, and end the batches that the store before had prepared."""
        await self.storage.open()
        try:
            await self.decisions.settle_all()
        except BaseException:
            await self.close()
            raise
        get_logger("riverlog.checkpoints").info("checkpoint store opened", entries=self.storage.tree.entries)

    async def close(self) -> None:
        """Finish what is being written, and disconnect from the topic."""
        self.storage.usable = False
        await self.reports.close()
        await self.decisions.close()
        await self.storage.close()

    @property
    def usable(self) -> bool:
        """Whether this is still the one store, and knows what is kept."""
        return self.storage.usable

    # Reading ----------------------------------------------------------------------------------------------

    def status(self, path: str) -> Status:
        """Describe a file or folder; RequestRefused where there is none."""
        return _status("", self.storage.find(path))

    def listing(self, path: str) -> list[Status]:
        """Describe what lies in a folder, by name; a file is its own listing."""
        found = self.storage.find(path)
        if isinstance(found, StoredFile):
            return [_status("", found)]
        return [_status(name, found.children[name]) for name in sorted(found.children)]

    # Changing ---------------------------------------------------------------------------------------------

    async def make_folder(self, path: str) -> None:
        """Create a folder. That of a checkpoint is made at each start of its query."""
        tree = self.storage.tree
        if path in tree.pipelines:
            self.decisions.starting_drivers.expect(path)
        await self.storage.writer.change((path,), lambda: changes.make_folder(tree, path))

    def upload(self, path: str, *, overwrite: bool, user: str) -> Upload:
        """Begin to write a file; RequestRefused where none can be. Nothing is seen of it before it is finished."""
        changes.check_create(self.storage.tree, path, overwrite=overwrite)
        return Upload(self.storage, path, overwrite=overwrite, user=user)

    async def rename(self, source: str, destination: str, *, overwrite: bool) -> None:
        """Move a temporary file to where it is to be kept; RequestRefused where it is missing or something is there.

        As `commits/N` it ends a batch, and all that belongs to the batch with it.
        """
        log_file = log_file_of(destination)
        if log_file is not None and log_file.log == "commits":
            await self.decisions.rename(source, destination, log_file, overwrite=overwrite)
            return
        tree = self.storage.tree
        moved = tree.file(source)
        await self.storage.move(source, destination, overwrite=overwrite)
        self.decisions.note_start(destination)
        kept = tree.file(destination)
        if log_file is not None and moved is not None and kept is not None and moved.content:
            self.decisions.note_plan(log_file, kept, moved.content)

    async def delete(self, path: str, *, recursive: bool) -> bool:
        """Delete a file or folder, and return whether there was one."""
        tree = self.storage.tree
        outcome = await self.storage.writer.change((path,), lambda: changes.delete(tree, path, recursive=recursive))
        return outcome.answer


def store_over(
    bootstrap: str, ports: Ports, security: Security | None = None, topic_id: TopicId | None = None
) -> Store:
    """Return the store of a cluster, to be opened; over the topic with this id if there was one before."""
    return Store(
        Journal(bootstrap, ports=ports, security=security, topic_id=topic_id),
        Owners(bootstrap, ports=ports, security=security),
        Groups(bootstrap, ports=ports, security=security),
        ports,
    )


def _status(name: str, found: StoredFile | StoredDirectory) -> Status:
    if isinstance(found, StoredDirectory):
        return Status(name, is_folder=True, children=len(found.children))
    facts = found.facts
    return Status(name, is_folder=False, size=facts.size, modified_ms=facts.modified_ms, user=facts.user)
