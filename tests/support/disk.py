"""A disk in memory that forgets what was not synced.

`crash` leaves of each file what was synced and any of the writes since then, some of them torn; of each folder the
names that were synced and any of the changes since then. As on a journaling file system each change of names is whole
or not there, and those of one name or of one file keep their order; names and contents know nothing of each other.
A sync covers what was there when it began. `kill` ends the process alone: all is still there, and still not synced.
Handles that were open are dead after either. `fail` makes the n-th call from now raise an OSError, once or from then
on; a failed write may have written some of its bytes, and a failed sync has lost what it should have kept, as on
Linux: a second sync does not bring it back.
"""

import errno
import os
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import NamedTuple, TypeAlias

from riverlog.model.disk_errors import MEDIUM_FAILED, FlushFailed
from riverlog.model.ports import Buffer

SECTOR_BYTES = 512
PAGE_BYTES = 4096


class Crashed(BaseException):
    """The machine is gone; not an Exception, so that nothing under test can handle it."""


class _Content:
    """A file's bytes: as they are seen, as they are on the medium, and the changes between the two."""

    def __init__(self) -> None:
        self.seen = bytearray()
        self.durable = bytearray()
        self.pending: list[tuple[int, bytes] | int] = []
        self.cached = True
        self.cached_pages: set[int] = set()
        """What is in memory where not all of it is."""
        self.changes = 0
        """How many changes there ever were; those in `pending` are the last of them."""

    def change(self, change: tuple[int, bytes] | int) -> None:
        _apply(self.seen, change)
        self.pending.append(change)
        self.changes += 1

    def sync(self, upto: int | None = None) -> None:
        """Bring the changes to the medium, or the first `upto` of all there ever were."""
        count = len(self.pending) - (self.changes - (self.changes if upto is None else upto))
        for change in self.pending[: max(0, count)]:
            _apply(self.durable, change)
        del self.pending[: max(0, count)]

    def lose(self, random: Random) -> "_Content":
        """Return what a crash leaves: any of the unsynced changes, some of them in part."""
        left = _Content()
        left.durable[:] = self.durable
        for change in self.pending:
            if random.random() < 0.5:
                torn = isinstance(change, tuple) and random.random() < 0.4
                _apply(left.durable, _torn(change, random) if torn and isinstance(change, tuple) else change)
        left.seen[:] = left.durable
        return left


def _torn(change: tuple[int, bytes], random: Random) -> tuple[int, bytes]:
    """Return what reached the medium of a write: its front or, of a long one, what lies behind some sectors."""
    position, data = change
    cut = random.randrange(0, len(data) + 1)
    sectors = cut // SECTOR_BYTES * SECTOR_BYTES
    if sectors and random.random() < 0.3:
        return position + sectors, data[sectors:]
    return position, data[: sectors or cut]


def _apply(content: bytearray, change: tuple[int, bytes] | int) -> None:
    if isinstance(change, int):
        content[change:] = bytes(max(0, change - len(content)))
        return
    position, data = change
    if position > len(content):
        content.extend(bytes(position - len(content)))
    content[position : position + len(data)] = data


_Node: TypeAlias = "_Content | _Folder"


class _Rename(NamedTuple):
    """A change of names: a file or folder goes from a name to a name; None is nowhere."""

    node: _Node
    old: str | None
    new: str | None

    def apply(self, names: dict[str, _Node]) -> None:
        if self.old is not None and names.get(self.old) is self.node:
            del names[self.old]
        if self.new is not None:
            names[self.new] = self.node


class _Folder:
    """A folder's names: as they are seen, as they are on the medium, and the changes between the two."""

    def __init__(self) -> None:
        self.seen: dict[str, _Node] = {}
        self.durable: dict[str, _Node] = {}
        self.pending: list[_Rename] = []
        self.changes = 0

    def change(self, node: _Node, old: str | None, new: str | None) -> None:
        change = _Rename(node, old, new)
        change.apply(self.seen)
        self.pending.append(change)
        self.changes += 1

    def sync(self, upto: int) -> None:
        """Bring the first `upto` of all changes there ever were to the medium."""
        count = max(0, len(self.pending) - (self.changes - upto))
        for change in self.pending[:count]:
            change.apply(self.durable)
        del self.pending[:count]

    def lose(self, random: Random) -> "_Folder":
        """Return what a crash leaves: any of the unsynced changes, each whole, those of one name in their order."""
        left = _Folder()
        names = dict(self.durable)
        lost: set[str | int] = set()
        share = random.choice((0.2, 0.5, 0.8))
        for change in self.pending:
            touched = {name for name in (change.old, change.new) if name is not None} | {id(change.node)}
            if touched & lost or random.random() >= share:
                lost |= touched
            else:
                change.apply(names)
        left.durable = {name: node.lose(random) for name, node in names.items()}
        left.seen = dict(left.durable)
        return left

    def contents(self) -> Iterator[_Content]:
        """Yield all files below."""
        for node in self.seen.values():
            if isinstance(node, _Folder):
                yield from node.contents()
            else:
                yield node

    def walk(self, path: str) -> Iterator[tuple[str, bytes]]:
        """Yield all files below, and the folders with nothing in them."""
        if not self.seen:
            yield path, b""
        for name, node in self.seen.items():
            if isinstance(node, _Folder):
                yield from node.walk(f"{path}/{name}")
            else:
                yield f"{path}/{name}", bytes(node.seen)


class MemoryFile:
    """The File port over a content in memory."""

    def __init__(self, disk: "MemoryDisk", path: str, content: _Content) -> None:
        self.disk = disk
        self._path = path
        self.content = content
        self._life = disk.life
        self.is_open = True
        disk.open_files += 1

    @property
    def path(self) -> str:
        return self._path

    def size(self) -> int:
        self._check()
        return len(self.content.seen)

    def read(self, position: int, count: int) -> bytes:
        self._check()
        self.disk.step("read", self._path)
        if not self.is_cached(position, count):
            self.disk.waited(self._path)
            self.content.cached_pages.update(_pages(position, count))
        return bytes(self.content.seen[position : position + count])

    def is_cached(self, position: int, count: int) -> bool:
        self._check()
        content = self.content
        return content.cached or content.cached_pages.issuperset(_pages(position, min(count, self.size() - position)))

    def read_cached(self, position: int, count: int) -> bytes | None:
        return self.read(position, count) if self.is_cached(position, count) else None

    def write(self, position: int, buffers: Sequence[Buffer]) -> int:
        self._check()
        data = b"".join(buffers)
        try:
            self.disk.step("write", self._path)
        except OSError:
            self.content.change((position, data[: self.disk.random.randrange(0, len(data) + 1)]))
            raise
        self.content.change((position, data))
        self.content.cached_pages.update(_pages(position, len(data)))
        return len(data)

    def truncate(self, size: int) -> None:
        self._check()
        self.disk.step("truncate", self._path)
        self.content.change(size)

    def sync(self) -> None:
        self._check()
        begun = self.content.changes
        try:
            self.disk.step("sync", self._path)
        except OSError:
            self.content.pending.clear()
            raise
        self.content.sync(begun)

    def forget(self, position: int, count: int) -> None:
        self._check()

    def fileno(self) -> int:
        return -1

    def close(self) -> None:
        if self.is_open:
            self.is_open = False
            if self._life == self.disk.life:
                self.disk.open_files -= 1

    def _check(self) -> None:
        if not self.is_open:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF), self._path)
        if self._life != self.disk.life:
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
        self.has_failed = False
        """The medium itself has failed since the last start: whatever else went wrong is no reason to give it up."""
        self.open_files = 0
        self.locked: set[str] = set()
        self.before_step: Callable[[str, str], None] = lambda _kind, _path: None
        """Called before each step with its kind and path; the simulation watches, and lets time pass here."""
        self.waited: Callable[[str], None] = lambda _path: None
        """Called when bytes are read that are not in memory; whoever reads would wait for the medium."""
        self._root = _Folder()
        self._boots = 0
        self.fails_in: int | None = None
        self._failure: OSError | Crashed | None = None
        self._fail_on: tuple[str, ...] = ()
        self._lasting = False

    # Trouble

    def crash(self) -> None:
        """Lose power: some of what was not synced is gone, and so is every handle."""
        self._boots += 1
        self._root = self._root.lose(self.random)
        self.failed_syncs = 0
        self.kill()

    def after_crash(self, random: Random) -> "MemoryDisk":
        """Return the disk that a crash would leave now; this one goes on."""
        left = MemoryDisk(random.randrange(1 << 32))
        left._boots = self._boots + 1
        left._root = self._root.lose(random)
        return left

    def everything(self) -> dict[str, bytes]:
        """Return all files by their paths, and the folders with nothing in them."""
        return dict(self._root.walk(""))

    def kill(self) -> None:
        """End the process that used this disk: its handles and locks are gone, everything else is as it was."""
        self.life += 1
        self.has_failed = False
        self.locked.clear()
        self.open_files = 0
        self.heal()

    def fail(self, after: int, error: int, *, on: tuple[str, ...] = (), lasting: bool = False) -> None:
        """Make the call behind the next `after` ones (of these kinds) fail with this errno."""
        self.fails_in, self._fail_on, self._lasting = after, on, lasting
        self._failure = OSError(error, os.strerror(error))

    def crash_after(self, steps: int, *, on: tuple[str, ...] = ()) -> None:
        """Make the call behind the next `steps` ones (of these kinds) raise Crashed."""
        self.fails_in, self._fail_on, self._lasting = steps, on, True
        self._failure = Crashed()

    def drop_cache(self) -> None:
        """Drop from memory all that was written so far."""
        for content in self._root.contents():
            content.cached = False
            content.cached_pages.clear()

    def heal(self) -> None:
        """Stop failing from now on."""
        self.fails_in = None

    def step(self, kind: str, path: str) -> None:
        self.before_step(kind, path)
        self.steps += 1
        if self.fails_in is None or (self._fail_on and kind not in self._fail_on):
            return
        if self.fails_in > 0:
            self.fails_in -= 1
            return
        if not self._lasting:
            self.fails_in = None
        failure = self._failure
        assert failure is not None
        if isinstance(failure, OSError):
            self.has_failed |= kind in ("sync", "sync_folder") or failure.errno in MEDIUM_FAILED
            if kind in ("sync", "sync_folder"):
                self.failed_syncs += 1
                raise FlushFailed(failure.errno, failure.strerror, path)
            raise OSError(failure.errno, failure.strerror, path)
        raise failure

    def damage(self, path: str, position: int, flip: int = 0xFF) -> None:
        """Change a byte on the medium."""
        content = self._content(path)
        content.sync()
        content.seen[position] ^= flip
        content.durable[position] ^= flip

    def shorten(self, path: str, size: int) -> None:
        """Remove the end of a file from the medium."""
        content = self._content(path)
        content.sync()
        del content.seen[size:], content.durable[size:]

    def content(self, path: str) -> bytes:
        """Look at a file without touching it; nothing where there is none."""
        folder, name = self._parent(path)
        return bytes(self._content(path).seen) if name in folder.seen else b""

    def durable_content(self, path: str) -> bytes | None:
        """Return what a file holds on the medium, whatever is seen; None where its name is not there."""
        found: _Content | _Folder | None = self._root
        for name in _parts(path):
            found = found.durable.get(name) if isinstance(found, _Folder) else None
        return bytes(found.durable) if isinstance(found, _Content) else None

    def durable_names(self, path: str) -> list[str]:
        """Return the names in a folder on the medium; none where it is not there."""
        found: _Content | _Folder | None = self._root
        for name in _parts(path):
            found = found.durable.get(name) if isinstance(found, _Folder) else None
        return sorted(found.durable) if isinstance(found, _Folder) else []

    # The port

    def open(self, path: str, *, create: bool = False) -> MemoryFile:
        folder, name = self._parent(path)
        self.step("create" if create and name not in folder.seen else "open", path)
        if name not in folder.seen:
            if not create:
                raise _missing(path)
            folder.change(_Content(), None, name)
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
        return sorted(self.names_in(folder).seen)

    def make_folder(self, folder: str) -> None:
        node = self._root
        for name in _parts(folder):
            if name not in node.seen:
                self.step("make_folder", folder)
                if name not in node.seen:
                    node.change(_Folder(), None, name)
            child = node.seen[name]
            if not isinstance(child, _Folder):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), folder)
            node = child

    def rename(self, source: str, target: str) -> None:
        folder, old = self._parent(source)
        target_folder, new = self._parent(target)
        assert folder is target_folder, "no code of ours moves files between folders"
        self._step_on("rename", folder, old, source)
        folder.change(folder.seen[old], old, new)

    def remove(self, path: str) -> None:
        folder, name = self._parent(path)
        self._step_on("remove", folder, name, path)
        folder.change(folder.seen[name], name, None)

    def remove_folder(self, folder: str) -> None:
        parent, name = self._parent(folder)
        self._step_on("remove_folder", parent, name, folder)
        parent.change(parent.seen[name], name, None)

    def sync_folder(self, folder: str) -> None:
        self.step("open", folder)
        node = self.names_in(folder)
        begun = node.changes
        try:
            self.step("sync_folder", folder)
        except OSError:
            node.pending.clear()
            raise
        node.sync(begun)

    def free_bytes(self, folder: str) -> int:
        self.names_in(folder)
        return 1 << 40

    def total_bytes(self, folder: str) -> int:
        self.names_in(folder)
        return 1 << 41

    def boot_id(self) -> str:
        return f"boot {self._boots}"

    def lock(self, path: str) -> MemoryLock:
        self.open(path, create=True).close()
        if path in self.locked:
            raise BlockingIOError(errno.EWOULDBLOCK, os.strerror(errno.EWOULDBLOCK), path)
        self.locked.add(path)
        return MemoryLock(self, path)

    def _step_on(self, kind: str, folder: _Folder, name: str, path: str) -> None:
        """Take a step on a name that must be there, before and after it: others may be faster."""
        for step in (True, False):
            if name not in folder.seen:
                raise _missing(path)
            if step:
                self.step(kind, path)

    def names_in(self, path: str) -> _Folder:
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
        return self.names_in(folder), name

    def _content(self, path: str) -> _Content:
        folder, name = self._parent(path)
        node = folder.seen[name]
        assert isinstance(node, _Content)
        return node


def _pages(position: int, count: int) -> range:
    return range(position // PAGE_BYTES, -(-(position + max(count, 0)) // PAGE_BYTES))


def _parts(path: str) -> list[str]:
    return [name for name in path.split("/") if name]


def _missing(path: str) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
