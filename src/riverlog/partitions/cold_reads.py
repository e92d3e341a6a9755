"""Reads of bytes that are not in memory, done beside the loop: after that they are, and whoever wants them comes again.

A few are under way at once, so that flushes find a worker; the others wait for their turn. Whoever goes through a file
finds more and more of it read ahead. Bytes that are wanted again right after they were read, because the system does
not keep them or the disk refuses, are left to whoever wants them.
"""

import asyncio
from contextlib import suppress
from functools import partial
from typing import TypeVar

from riverlog.model.ports import File, FileRange, Workers
from riverlog.observe.containment import contained
from riverlog.partitions.limits import (
    COLD_READ_BYTES_MAX,
    COLD_READ_BYTES_MIN,
    COLD_READ_TRUSTED_SECONDS,
    COLD_READS_REMEMBERED_MAX,
    COLD_READS_UNDER_WAY_MAX,
)

K = TypeVar("K")
V = TypeVar("V")


class ColdReads:
    """The reads of one node."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._turns = asyncio.Semaphore(COLD_READS_UNDER_WAY_MAX)
        self._under_way: dict[tuple[str, int], asyncio.Task[None]] = {}
        self._done: dict[tuple[str, int], tuple[int, float]] = {}
        """What was read lately, the latest last: path and position, and up to where and when."""
        self._ends: dict[str, tuple[int, int]] = {}
        """Of files that were read lately: where the last read ended, and its size."""

    def begin(self, wanted: FileRange) -> "asyncio.Future[None] | None":
        """Begin to read bytes; return what is done when they are in memory, None where that was just tried."""
        key = wanted.file.path, wanted.position
        if (reading := self._under_way.get(key)) is not None:
            return reading
        loop = asyncio.get_running_loop()
        end, read_at = self._done.get(key, (0, 0.0))
        if end >= wanted.position + wanted.size and loop.time() - read_at < COLD_READ_TRUSTED_SECONDS:
            return None
        reading = self._under_way[key] = loop.create_task(self._read(wanted))
        return reading

    async def _read(self, wanted: FileRange) -> None:
        file, position, size = wanted
        path = file.path
        last_end, last_size = self._ends.pop(path, (0, 0))
        goes_on = last_end - last_size < position <= last_end + COLD_READ_BYTES_MIN
        size = max(size, min(2 * last_size, COLD_READ_BYTES_MAX) if goes_on else COLD_READ_BYTES_MIN)
        try:
            async with self._turns:
                with suppress(OSError):  # whoever comes again meets it
                    await self._workers.run(partial(_read_through, file, position, size))
        except Exception as mistake:
            contained("cold read", mistake)
        finally:
            del self._under_way[path, position]
            _remember(self._ends, path, (position + size, size))
            _remember(self._done, (path, position), (position + size, asyncio.get_running_loop().time()))


def _remember(known: dict[K, V], key: K, value: V) -> None:
    known[key] = value
    if len(known) > COLD_READS_REMEMBERED_MAX:
        del known[next(iter(known))]


def _read_through(file: File, position: int, size: int) -> None:
    """Read bytes for no other reason than to have them in memory."""
    end = position + size
    while position < end:
        read = len(file.read(position, min(end - position, COLD_READ_BYTES_MIN)))
        if not read:
            return
        position += read
