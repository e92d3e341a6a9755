"""What the world must offer: clock, disk, network, randomness, and somewhere to run blocking work.

The real ones live in `world/` and are handed out by the node alone; the simulation hands out its own. Waiting
is asyncio's: in a simulation the event loop itself runs on virtual time. Files and sockets are synchronous and
never wait, except for `sync`, `sync_folder` and reads of what is not cached, which callers send through `Workers`.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from typing import NamedTuple, Protocol, TypeVar

from riverlog.model.ids import Address

T = TypeVar("T")

Buffer = bytes | bytearray | memoryview


class Clock(Protocol):
    """Two clocks: one that only goes forward, for waiting, and the wall's, for timestamps."""

    def monotonic(self) -> float:
        """Return seconds since some fixed moment; never goes back."""

    def wall_ms(self) -> int:
        """Return milliseconds since 1970; may jump either way."""


class Random(Protocol):
    """A source of chance; `random.Random` fits."""

    def random(self) -> float: ...
    def randrange(self, start: int, stop: int, /) -> int: ...
    def getrandbits(self, bits: int, /) -> int: ...


class File(Protocol):
    """An open file, read and written at explicit positions. Errors are OSError with a true errno."""

    @property
    def path(self) -> str: ...

    def size(self) -> int:
        """Return the file's length in bytes."""

    def read(self, position: int, count: int) -> bytes:
        """Read up to `count` bytes; fewer only where the file ends."""

    def is_cached(self, position: int, count: int) -> bool:
        """Return whether these bytes can be read without waiting; True also where the system does not tell."""

    def read_cached(self, position: int, count: int) -> bytes | None:
        """Read as `read` does, or return None where that would have to wait."""

    def write(self, position: int, buffers: Sequence[Buffer]) -> int:
        """Write all buffers one behind the other from `position`; all of it, or an OSError."""

    def truncate(self, size: int) -> None:
        """Cut the file to `size`, or extend it with zeros."""

    def sync(self) -> None:
        """Return once content and length are on the medium. FlushFailed is final: never call it again."""

    def forget(self, position: int, count: int) -> None:
        """Release these bytes, all of them synced, from the system's memory."""

    def fileno(self) -> int:
        """Return the descriptor, for `sendfile`; -1 where there is none."""

    def close(self) -> None:
        """Close the file; a second call does nothing."""


class FileRange(NamedTuple):
    """Bytes that lie in a file and need not be read to be sent."""

    file: File
    position: int
    size: int


class FileLock(Protocol):
    """A lock held on a file until it is released or the process ends."""

    def release(self) -> None: ...


class Disk(Protocol):
    """A file system. Paths are plain strings with `/`. A created, renamed or removed name is durable only
    after `sync_folder` on the folder that holds it."""

    def open(self, path: str, *, create: bool = False) -> File:
        """Open for reading and writing; without `create` a missing file is FileNotFoundError."""

    def exists(self, path: str) -> bool: ...

    def list(self, folder: str) -> list[str]:
        """Name what is in the folder, sorted; FileNotFoundError where there is none."""

    def make_folder(self, folder: str) -> None:
        """Create the folder and its parents; an existing one is fine."""

    def rename(self, source: str, target: str) -> None:
        """Rename a file or folder; an existing target file is replaced."""

    def remove(self, path: str) -> None:
        """Remove one file; FileNotFoundError where there is none."""

    def remove_folder(self, folder: str) -> None:
        """Remove the folder and all that is in it."""

    def sync_folder(self, folder: str) -> None:
        """Return once the names in this folder are on the medium. FlushFailed is final, as for a file.

        Any other error says that the folder could not be opened, and nothing was asked of the medium.
        """

    def free_bytes(self, folder: str) -> int:
        """Return how many bytes can still be written there."""

    def total_bytes(self, folder: str) -> int:
        """Return the size of the file system that holds the folder."""

    def boot_id(self) -> str:
        """Name this run of the system: while it lasts, what was written is there, synced or not. Empty if unknown."""

    def lock(self, path: str) -> FileLock:
        """Take the lock on this file, creating it; BlockingIOError where another process holds it."""


class Workers(Protocol):
    """Threads for work that blocks, above all `File.sync`; the simulation lets virtual time pass instead."""

    def run(self, work: Callable[[], T]) -> Awaitable[T]:
        """Run `work` beside the loop; the awaitable gives its result or raises its exception."""

    def close(self) -> None:
        """Wait for work under way and take no more."""


class Processes(Protocol):
    """Other processes for work that computes for long; the simulation computes in place."""

    def stream(self, work: Callable[[], Iterator[T]]) -> AsyncGenerator[T, None]:
        """Yield the results of `work` as they come, or raise its exception; ChildProcessError where it was ended.

        Closing the stream ends the work.
        """

    async def close(self) -> None:
        """End the processes that wait for more work; no stream is open."""


class Socket(Protocol):
    """A connected, non-blocking stream. BlockingIOError means not now; other OSErrors mean it is over."""

    @property
    def local(self) -> Address: ...

    @property
    def peer(self) -> Address: ...

    def receive_into(self, buffer: memoryview) -> int:
        """Fill the front of `buffer`; 0 is the end of the stream."""

    def send(self, buffer: Buffer, *, more: bool = False) -> int:
        """Send from the front of `buffer`; return how many bytes were taken.

        `more` promises that further bytes follow at once, so that the system need not send a small packet.
        """

    def send_file(self, file: File, position: int, count: int) -> int:
        """Send bytes of a file without copying where the system can; return how many bytes were taken."""

    def on_readable(self, callback: Callable[[], None] | None) -> None:
        """Call back whenever bytes can be received, until set to None."""

    def on_writable(self, callback: Callable[[], None] | None) -> None:
        """Call back whenever bytes can be sent, until set to None."""

    def expect(self, count: int) -> None:
        """Expect so many bytes, with fewer of which nothing is to be done: fewer calls back are fine."""

    def close(self) -> None:
        """Close at once; a second call does nothing, and no callback comes after it."""


class Listener(Protocol):
    """A listening address."""

    @property
    def address(self) -> Address: ...

    def close(self) -> None: ...


class Connecting(Protocol):
    """Streams to addresses: all that a client needs of a network."""

    async def connect(self, host: str, port: int) -> Socket:
        """Connect, or raise OSError; the caller bounds the wait."""


class Network(Connecting, Protocol):
    """Streams between addresses."""

    def listen(
        self, host: str, port: int, accepted: Callable[[Socket], None], held_up: Callable[[OSError], None] = ...
    ) -> Listener:
        """Listen (port 0 takes a free one) and hand over each new connection; OSError on a busy port.

        `held_up` is called when the system has nothing left for a connection; it is tried again soon.
        """
