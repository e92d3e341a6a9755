"""Sending lines as records: where they come from, at what pace, and what came of it.

Lines are read no faster than the producer takes them, so a slow cluster slows the writer of the pipe instead of
filling memory. A record that is refused stops the reading.
"""

import asyncio
import errno
import os
import stat
import sys
import time
from collections import deque
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from riverlog.cli.terminal.exits import BadInput, CommandError
from riverlog.cli.terminal.lines import LINE_BYTES_MAX, blocks, lines
from riverlog.cli.terminal.record_formats import ReadRecord, record_of_json
from riverlog.cli.terminal.render import ProgressCallback, plural, size_text
from riverlog.model.errors import ErrorCode

if TYPE_CHECKING:
    from riverlog.client.producer.deliveries import Delivery
    from riverlog.client.producer.producer import Producer

STANDARD_INPUT: Final = 0
_UNKNOWN: Final = frozenset({ErrorCode.NETWORK_EXCEPTION, ErrorCode.REQUEST_TIMED_OUT})
"""Nobody said what became of a record: it may have arrived before the answer was lost."""


@dataclass(frozen=True, slots=True)
class LineFormat:
    """How a line becomes a record."""

    topic: str
    partition: int | None = None
    key: bytes | None = None
    key_separator: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    null: bool = False
    json: bool = False

    def record(self, line: bytes, number: int, source: str) -> ReadRecord:
        """Return what a line holds; its number and source are for the error."""
        if not self.json:
            key, value = self.split(line, number, source)
            return ReadRecord(key, value, self.headers)
        try:
            found = record_of_json(line)
        except ValueError as error:
            raise BadInput(f"line {number} of {source} is no record in JSON: {error}") from error
        return found._replace(headers=(*found.headers, *self.headers))

    def split(self, line: bytes, number: int, source: str) -> tuple[bytes | None, bytes | None]:
        """Split a line into key and value."""
        key, value = self.key, line
        if self.key_separator is not None:
            key, found, value = line.partition(self.key_separator)
            if not found:
                separator = self.key_separator.decode(errors="backslashreplace")
                raise BadInput(f"line {number} of {source} has no {separator!r} between key and value")
        return (key or None, value or None) if self.null else (key, value)


class LineSource(NamedTuple):
    """Where lines come from; only a file's size is known beforehand."""

    descriptor: int
    name: str
    size: int | None

    @classmethod
    def of_file(cls, path: Path) -> Self:
        """Open a file."""
        descriptor = os.open(path, os.O_RDONLY)
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):  # of which only a read would say so, and not where
            os.close(descriptor)
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        return cls(descriptor, str(path), _size(descriptor))

    @classmethod
    def of_standard_input(cls) -> Self:
        """Read what the shell passes on."""
        return cls(STANDARD_INPUT, "standard input", _size(STANDARD_INPUT))

    @property
    def is_terminal(self) -> bool:
        """Return whether a person is typing."""
        return os.isatty(self.descriptor)

    async def records(self, *, whole: bool) -> AsyncIterator[list[bytes]]:
        """Yield lines as they arrive, or everything at the end as one."""
        if not whole:
            async for some in lines(self.descriptor, self.name):
                yield some
            return
        content = bytearray()
        async for block in blocks(self.descriptor):
            content += block
            if len(content) > LINE_BYTES_MAX:
                raise BadInput(f"{self.name} is too large for one record: it has more than {LINE_BYTES_MAX} bytes")
        yield [bytes(content)]

    def close(self) -> None:
        """Close a file; standard input stays open."""
        if self.descriptor != STANDARD_INPUT:
            os.close(self.descriptor)


class Sent(NamedTuple):
    """What was sent and acknowledged."""

    topic: str
    records: int
    bytes: int
    seconds: float

    def __str__(self) -> str:
        rate = self.records / self.seconds if self.seconds else 0.0
        return (
            f"{plural(self.records, 'record')} ({size_text(self.bytes)}) sent to {self.topic} "
            f"in {self.seconds:.2f} s, {rate:,.0f}/s"
        )


class Tally:
    """Counts what was sent, and what is known to have arrived."""

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.sent = 0
        self.bytes = 0
        """Of keys and values."""
        self.acknowledged = 0
        self.read_bytes = 0
        """Of the lines whose records are acknowledged."""
        self._under_way: deque[tuple[Delivery, int]] = deque()  # bounded by the producer's own buffer

    def note(self, delivery: "Delivery", size: int, read_bytes: int) -> None:
        """Note a record that was sent, the size of its content, and how much was read for it."""
        self._under_way.append((delivery, read_bytes))
        self.sent += 1
        self.bytes += size

    def count(self) -> tuple[int, int]:
        """Count what is acknowledged by now, up to the first record that is not: records, and bytes that were read."""
        while self._under_way and self._under_way[0][0].done and self._under_way[0][0].error is None:
            self._acknowledge(self._under_way.popleft()[1])
        return self.acknowledged, self.read_bytes

    def check(self) -> None:
        """Count what is acknowledged; raise what was refused first."""
        self.count()
        if self._under_way and self._under_way[0][0].done:
            self._under_way[0][0].result()

    def summary(self) -> str | None:
        """Describe at an early end what is known about each record; None where there is nothing to tell."""
        refused = 0
        for delivery, read_bytes in self._under_way:
            if not delivery.done or (delivery.error is not None and delivery.error.code in _UNKNOWN):
                continue
            if delivery.error is None:
                self._acknowledge(read_bytes)
            else:
                refused += 1
        unknown = self.sent - self.acknowledged - refused
        if not (self.acknowledged or unknown):
            return None
        parts = [f"{self.acknowledged:,} acknowledged"]
        parts += [f"{refused:,} refused"] if refused else []
        parts += [f"{unknown:,} unknown (in the topic or not)"] if unknown else []
        return f"{plural(self.sent, 'record')} sent to {self.topic}: {', '.join(parts)}"

    def _acknowledge(self, read_bytes: int) -> None:
        self.acknowledged += 1
        self.read_bytes += read_bytes


async def send(
    producer: "Producer",
    shape: LineFormat,
    sources: Sequence[LineSource],
    tally: Tally,
    *,
    whole: bool,
    rate: float | None,
) -> Sent:
    """Send everything and wait until all of it is acknowledged; the first refusal, or bad line, is raised."""
    began = time.monotonic()
    try:
        for source in sources:
            number = 0
            async for some in source.records(whole=whole):
                for line in some:
                    number += 1
                    record = shape.record(line, number, source.name)
                    if rate:
                        tally.check()
                        await asyncio.sleep(pause_seconds(tally.sent, rate, time.monotonic() - began))
                    await producer.ready(len(line))
                    delivery = producer.send_soon(shape.topic, partition=shape.partition, **record._asdict())
                    tally.note(delivery, len(record.key or b"") + len(record.value or b""), len(line) + 1)
                tally.check()
                # Reading a file never waits; the sender and Ctrl-C need their turn nevertheless.
                await asyncio.sleep(0)
            source.close()
    except BadInput as error:
        raise CommandError(f"{error}; {_sent_before(tally.sent)}") from error
    await producer.flush()
    return Sent(shape.topic, tally.sent, tally.bytes, round(time.monotonic() - began, 3))


def _sent_before(count: int) -> str:
    """Return what was sent before a bad line: who sends everything again would send that twice."""
    if count == 0:
        return "nothing was sent"
    return f"the {plural(count, 'record')} before it {'was' if count == 1 else 'were'} sent"


def pause_seconds(count: int, rate: float, elapsed: float) -> float:
    """Return how long to wait before record number `count` (from 0) so that there are at most `rate` a second."""
    return max(0.0, count / rate - elapsed)


@contextmanager
def progress_bar(sources: Sequence[LineSource]) -> Iterator[ProgressCallback]:
    """Show on the terminal what is acknowledged, if there is one and nobody is typing there."""
    if not sys.stderr.isatty() or any(source.is_terminal for source in sources):
        yield lambda _records, _bytes: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    sizes = [source.size for source in sources]
    total = None if None in sizes else sum(size or 0 for size in sizes)
    columns = (BarColumn(), TextColumn("{task.fields[said]}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total, said="")

        def show(records: int, size: int) -> None:
            bar.update(task, completed=size, said=f"{plural(records, 'record')}, {size_text(size)} acknowledged")

        yield show


def _size(descriptor: int) -> int | None:
    status = os.fstat(descriptor)
    return status.st_size if stat.S_ISREG(status.st_mode) else None
