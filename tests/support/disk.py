"""A disk in memory that forgets what was not synced.

`crash` leaves of each file what was synced and some of the writes since then, whichever the seed says, the last of
them torn; of each folder the names that were synced and some of the changes since then, from the front. `kill` ends
the process alone: all is still there, and still not synced. Handles that were open are dead after either. `fail` makes
the n-th call from now raise an OSError, once or from then on; a failed write may have written some of its bytes, and a
failed sync has lost what it should have kept, as on Linux: a second sync does not bring it back.
"""

import errno
import os
from collections.abc import Callable, Sequence
from random import Random

from riverlog.model.ports import Buffer

SECTOR_BYTES = 512


class Crashed(BaseException):
    """The machine is gone; not an Exception, so that nothing under test can handle it."""


class _Content:
    """A file's bytes: as they are seen, as they are on the medium, and the changes between the two."""

    def __init__(self) -> None:
        self.seen = bytearray()
        self.durable = bytearray()
        self.pending: list[tuple[int, bytes] | int] = []

    def change(self, change: tuple[int, bytes] | int) -> None:
        _apply(self.seen, change)
        self.pending.append(change)

    def sync(self) -> None:
        for change in self.pending:
            _apply(self.durable, change)
        self.pending.clear()

    def lose(self, random: Random) -> "_Content":
        """Give what a crash leaves: any of the unsynced changes, the last of them in part."""
        left = _Content()
        left.durable[:] = self.durable
        survivors = [change for change in self.pending if random.random() < 0.5]
        if survivors and isinstance(survivors[-1], tuple):
            position, data = survivors.pop()
            torn = data[
                : random.randrange(0, len(data) + 1) // SECTOR_BYTES * SECTOR_BYTES
                or random.randrange(0, len(data) + 1)
            ]
            survivors.append((position, torn))
        for change in survivors:
            _apply(left.durable, change)
        left.seen[:] = left.durable
        return left


def _apply(content: bytearray, change: tuple[int, bytes] | int) -> None:
    if isinstance(change, int):
        content[change:] = bytes(max(0, change - len(content)))
        return
    position, data = change
    if position > len(content):
        content.extend(bytes(position - len(content)))
    content[position : position + len(data)] = data


_Names = dict[str, "_Content | _Folder"]


class _Folder:
    """A folder's names: as they are seen, as they are on the medium, and the states between the two."""

    def __init__(self) -> None:
        self.seen: _Names = {}
        self.durable: _Names = {}
        self.pending: list[_Names] = []

    def change(self, update: Callable[[_Names], None]) -> None:
        update(self.seen)
        self.pending.append(dict(self.seen))

    def sync(self) -> None:
        self.durable = dict(self.seen)
        self.pending.clear()

    def lose(self, random: Random) -> "_Folder":
        """Give what a crash leaves: the names as they were at some moment since the last sync."""
        left = _Folder()
        survived = random.randrange(0, len(self.pending) + 1)
        names = self.pending[survived - 1] if survived else self.durable
        left.durable = {name: node.lose(random) for name, node in names.items()}
        left.seen = dict(left.durable)
        return left


class MemoryFile:
    """The File port over a content in memory."""

    def __init__(self, disk: "MemoryDisk", path: str, content: _Content) -> None:
        self._disk = disk
        self._path = path
        self._content = content
        self._life = disk.life
        self.is_open = True
        disk.open_files += 1

    @property
    def path(self) -> str:
        return self._path

    def size(self) -> int:
        self._check()
        return len(self._content.seen)

    def read(self, position: int, count: int) -> bytes:
        self._check()
        self._disk.step("read", self._path)
        return bytes(self._content.seen[position : position + count])

    def write(self, position: int, buffers: Sequence[Buffer]) -> int:
        self._check()
        data = b"".join(buffers)
        try:
            self._disk.step("write", self._path)
        except OSError:
            self._content.change((position, data[: self._disk.random.randrange(0, len(data) + 1)]))
            raise
        self._content.change((position, data))
        return len(data)

    def truncate(self, size: int) -> None:
        self._check()
        self._disk.step("truncate", self._path)
        self._content.change(size)

    def sync(self) -> None:
        self._check()
        try:
            self._disk.step("sync", self._path)
        except OSError:
            self._content.pending.clear()
            raise
        self._content.sync()

    def fileno(self) -> int:
        return -1

    def close(self) -> None:
        if self.is_open:
            self.is_open = False
            if self._life == self._disk.life:
                self._disk.open_files -= 1

    def _check(self) -> None:
        if not self.is_open:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF), self._path)
        if self._life != self._disk.life:
            raise Crashed(f"{self._path} was opened before the crash")


class MemoryLock:
    """A lock that ends when released or when the machine crashes."""

    def __init__(self, disk: "MemoryDisk", path: str) -> None:
        self._disk = disk
        self._path = path
        self._life = disk.life

    def release(self) -> None:
        if self._life == self._disk.life:
            self._disk.locked.discard(self._path)


class MemoryDisk:
    """The Disk port in memory, with crashes and failures on demand."""

    def __init__(self, seed: int = 0) -> None:
        self.random = Random(seed)
        self.life = 0
        self.steps = 0
        """Calls so far that reached the medium or could fail."""
        self.failed_syncs = 0
        """Syncs that failed since the last crash: what they lost is still seen until then."""
        self.open_files = 0
        self.locked: set[str] = set()
        self.before_step: Callable[[str, str], None] = lambda _kind, _path: None
        """Called before each step with its kind and path; the simulation watches, and lets time pass here."""
        self._root = _Folder()
        self._fail_at: int | None = None
        self._failure: OSError | Crashed | None = None
        self._fail_on: tuple[str, ...] = ()
        self._lasting = False

    # Trouble

    def crash(self) -> None:
        """Lose power: some of what was not synced is gone, and so is every handle."""
        self._root = self._root.lose(self.random)
        self.failed_syncs = 0
        self.kill()

    def kill(self) -> None:
        """End the process that used this disk: its handles and locks are gone, everything else is as it was."""
        self.life += 1
        self.locked.clear()
        self.open_files = 0
        self.heal()

    def fail(self, after: int, error: int, *, on: tuple[str, ...] = (), lasting: bool = False) -> None:
        """Let the call behind the next `after` ones (of these kinds) fail with this errno."""
        self._fail_at, self._fail_on, self._lasting = after, on, lasting
        self._failure = OSError(error, os.strerror(error))

    def crash_after(self, steps: int) -> None:
        """Let the call behind the next `steps` ones raise Crashed."""
        self._fail_at, self._fail_on, self._lasting = steps, (), True
        self._failure = Crashed()

    def heal(self) -> None:
        """Let nothing fail from now on."""
        self._fail_at = None

    def step(self, kind: str, path: str) -> None:
        self.before_step(kind, path)
        self.steps += 1
        if self._fail_at is None or (self._fail_on and kind not in self._fail_on):
            return
        if self._fail_at > 0:
            self._fail_at -= 1
            return
        if not self._lasting:
            self._fail_at = None
        failure = self._failure
        assert failure is not None
        if isinstance(failure, OSError):
            self.failed_syncs += kind in ("sync", "sync_folder")
            raise OSError(failure.errno, failure.strerror, path)
        raise failure

    def damage(self, path: str, position: int, flip: int = 0xFF) -> None:
        """Let a byte rot on the medium."""
        content = self._content(path)
        content.sync()
        content.seen[position] ^= flip
        content.durable[position] ^= flip

    # The port

    def open(self, path: str, *, create: bool = False) -> MemoryFile:
        folder, name = self._parent(path)
        self.step("create" if create and name not in folder.seen else "open", path)
        if name not in folder.seen:
            if not create:
                raise _missing(path)
            content = _Content()
            folder.change(lambda names: names.update({name: content}))
        node = folder.seen[name]
        if isinstance(node, _Folder):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        return MemoryFile(self, path, node)

    def exists(self, path: str) -> bool:
        try:
            folder, name = self._parent(path)
        except FileNotFoundError:
            return False
        return name in folder.seen

    def list(self, folder: str) -> list[str]:
        return sorted(self._folder(folder).seen)

    def make_folder(self, folder: str) -> None:
        node = self._root
        for name in _parts(folder):
            if name not in node.seen:
                self.step("make_folder", folder)
                fresh = _Folder()
                node.change(lambda names, name=name, fresh=fresh: names.update({name: fresh}))  # type: ignore[misc]
            child = node.seen[name]
            if not isinstance(child, _Folder):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), folder)
            node = child

    def rename(self, source: str, target: str) -> None:
        folder, old = self._parent(source)
        target_folder, new = self._parent(target)
        assert folder is target_folder, "no code of ours moves files between folders"
        if old not in folder.seen:
            raise _missing(source)
        self.step("rename", source)
        folder.change(lambda names: names.update({new: names.pop(old)}))

    def remove(self, path: str) -> None:
        folder, name = self._parent(path)
        if name not in folder.seen:
            raise _missing(path)
        self.step("remove", path)
        folder.change(lambda names: names.__delitem__(name))

    def remove_folder(self, folder: str) -> None:
        parent, name = self._parent(folder)
        if name not in parent.seen:
            raise _missing(folder)
        self.step("remove_folder", folder)
        parent.change(lambda names: names.__delitem__(name))

    def sync_folder(self, folder: str) -> None:
        node = self._folder(folder)
        self.step("sync_folder", folder)
        node.sync()

    def free_bytes(self, folder: str) -> int:
        self._folder(folder)
        return 1 << 40

    def total_bytes(self, folder: str) -> int:
        self._folder(folder)
        return 1 << 41

    def lock(self, path: str) -> MemoryLock:
        self.open(path, create=True).close()
        if path in self.locked:
            raise BlockingIOError(errno.EWOULDBLOCK, os.strerror(errno.EWOULDBLOCK), path)
        self.locked.add(path)
        return MemoryLock(self, path)

    def _folder(self, path: str) -> _Folder:
        node: _Content | _Folder = self._root
        for name in _parts(path):
            if not isinstance(node, _Folder) or name not in node.seen:
                raise _missing(path)
            node = node.seen[name]
        if not isinstance(node, _Folder):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        return node

    def _parent(self, path: str) -> tuple[_Folder, str]:
        folder, _, name = path.rpartition("/")
        return self._folder(folder), name

    def _content(self, path: str) -> _Content:
        folder, name = self._parent(path)
        node = folder.seen[name]
        assert isinstance(node, _Content)
        return node


def _parts(path: str) -> list[str]:
    return [name for name in path.split("/") if name]


def _missing(path: str) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
