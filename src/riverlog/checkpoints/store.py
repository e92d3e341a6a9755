"""The checkpoint store: an application over the client that keeps files in a topic, and answers only for what is kept.

`open` locks out every other store and reads the topic. From then on this is the one writer; should it be replaced, or a
write end in doubt, `usable` is false and another store is to be opened. Files are read back by the offsets of their
records; an upload holds one chunk in memory, however long the file is.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Final

from riverlog.checkpoints.files import changes
from riverlog.checkpoints.files.changes import Decided
from riverlog.checkpoints.files.paths import is_temporary, numbered
from riverlog.checkpoints.files.refusals import Refused
from riverlog.checkpoints.files.tree import File, Folder, Tree
from riverlog.checkpoints.files.upload import Upload
from riverlog.checkpoints.journal import Journal, TopicGone
from riverlog.checkpoints.limits import CHECKPOINT_COMMIT_BYTES_MAX, CHECKPOINT_UNREADABLE_NAMED_MAX
from riverlog.checkpoints.pipelines.decisions import Decisions
from riverlog.checkpoints.pipelines.groups import Groups
from riverlog.checkpoints.pipelines.overview import Overview
from riverlog.checkpoints.pipelines.owners import Owners
from riverlog.checkpoints.pipelines.reports import Reports
from riverlog.checkpoints.pipelines.resets import Resets
from riverlog.checkpoints.records import CHUNKS, FACTS, FileFacts, Unreadable, chunk_owner, content_of, read_fact
from riverlog.checkpoints.writer import Writer
from riverlog.client.errors import KafkaError
from riverlog.client.network.security import Security
from riverlog.client.ports import Ports
from riverlog.model.ids import TopicId
from riverlog.observe.logging import get_logger

_DETAIL_LENGTH_MAX: Final = 300


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
    """Files in a topic."""

    def __init__(self, journal: Journal, owners: Owners, groups: Groups, ports: Ports) -> None:
        self.journal = journal
        self.ports = ports
        self.tree = Tree()
        self.usable = False
        self.writer = Writer(self.tree, self.journal.write, failed=self._fail)
        self.decisions = Decisions(self, owners, groups)
        self.reports = Reports(self)
        self.resets = Resets(self)
        self.overview = Overview(self, groups)
        self.chunks_end = 0
        """No chunk that is still to be written lies below this offset."""
        self._log = get_logger("riverlog.checkpoints")

    async def open(self) -> None:
        """Become the one store, and read what is kept."""
        await self.journal.open()
        try:
            await self._read_facts()
            self.chunks_end = await self.journal.chunks_end()
            await self._end_uploads()
            await self.decisions.settle_all()
        except BaseException:
            await self.close()
            raise
        self.usable = True
        self._log.info("checkpoint store opened", entries=self.tree.entries)

    async def check_topic(self) -> None:
        """Look whether the topic is still there: without it nothing of what is remembered is kept."""
        try:
            await self.journal.check()
        except TopicGone as problem:
            self._fail(problem)
            self.writer.give_up()
        except KafkaError as problem:
            self._log.info("nobody says whether the topic of checkpoints is there", cause=str(problem))

    async def close(self) -> None:
        """Let what is being written come to its end, and let go of the topic."""
        self.usable = False
        await self.reports.close()
        await self.decisions.close()
        await self.writer.close()
        await self.journal.close()

    # Reading ----------------------------------------------------------------------------------------------

    def status(self, path: str) -> Status:
        """Describe a file or folder; Refused where there is none."""
        return _status("", self._found(path))

    def listing(self, path: str) -> list[Status]:
        """Describe what lies in a folder, by name; a file is its own listing."""
        found = self._found(path)
        if isinstance(found, File):
            return [_status("", found)]
        return [_status(name, found.children[name]) for name in sorted(found.children)]

    def file(self, path: str) -> File:
        """Give the file to be read."""
        found = self._found(path)
        if isinstance(found, Folder):
            raise Refused.missing(f"{path} is a folder")
        return found

    async def content(self, file: File, offset: int, length: int) -> AsyncIterator[bytes]:
        """Give the bytes of a file from `offset` on, chunk by chunk."""
        facts = file.facts
        if not facts.chunks:
            content = file.content or await self._inline(file)
            yield content[offset : offset + length]
            return
        position = 0
        for index, place in enumerate(facts.chunks):
            size = min(facts.chunk_bytes, facts.size - position)
            first, last = max(offset - position, 0), min(offset + length - position, size)
            if first < last:
                content = await self._chunk(facts.id, index, place)
                if len(content) != size:
                    raise Refused.failed(f"a chunk of a file has {len(content)} bytes instead of {size}")
                yield content[first:last]
            position += size

    async def whole(self, file: File) -> bytes | None:
        """Give the content of a file of Spark's logs; None where it is longer than any of these."""
        if file.facts.size > CHECKPOINT_COMMIT_BYTES_MAX:
            return None
        return b"".join([part async for part in self.content(file, 0, file.facts.size)])

    # Changing ---------------------------------------------------------------------------------------------

    async def make_folder(self, path: str) -> None:
        """Let there be a folder. That of a checkpoint is made at each start of its query."""
        if path in self.tree.pipelines:
            self.decisions.arrivals.expect(path)
        await self.writer.change((path,), lambda: changes.make_folder(self.tree, path))

    def upload(self, path: str, *, overwrite: bool, user: str) -> Upload:
        """Begin to write a file; Refused where none can be. Nothing is seen of it before it is finished."""
        changes.check_create(self.tree, path, overwrite=overwrite)
        return Upload(self, path, overwrite=overwrite, user=user)

    async def rename(self, source: str, destination: str, *, overwrite: bool) -> None:
        """Move a temporary file to where it is to be kept; Refused where it is missing or something is there.

        As `commits/N` it ends a batch, and all that belongs to the batch with it.
        """
        place = numbered(destination)
        if place is not None and place.log == "commits":
            await self.decisions.rename(source, destination, place, overwrite=overwrite)
            return
        moved = self.tree.file(source)
        await self.move(source, destination, overwrite=overwrite)
        self.decisions.hear_start(destination)
        kept = self.tree.file(destination)
        if place is not None and moved is not None and kept is not None and moved.content:
            self.decisions.hear_plan(place, kept, moved.content)

    async def move(self, source: str, destination: str, *, overwrite: bool) -> None:
        """Rename, and nothing else."""
        size = 0 if (file := self.tree.file(source)) is None else len(file.content)

        def decide() -> Decided:
            return changes.rename(self.tree, source, destination, overwrite=overwrite)

        await self.writer.change((source, destination), decide, size=size)

    async def delete(self, path: str, *, recursive: bool) -> bool:
        """Delete, and tell whether there was anything."""
        outcome = await self.writer.change((path,), lambda: changes.delete(self.tree, path, recursive=recursive))
        return outcome.answer

    async def keep(self, path: str, facts: FileFacts, content: bytes, *, overwrite: bool) -> None:
        """Keep a file that is whole. With a temporary one those go that nobody will rename any more."""
        outdated = self.tree.temporaries.outdated(self.ports.clock.wall_ms()) if is_temporary(path) else []

        def decide() -> Decided:
            kept = changes.keep(self.tree, path, facts, content, overwrite=overwrite)
            return replace(kept, records=(*changes.forget(self.tree, outdated).records, *kept.records))

        await self.writer.change((path, *outdated), decide, size=len(content))

    # Inside -----------------------------------------------------------------------------------------------

    def _found(self, path: str) -> File | Folder:
        found = self.tree.find(path)
        if found is None:
            raise Refused.missing(path)
        return found

    async def _inline(self, file: File) -> bytes:
        record = await self.journal.read(FACTS, file.offset)
        if record is None or record.value is None:
            raise Refused.failed("the file was replaced while it was opened")
        return content_of(record.value)

    async def _chunk(self, file_id: str, index: int, place: int) -> bytes:
        record = await self.journal.read(CHUNKS, place)
        if record is None or record.value is None or chunk_owner(record.key) != (file_id, index):
            raise Refused.failed("the file was replaced while it was read")
        return record.value

    async def _read_facts(self) -> None:
        """Read what is kept; what no store has written is named, counted and passed over."""
        unreadable = 0
        async for record in self.journal.facts():
            try:
                self.tree.apply(read_fact(record.key, record.value), record.offset)
            except Unreadable as problem:
                unreadable += 1
                if unreadable <= CHECKPOINT_UNREADABLE_NAMED_MAX:
                    detail = str(problem)[:_DETAIL_LENGTH_MAX]
                    self._log.warning("record of the checkpoint store passed over", offset=record.offset, detail=detail)
        if unreadable:
            self._log.warning("records of the checkpoint store cannot be read", passed_over=unreadable)

    async def _end_uploads(self) -> None:
        """Let go of the chunks of files that nobody will finish: who wrote them is gone."""
        if not self.tree.uploads:
            return
        counts = dict.fromkeys(self.tree.uploads, 0)
        async for record in self.journal.chunks(min(self.tree.uploads.values())):
            owner = chunk_owner(record.key)
            if owner is not None and owner[0] in counts:
                counts[owner[0]] = max(counts[owner[0]], owner[1] + 1)
        for file_id, count in counts.items():
            decided = Decided(changes.end_upload(file_id, count))
            await self.writer.change((), lambda: decided)  # noqa: B023 - awaited before it changes

    def _fail(self, problem: Exception) -> None:
        self.usable = False
        self._log.warning("the checkpoint store lost its topic, and opens it again when asked", cause=repr(problem))


def store_over(
    bootstrap: str, ports: Ports, security: Security | None = None, topic_id: TopicId | None = None
) -> Store:
    """Make the store of a cluster, over the topic with this id if there was one before; it is to be opened."""
    return Store(
        Journal(bootstrap, ports=ports, security=security, topic_id=topic_id),
        Owners(bootstrap, ports=ports, security=security),
        Groups(bootstrap, ports=ports, security=security),
        ports,
    )


def _status(name: str, found: File | Folder) -> Status:
    if isinstance(found, Folder):
        return Status(name, is_folder=True, children=len(found.children))
    facts = found.facts
    return Status(name, is_folder=False, size=facts.size, modified_ms=facts.modified_ms, user=facts.user)
