"""What a checkpoint store has: the tree of files in memory, the journal behind it, and the one writer of both.

`open` locks out every other writer and reads the topic. If the journal is taken over later, or a write ends in doubt,
`usable` is false for good. Files are read back by the offsets of their records.
"""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Final

from riverlog.checkpoints.files import changes
from riverlog.checkpoints.files.changes import Change
from riverlog.checkpoints.files.paths import is_temporary
from riverlog.checkpoints.files.refusals import RequestRefused
from riverlog.checkpoints.files.tree import StoredDirectory, StoredFile, Tree
from riverlog.checkpoints.journal import Journal, TopicGone
from riverlog.checkpoints.limits import CHECKPOINT_COMMIT_BYTES_MAX, CHECKPOINT_UNREADABLE_NAMED_MAX
from riverlog.checkpoints.records import CHUNKS, FACTS, FileFacts, Unreadable, chunk_owner, content_of, read_fact
from riverlog.checkpoints.writer import ChangeWriter
from riverlog.client.errors import KafkaError
from riverlog.client.ports import Ports
from riverlog.observe.logging import get_logger

_DETAIL_LENGTH_MAX: Final = 300


class FileStorage:
    """Reads and changes files in a topic."""

    def __init__(self, journal: Journal, ports: Ports) -> None:
        self.journal = journal
        self.ports = ports
        self.tree = Tree()
        self.usable = False
        self.writer = ChangeWriter(self.tree, journal.write, failed=self._fail)
        self.chunks_end = 0
        """No chunk that is still to be written lies below this offset."""
        self._log = get_logger("riverlog.checkpoints")

    async def open(self) -> None:
        """Become the one writer, and read what the topic has."""
        await self.journal.open()
        try:
            await self._read_facts()
            self.chunks_end = await self.journal.chunks_end()
            await self._end_uploads()
        except BaseException:
            await self.close()
            raise
        self.usable = True

    async def check_topic(self) -> None:
        """Stop where the topic was deleted: without it nothing of what is remembered is kept."""
        try:
            await self.journal.check()
        except TopicGone as problem:
            self._fail(problem)
            self.writer.give_up()
        except KafkaError as problem:
            self._log.info("nobody says whether the topic of checkpoints is there", cause=str(problem))

    async def close(self) -> None:
        """Finish the write under way, and disconnect from the topic."""
        self.usable = False
        await self.writer.close()
        await self.journal.close()

    # Reading ----------------------------------------------------------------------------------------------

    def find(self, path: str) -> StoredFile | StoredDirectory:
        """Return the file or folder of this name; RequestRefused where there is none."""
        found = self.tree.find(path)
        if found is None:
            raise RequestRefused.missing(path)
        return found

    def file(self, path: str) -> StoredFile:
        """Return the file of this name; RequestRefused where there is none."""
        found = self.find(path)
        if isinstance(found, StoredDirectory):
            raise RequestRefused.missing(f"{path} is a folder")
        return found

    async def content(self, file: StoredFile, offset: int, length: int) -> AsyncIterator[bytes]:
        """Yield the bytes of a file from `offset` on, chunk by chunk."""
        facts = file.facts
        if not facts.chunks:
            content = file.content or await self._inline(file)
            yield content[offset : offset + length]
            return
        position = 0
        for index, chunk_offset in enumerate(facts.chunks):
            size = min(facts.chunk_bytes, facts.size - position)
            first, last = max(offset - position, 0), min(offset + length - position, size)
            if first < last:
                content = await self._chunk(facts.id, index, chunk_offset)
                if len(content) != size:
                    raise RequestRefused.failed(f"a chunk of a file has {len(content)} bytes instead of {size}")
                yield content[first:last]
            position += size

    async def whole(self, file: StoredFile) -> bytes | None:
        """Return the content of a file of Spark's logs; None where it is longer than any of these."""
        if file.facts.size > CHECKPOINT_COMMIT_BYTES_MAX:
            return None
        return b"".join([part async for part in self.content(file, 0, file.facts.size)])

    # Changing ---------------------------------------------------------------------------------------------

    async def move(self, source: str, destination: str, *, overwrite: bool) -> None:
        """Rename a temporary file; RequestRefused where it is missing or something is in its way."""
        size = 0 if (file := self.tree.file(source)) is None else len(file.content)

        def decide() -> Change:
            return changes.rename(self.tree, source, destination, overwrite=overwrite)

        await self.writer.change((source, destination), decide, size=size)

    async def keep(self, path: str, facts: FileFacts, content: bytes, *, overwrite: bool) -> None:
        """Keep a file that is whole. A temporary one replaces those that nobody will rename any more."""
        outdated = self.tree.temporaries.outdated(self.ports.clock.wall_ms()) if is_temporary(path) else []

        def decide() -> Change:
            kept = changes.keep(self.tree, path, facts, content, overwrite=overwrite)
            return replace(kept, records=(*changes.forget(self.tree, outdated).records, *kept.records))

        await self.writer.change((path, *outdated), decide, size=len(content))

    # Inside -----------------------------------------------------------------------------------------------

    async def _inline(self, file: StoredFile) -> bytes:
        record = await self.journal.read(FACTS, file.offset)
        if record is None or record.value is None:
            raise RequestRefused.failed("the file was replaced while it was opened")
        return content_of(record.value)

    async def _chunk(self, file_id: str, index: int, offset: int) -> bytes:
        record = await self.journal.read(CHUNKS, offset)
        if record is None or record.value is None or chunk_owner(record.key) != (file_id, index):
            raise RequestRefused.failed("the file was replaced while it was read")
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
        """Delete the chunks of files that nobody will finish: who wrote them is gone."""
        if not self.tree.uploads:
            return
        counts = dict.fromkeys(self.tree.uploads, 0)
        async for record in self.journal.chunks(min(self.tree.uploads.values())):
            owner = chunk_owner(record.key)
            if owner is not None and owner[0] in counts:
                counts[owner[0]] = max(counts[owner[0]], owner[1] + 1)
        for file_id, count in counts.items():
            decided = Change(changes.end_upload(file_id, count))
            await self.writer.change((), lambda: decided)  # noqa: B023 - awaited before it changes

    def _fail(self, problem: Exception) -> None:
        self.usable = False
        self._log.warning("the checkpoint store lost its topic, and opens it again when asked", cause=repr(problem))
