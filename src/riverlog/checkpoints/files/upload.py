"""A file on its way in: small ones are one record, larger ones chunks as they arrive. Half a file is not seen."""

from riverlog.checkpoints.files import changes
from riverlog.checkpoints.files.changes import Change
from riverlog.checkpoints.files.paths import is_temporary
from riverlog.checkpoints.files.refusals import RequestRefused
from riverlog.checkpoints.limits import CHECKPOINT_CHUNK_BYTES, CHECKPOINT_CHUNKS_MAX, CHECKPOINT_INLINE_BYTES_MAX
from riverlog.checkpoints.records import CheckpointRecord, FileFacts, UploadBegun, chunk, write_fact
from riverlog.checkpoints.storage import FileStorage


class Upload:
    """Takes the bytes of one file; `finish` keeps it, `discard` leaves nothing of it."""

    def __init__(self, storage: FileStorage, path: str, *, overwrite: bool, user: str) -> None:
        self._storage = storage
        self._path = path
        self._overwrite = overwrite
        self._user = user
        self._id = f"{storage.ports.random.getrandbits(128):032x}"
        self._held = bytearray()
        self._chunks: list[int] = []
        self._size = 0

    async def write(self, content: bytes) -> None:
        """Take more of the file; returns once no more than a chunk of it is in memory."""
        self._held += content
        self._size += len(content)
        while len(self._held) >= CHECKPOINT_CHUNK_BYTES:
            await self._write_chunk(CHECKPOINT_CHUNK_BYTES)

    async def finish(self) -> None:
        """Keep the file; the content of a temporary one is in memory too, or in chunks."""
        temporary = is_temporary(self._path)
        small = len(self._held) <= CHECKPOINT_INLINE_BYTES_MAX and not self._chunks
        if self._held and not (small and (not temporary or self._storage.tree.temporaries.fits(len(self._held)))):
            await self._write_chunk(len(self._held))
        facts = FileFacts(
            self._id,
            self._size,
            self._storage.ports.clock.wall_ms(),
            user=self._user,
            chunks=tuple(self._chunks),
            chunk_bytes=CHECKPOINT_CHUNK_BYTES if self._chunks else 0,
        )
        await self._storage.keep(self._path, facts, bytes(self._held), overwrite=self._overwrite)

    async def discard(self) -> None:
        """Delete the chunks of a file that will never be whole."""
        if self._chunks:
            decided = Change(changes.end_upload(self._id, len(self._chunks)))
            await self._storage.writer.change((), lambda: decided)

    async def _write_chunk(self, size: int) -> None:
        if len(self._chunks) == CHECKPOINT_CHUNKS_MAX:
            raise RequestRefused.failed(f"{self._path} is longer than {CHECKPOINT_CHUNKS_MAX} chunks")
        content = bytes(memoryview(self._held)[:size])
        records: tuple[CheckpointRecord, ...] = (chunk(self._id, len(self._chunks), content),)
        if not self._chunks:
            records += (write_fact(UploadBegun(self._id, self._storage.chunks_end)),)
        outcome = await self._storage.writer.change((), lambda: Change(records), size=size)
        del self._held[:size]
        self._chunks.append(outcome.offsets[0])
        self._storage.chunks_end = max(self._storage.chunks_end, outcome.offsets[0] + 1)
