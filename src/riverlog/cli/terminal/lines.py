"""Input as records see it: bytes from a terminal, a pipe or a file, cut into lines; and output, if it is still read.

Waiting happens in the event loop and never in a thread, so that Ctrl-C ends it at once; and no more is read than
the caller asks for, so that a slow cluster slows the writer at the other end of the pipe.
"""

import asyncio
import os
import select
from collections.abc import AsyncIterator
from typing import BinaryIO, Final

from riverlog.cli.terminal.exits import BadInput

BLOCK_BYTES: Final = 64 * 1024
LINE_BYTES_MAX: Final = 64 * 1024 * 1024
"""A longer line is refused; no broker takes such a record, and memory must end somewhere."""


async def lines(descriptor: int, name: str) -> AsyncIterator[list[bytes]]:
    """Yield the lines of a file without their ends, as many at a time as one read brought."""
    pieces: list[bytes] = []
    pending = number = 0
    async for block in blocks(descriptor):
        *whole, rest = block.split(b"\n")
        if whole:
            whole[0] = b"".join([*pieces, whole[0]])
            pieces, pending = [], 0
            number += len(whole)
            yield [line.removesuffix(b"\r") for line in whole]
        pieces.append(rest)
        pending += len(rest)
        if pending > LINE_BYTES_MAX:
            raise BadInput(f"line {number + 1} of {name} has more than {LINE_BYTES_MAX} bytes (is it a text file?)")
    if pending:
        yield [b"".join(pieces).removesuffix(b"\r")]


async def blocks(descriptor: int) -> AsyncIterator[bytes]:
    """Yield what arrives, until the end."""
    while True:
        await _readable(descriptor)
        block = os.read(descriptor, BLOCK_BYTES)
        if not block:
            return
        yield block


async def _readable(descriptor: int) -> None:
    """Wait until a read would not block. Watches only meanwhile: an unread pipe would wake the loop for ever."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    try:
        loop.add_reader(descriptor, ready.set)
    except PermissionError:
        return  # a regular file: it cannot be waited for, and never blocks
    try:
        await ready.wait()
    finally:
        loop.remove_reader(descriptor)


def reader_gone(descriptor: int) -> bool:
    """Return whether nobody reads a pipe any more, without writing to it."""
    looking = select.poll()
    looking.register(descriptor, 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in looking.poll(0))


def write_all(out: BinaryIO, content: bytes) -> None:
    """Write everything, or raise; with PYTHONUNBUFFERED a stream may take a part only, as when its reader goes."""
    left = memoryview(content)
    while left:
        left = left[out.write(left) :]
    out.flush()
