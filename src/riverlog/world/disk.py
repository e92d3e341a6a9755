"""The machine's file system behind the Disk port.

Thin on purpose: one call here is one call to the system, except that a short write is carried on until it is
whole. What must be durable, and in which order, is the callers' business.
"""

import errno
import fcntl
import os
import shutil
from collections.abc import Sequence
from typing import Final, NoReturn

from riverlog.model.disk_errors import FlushFailed
from riverlog.model.ports import Buffer

_BUFFERS_PER_WRITE: Final = 1024  # IOV_MAX
_WITHOUT_WAITING: Final[int] = getattr(os, "RWF_NOWAIT", 0)  # only Linux can read without waiting
_PROBE: Final = (bytearray(1),)
_READ_AT_ONCE_MAX: Final = 16 * 1024  # copying more costs more than to ask first
_FULL_SYNC: Final[int | None] = getattr(fcntl, "F_FULLFSYNC", None)  # on macOS a plain fsync stops at the drive's cache


class SystemFile:
    """The File port over a descriptor."""

    __slots__ = ("_descriptor", "_path")

    def __init__(self, path: str, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{self._path} is open here and cannot be sent to another process")

    @property
    def path(self) -> str:
        return self._path

    def size(self) -> int:
        return os.fstat(self._descriptor).st_size

    def read(self, position: int, count: int) -> bytes:
        data = os.pread(self._descriptor, count, position)
        if len(data) == count or not data:
            return data
        return data + self.read(position + len(data), count - len(data))

    def is_cached(self, position: int, count: int) -> bool:
        if not _WITHOUT_WAITING:
            return True
        try:
            for at in (position, position + max(count, 1) - 1):  # in between, the system has read ahead
                os.preadv(self._descriptor, _PROBE, at, _WITHOUT_WAITING)
        except OSError as error:
            return error.errno != errno.EAGAIN  # the file system cannot, or a read will fail with the reason
        return True

    def read_cached(self, position: int, count: int) -> bytes | None:
        if count > _READ_AT_ONCE_MAX or not _WITHOUT_WAITING:
            return self.read(position, count) if self.is_cached(position, count) else None
        data = bytearray(count)
        try:
            read = os.preadv(self._descriptor, (data,), position, _WITHOUT_WAITING)
        except OSError as error:
            return None if error.errno == errno.EAGAIN else self.read(position, count)
        if read == count:
            return bytes(data)
        return bytes(data[:read]) if position + read >= self.size() else None

    def write(self, position: int, buffers: Sequence[Buffer]) -> int:
        if len(buffers) == 1:
            size = len(buffers[0])
            written = os.pwrite(self._descriptor, buffers[0], position)
        else:
            size = sum(map(len, buffers))
            written = os.pwritev(self._descriptor, buffers[:_BUFFERS_PER_WRITE], position)
        return size if written == size else self._write_all(position, buffers)

    def _write_all(self, position: int, buffers: Sequence[Buffer]) -> int:
        """Write from the start, carrying on after short writes: rewriting the same bytes is harmless."""
        rest = [memoryview(buffer) for buffer in buffers if len(buffer)]
        total = sum(len(view) for view in rest)
        end = position + total
        while position < end:
            written = os.pwritev(self._descriptor, rest[:_BUFFERS_PER_WRITE], position)
            if written == 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self._path)
            position += written
            while written:
                if written >= len(rest[0]):
                    written -= len(rest.pop(0))
                else:
                    rest[0] = rest[0][written:]
                    written = 0
        return total

    def truncate(self, size: int) -> None:
        os.ftruncate(self._descriptor, size)

    def sync(self) -> None:
        try:
            if _FULL_SYNC is not None:
                fcntl.fcntl(self._descriptor, _FULL_SYNC)
            else:
                os.fdatasync(self._descriptor)
        except OSError as error:
            raise _flush_failed(error, self._path) from error

    def forget(self, position: int, count: int) -> None:
        if hasattr(os, "posix_fadvise"):  # macOS has none
            os.posix_fadvise(self._descriptor, position, count, os.POSIX_FADV_DONTNEED)

    def fileno(self) -> int:
        return self._descriptor

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class SystemLock:
    """An advisory lock that ends with the process at the latest."""

    __slots__ = ("_descriptor",)

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def release(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


_BOOT_ID_FILE: Final = "/proc/sys/kernel/random/boot_id"


class FileSystem:
    """The Disk port over the operating system."""

    def open(self, path: str, *, create: bool = False) -> SystemFile:
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        return SystemFile(path, os.open(path, flags, 0o600))

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def list(self, folder: str) -> list[str]:
        return sorted(os.listdir(folder))

    def make_folder(self, folder: str) -> None:
        os.makedirs(folder, mode=0o700, exist_ok=True)

    def rename(self, source: str, target: str) -> None:
        os.replace(source, target)

    def remove(self, path: str) -> None:
        os.unlink(path)

    def remove_folder(self, folder: str) -> None:
        shutil.rmtree(folder)

    def sync_folder(self, folder: str) -> None:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        except OSError as error:
            raise _flush_failed(error, folder) from error
        finally:
            os.close(descriptor)

    def free_bytes(self, folder: str) -> int:
        facts = os.statvfs(folder)
        return facts.f_bavail * facts.f_frsize

    def total_bytes(self, folder: str) -> int:
        facts = os.statvfs(folder)
        return facts.f_blocks * facts.f_frsize

    def boot_id(self) -> str:
        try:
            with open(_BOOT_ID_FILE, encoding="ascii") as file:
                return file.read().strip()
        except OSError:  # not every system has it
            return ""

    def lock(self, path: str) -> SystemLock:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            raise
        return SystemLock(descriptor)


def _flush_failed(error: OSError, path: str) -> FlushFailed:
    return FlushFailed(error.errno, error.strerror, path)
