"""Nobody waits on the loop for bytes that are not in memory: whatever a client asks for, they are read beside it."""

import asyncio
import errno
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from random import Random
from typing import Any, TypeVar

import pytest

from riverlog.model.errors import ErrorCode
from riverlog.model.ids import Offset
from riverlog.model.limits import SENDFILE_BYTES_MIN
from riverlog.model.ports import FileRange
from riverlog.partitions.cold_reads import ColdReads
from riverlog.partitions.limits import COLD_READ_BYTES_MIN, COLD_READ_TRUSTED_SECONDS
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from riverlog.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tests.support.asking import Line, connected, serving
from tests.support.batches import batch_of
from tests.support.disk import MemoryDisk, MemoryFile
from tests.support.world import PatientWorkers, Universe
from tests.unit.broker.handlers.test_fetch import values
from tests.unit.broker.handlers.test_produce import create, produced, request

T = TypeVar("T")
PARTITIONS = 3
ALL = 1 << 20


class Watched(PatientWorkers):
    """Workers that are known to be at work."""

    at_work = False

    def run(self, work: Callable[[], T]) -> Awaitable[T]:
        def watched() -> T:
            self.at_work = True
            try:
                return work()
            finally:
                self.at_work = False

        return super().run(watched)


class ColdUniverse(Universe):
    """A universe that notes who waits for the disk."""

    def __init__(self) -> None:
        super().__init__()
        self.workers = self.watched = Watched(self.random)
        self.beside_the_loop: list[str] = []
        self.on_the_loop: list[str] = []

    async def watch(self) -> None:
        """Forget what is in memory, after a while, and note from now on who reads it again."""
        await asyncio.sleep(2 * COLD_READ_TRUSTED_SECONDS)
        self.disk.drop_cache()
        self.beside_the_loop.clear()
        self.disk.waited = self.note

    def note(self, path: str) -> None:
        (self.beside_the_loop if self.watched.at_work else self.on_the_loop).append(path)


def fetching(*offsets: int, committed: bool = False, **how: int) -> FetchRequest:
    """Ask for the partitions from these offsets on."""
    parts = [
        FetchPartition(partition=index, fetch_offset=Offset(offset), partition_max_bytes=ALL)
        for index, offset in enumerate(offsets)
    ]
    topics = [FetchTopic(topic="orders", partitions=parts)]
    limits = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 10 * ALL} | how
    return FetchRequest(topics=topics, isolation_level=int(committed), **limits)


async def read_all(line: Line, *, partitions: int = 1, committed: bool = False) -> list[list[bytes | None]]:
    """Read everything of the first partitions."""
    found: list[list[bytes | None]] = [[] for _ in range(partitions)]
    while True:
        before = [len(each) for each in found]
        response = await line.ask(ApiKey.FETCH, 12, fetching(*before, committed=committed))
        for each, answer in zip(found, response.responses[0].partitions, strict=True):
            assert answer.error_code == 0
            each += values(answer)
        if before == [len(each) for each in found]:
            return found


async def list_times(line: Line, *timestamps: int) -> list[Any]:
    parts = [ListOffsetsPartition(partition_index=index, timestamp=each) for index, each in enumerate(timestamps)]
    asked = ListOffsetsRequest(topics=[ListOffsetsTopic(name="orders", partitions=parts)])
    return list((await line.ask(ApiKey.LIST_OFFSETS, 7, asked)).topics[0].partitions)


async def fill(line: Line, size: int = 100) -> None:
    """Write some segments to each partition."""
    await create(line)
    for number in range(60):
        for index in range(PARTITIONS):
            batch = batch_of([b"%02d" % number * (size // 2)], timestamp_ms=1_000 * number)
            await produced(line, request(batch, index=index))


@asynccontextmanager
async def cold_node(size: int = 100, **settings: str) -> AsyncIterator[tuple[Line, ColdUniverse]]:
    """Start a node with records, of which nothing is in memory, and see that nobody waits on the loop."""
    universe = ColdUniverse()
    async with serving(universe, num_partitions=str(PARTITIONS), **settings) as (line, _node):
        await fill(line, size)
        await universe.watch()
        yield line, universe
        assert universe.on_the_loop == []
        assert universe.beside_the_loop != []
        universe.disk.waited = lambda _path: None


def expected(size: int = 100) -> list[bytes]:
    return [b"%02d" % number * (size // 2) for number in range(60)]


@pytest.mark.parametrize("committed", [False, True])
@pytest.mark.parametrize("partitions", [1, PARTITIONS])
async def test_a_fetch_of_what_is_not_in_memory_comes_again(partitions: int, committed: bool) -> None:
    async with cold_node(log_segment_bytes="4096") as (line, _universe):
        assert await read_all(line, partitions=partitions, committed=committed) == [expected()] * partitions


async def test_large_ranges_are_read_before_they_are_sent_from_their_files() -> None:
    size = SENDFILE_BYTES_MIN
    async with cold_node(size) as (line, universe):
        assert await read_all(line) == [expected(size)]
        await universe.watch()
        assert await read_all(line) == [expected(size)]


async def test_a_fetch_that_waits_looks_again_when_the_disk_was_read() -> None:
    async with cold_node() as (line, universe):
        for partitions in (1, 2):
            waiting = line.send(ApiKey.FETCH, 12, fetching(*[60] * partitions, max_wait_ms=60_000, min_bytes=1_000))
            await asyncio.sleep(0.1)
            other = await connected(universe)
            for _ in range(10):
                await produced(other, request(batch_of([b"x" * 100])))
                universe.disk.drop_cache()
            response = await waiting
            assert len(values(response.responses[0].partitions[0])) >= 5


async def test_times_are_found_beside_the_loop() -> None:
    async with cold_node(log_segment_bytes="4096") as (line, universe):
        (found,) = await list_times(line, 30_000)
        assert found.offset == 30
        await universe.watch()
        assert [each.offset for each in await list_times(line, 10_000, -3, 50_001)] == [10, 59, 51]


async def test_a_log_that_is_not_in_memory_is_opened_beside_the_loop() -> None:
    universe, settings = ColdUniverse(), {"num_partitions": str(PARTITIONS), "log_segment_bytes": "4096"}
    async with serving(universe, **settings) as (line, _node):
        await fill(line)
    universe.disk.drop_cache()
    async with serving(universe, **settings) as (line, _node):
        universe.disk.waited = universe.note
        assert await read_all(line, partitions=PARTITIONS) == [expected()] * PARTITIONS
        assert universe.on_the_loop == []
        universe.disk.waited = lambda _path: None


async def test_retention_learns_about_segments_beside_the_loop() -> None:
    settings = {"num_partitions": "1", "log_segment_bytes": "4096", "log_retention_check_interval_ms": "10000"}
    universe = ColdUniverse()
    async with serving(universe, **settings) as (line, _node):
        await fill(line)
    universe.disk.drop_cache()
    async with serving(universe, **settings) as (line, _node):
        universe.disk.waited = universe.note
        await list_times(line, -1)
        opened = set(universe.beside_the_loop)
        await asyncio.sleep(20)
        assert universe.on_the_loop == []
        assert len(set(universe.beside_the_loop) - opened) > 1
        universe.disk.waited = lambda _path: None


async def test_a_system_that_keeps_nothing_in_memory_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MemoryFile, "is_cached", lambda *_: False)
    async with serving(num_partitions="1", log_segment_bytes="4096") as (line, _node):
        await fill(line)
        assert await read_all(line) == [expected()]
        assert [each.offset for each in await list_times(line, 30_000)] == [30]


async def test_an_error_of_the_disk_is_told_to_whoever_wanted_to_read() -> None:
    universe = ColdUniverse()
    async with serving(universe, num_partitions="1") as (line, _node):
        await fill(line)
        universe.disk.drop_cache()
        universe.disk.fail(0, errno.EIO, on=("read",), lasting=True)
        answer = (await line.ask(ApiKey.FETCH, 12, fetching(0))).responses[0].partitions[0]
        assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        universe.disk.heal()


async def test_who_goes_through_a_file_finds_more_and_more_of_it_read() -> None:
    disk, cold = MemoryDisk(), ColdReads(PatientWorkers(Random(0)))
    file = disk.open("/a", create=True)
    file.write(0, [bytes(20 * COLD_READ_BYTES_MIN)])
    disk.drop_cache()
    position, reads = 0, 0
    while position < file.size():
        if not file.is_cached(position, 1):
            until = cold.begin(FileRange(file, position, 1))
            assert until is not None
            await until
            reads += 1
        position += 1_000
    assert reads <= 5  # 1, 2, 4, 8 and 16 portions
    assert cold.begin(FileRange(file, 0, COLD_READ_BYTES_MIN)) is None  # it was read just now
