"""Group commit: one flush at a time and partition, and nobody forgotten."""

import asyncio
import errno

import pytest

from riverlog.log.identity import META_FILE
from riverlog.model.disk_errors import FlushFailed
from riverlog.observe.stats import NodeStats
from riverlog.partitions.directory_health import DirectoryHealth
from riverlog.partitions.flusher import Flusher
from riverlog.partitions.limits import FLUSHES_UNDER_WAY_MAX
from tests.support.disk import MemoryDisk
from tests.support.virtual_time import VirtualClock


class Plan:
    def __init__(self, upto: int, error: int | None) -> None:
        self.upto = upto
        self._error = error

    def run(self) -> None:
        if self._error is not None:
            raise FlushFailed(self._error, "flush failed")


class Partition:
    """A partition as the flusher sees it: a log that makes plans, and a place to tell how far they came."""

    def __init__(self) -> None:
        self.end = 0
        self.plans = 0
        self.made = 0
        self.names = 0
        self.reached: list[int] = []
        self.error: int | None = None
        self.plan_error: int | None = None
        self.keeps_files = True
        self.withdrawn: OSError | None = None
        self.log = self

    def pending_sync(self) -> Plan:
        self.plans += 1
        if self.plan_error is not None:
            raise OSError(self.plan_error, "a file could not be opened")
        self.made += 1
        return Plan(self.end, self.error)

    def pending_first_name(self) -> Plan:
        self.names += 1
        return Plan(0, self.error)

    def synced(self, plan: Plan) -> None:
        self.reached.append(plan.upto)

    def flushed(self) -> None:
        assert self.reached

    def withdraw(self, error: OSError) -> None:
        self.withdrawn = error
        self.keeps_files = False


class SlowWorkers:
    error: OSError | None = None

    async def run(self, work):  # type: ignore[no-untyped-def]
        if self.error is not None:
            raise self.error
        work()
        await asyncio.sleep(0.005)


def a_flusher() -> tuple[Flusher, DirectoryHealth, NodeStats]:
    disk = MemoryDisk()
    disk.make_folder("/data")
    disk.open(f"/data/{META_FILE}", create=True)
    health = DirectoryHealth(disk, "/data", changed=lambda _health: None)
    stats = NodeStats()
    return Flusher(SlowWorkers(), health, VirtualClock(), stats), health, stats  # type: ignore[arg-type]


async def test_what_comes_during_a_flush_shares_the_next() -> None:
    flusher, _volume, stats = a_flusher()
    partition = Partition()
    for end in range(1, 101):
        partition.end = end
        flusher.flush(partition)  # type: ignore[arg-type]
        await asyncio.sleep(0.0001)
    await flusher.drain()
    assert partition.reached[-1] == 100
    assert partition.plans < 10
    assert sum(stats.flushes.counts) == partition.plans


async def test_a_flush_that_is_wanted_while_a_name_is_synced_follows() -> None:
    flusher, _volume, _stats = a_flusher()
    partition = Partition()
    partition.end = 5
    flusher.sync_first_name(partition)  # type: ignore[arg-type]
    flusher.flush(partition)  # type: ignore[arg-type]
    await flusher.drain()
    assert (partition.names, partition.plans, partition.reached) == (1, 1, [0, 5])


async def test_a_flush_syncs_the_name_itself() -> None:
    flusher, _volume, _stats = a_flusher()
    partition = Partition()
    flusher.flush(partition)  # type: ignore[arg-type]
    flusher.sync_first_name(partition)  # type: ignore[arg-type]
    await flusher.drain()
    assert (partition.names, partition.plans) == (0, 1)


async def test_partitions_do_not_wait_for_each_other() -> None:
    flusher, _volume, _stats = a_flusher()
    partitions = [Partition() for _ in range(10)]
    before = asyncio.get_running_loop().time()
    for partition in partitions:
        partition.end = 1
        flusher.flush(partition)  # type: ignore[arg-type]
    for partition in partitions:
        await flusher.settled(partition)  # type: ignore[arg-type]
    assert asyncio.get_running_loop().time() - before < 0.01
    assert all(partition.reached == [1] for partition in partitions)


async def test_a_failed_flush_is_not_tried_again() -> None:
    flusher, health, _stats = a_flusher()
    partition = Partition()
    partition.error = errno.EIO
    flusher.flush(partition)  # type: ignore[arg-type]
    flusher.flush(partition)  # type: ignore[arg-type]
    await flusher.drain()
    assert health.offline
    assert partition.plans == 1
    assert partition.reached == []


async def test_a_flush_whose_files_cannot_be_opened_has_failed() -> None:
    flusher, health, _stats = a_flusher()
    partition = Partition()
    partition.plan_error = errno.EIO
    flusher.flush(partition)  # type: ignore[arg-type]
    await flusher.drain()
    assert health.offline
    assert partition.reached == []


@pytest.mark.parametrize("error", [errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EACCES, errno.ENOSPC])
async def test_a_flush_that_could_not_begin_begins_later(error: int) -> None:
    flusher, health, _stats = a_flusher()
    partition = Partition()
    partition.end = 7
    partition.plan_error = error
    flusher.flush(partition)  # type: ignore[arg-type]
    await asyncio.sleep(1)
    assert partition.plans > 1
    partition.plan_error = None
    await flusher.drain()
    assert not health.offline
    assert (partition.made, partition.reached) == (1, [7])


async def test_flushes_that_cannot_begin_are_in_no_others_way() -> None:
    flusher, _volume, _stats = a_flusher()
    for _ in range(FLUSHES_UNDER_WAY_MAX):
        hindered = Partition()
        hindered.plan_error = errno.EACCES
        flusher.flush(hindered)  # type: ignore[arg-type]
    await asyncio.sleep(1)
    partition = Partition()
    partition.end = 7
    flusher.flush(partition)  # type: ignore[arg-type]
    await flusher.settled(partition)  # type: ignore[arg-type]
    assert partition.reached == [7]
    await flusher.drain()


async def test_what_comes_while_a_plan_waits_to_go_on_is_flushed_after_it() -> None:
    flusher, _volume, _stats = a_flusher()
    partition = Partition()
    partition.end = 7
    workers = flusher._workers
    assert isinstance(workers, SlowWorkers)
    workers.error = OSError(errno.EMFILE, "the folder could not be opened")
    flusher.flush(partition)  # type: ignore[arg-type]
    await asyncio.sleep(0.05)
    partition.end = 9
    flusher.flush(partition)  # type: ignore[arg-type]
    workers.error = None
    await flusher.drain()
    assert partition.reached == [7, 9]


async def test_a_plan_that_broke_off_before_it_asked_the_medium_is_the_one_that_goes_on() -> None:
    flusher, health, _stats = a_flusher()
    partition = Partition()
    partition.end = 7
    workers = flusher._workers
    assert isinstance(workers, SlowWorkers)
    workers.error = OSError(errno.EMFILE, "the folder could not be opened")
    flusher.flush(partition)  # type: ignore[arg-type]
    await asyncio.sleep(0.05)
    workers.error = None
    await flusher.drain()
    assert not health.offline
    assert (partition.made, partition.reached) == (1, [7])


async def test_a_flush_that_failed_for_want_of_memory_has_failed_all_the_same() -> None:
    flusher, health, _stats = a_flusher()
    partition = Partition()
    partition.error = errno.ENOMEM
    flusher.flush(partition)  # type: ignore[arg-type]
    await flusher.drain()
    assert health.offline
    assert (partition.plans, partition.reached) == (1, [])


async def test_a_node_that_stops_does_not_wait_for_ever_for_a_flush_to_begin() -> None:
    flusher, health, _stats = a_flusher()
    partition = Partition()
    partition.plan_error = errno.EMFILE
    flusher.flush(partition)  # type: ignore[arg-type]
    await flusher.drain()
    assert health.offline, "so that the next start recovers"
    assert partition.reached == []


async def test_files_that_are_gone_concern_their_partition_alone() -> None:
    flusher, health, _stats = a_flusher()
    robbed, deleted, sound = Partition(), Partition(), Partition()
    robbed.plan_error = deleted.plan_error = errno.ENOENT
    for partition in (robbed, deleted, sound):
        flusher.flush(partition)  # type: ignore[arg-type]
    deleted.keeps_files = False
    await flusher.drain()
    assert not health.offline
    assert robbed.withdrawn is not None
    assert deleted.withdrawn is None
    assert deleted.plans == 0
    assert sound.reached == [0]
    flusher.flush(robbed)  # type: ignore[arg-type]
    await flusher.drain()
    assert robbed.plans == 1


async def test_a_flush_that_ends_after_another_has_failed_counts_for_nothing() -> None:
    flusher, health, _stats = a_flusher()
    failing, other = Partition(), Partition()
    failing.error = errno.EIO
    flusher.flush(other)
    flusher.flush(failing)  # both sync the folder that holds their folders; the system tells of a failure once
    await flusher.drain()
    assert health.offline
    assert other.plans == 1
    assert other.reached == []


async def test_no_flush_is_begun_once_another_has_failed() -> None:
    flusher, health, _stats = a_flusher()
    broken, sound = Partition(), Partition()
    broken.error = errno.EIO
    flusher.flush(sound)
    await asyncio.sleep(0)
    flusher.flush(broken)
    await flusher.settled(sound)
    flusher.flush(sound)
    await flusher.drain()
    assert (sound.plans, sound.reached) == (1, []), "a log makes one plan at a time, and the first never ends"
    assert health.offline


async def test_a_flush_that_ends_after_the_directory_went_offline_counts_for_nothing() -> None:
    flusher, health, _stats = a_flusher()
    partition = Partition()
    flusher.flush(partition)
    await asyncio.sleep(0.001)
    health.fail("a segment could not be begun: the names in its folder are lost")
    await flusher.drain()
    assert partition.plans == 1
    assert partition.reached == []


async def test_only_so_many_plans_are_made_at_once() -> None:
    flusher, _volume, _stats = a_flusher()
    partitions = [Partition() for _ in range(5 * FLUSHES_UNDER_WAY_MAX)]
    for partition in partitions:
        flusher.flush(partition)  # type: ignore[arg-type]
    await asyncio.sleep(0.001)
    assert sum(partition.plans for partition in partitions) == FLUSHES_UNDER_WAY_MAX
    for partition in partitions:
        partition.end = 7  # what comes while a flush waits for its turn belongs to it
    await flusher.drain()
    assert [partition.plans for partition in partitions] == [1] * len(partitions)
    assert [partition.reached for partition in partitions[FLUSHES_UNDER_WAY_MAX:]] == [[7]] * (
        len(partitions) - FLUSHES_UNDER_WAY_MAX
    )
