"""The checkpoints of log directories: what a stop leaves to the next start."""

import asyncio
import errno
from collections.abc import Callable
from typing import TypeVar

import pytest

from riverlog import Admin, Producer
from riverlog.model.errors import Refusal
from tests.support.world import PatientWorkers, Universe
from tests.unit.partitions.nodes import AT, append, crashed, started

T = TypeVar("T")


class LateWorkers(PatientWorkers):
    """Workers that are busy with something else at first."""

    async def _later(self, work: Callable[[], T]) -> T:
        await asyncio.sleep(1)
        return work()


async def test_a_checkpoint_that_was_begun_is_written_before_the_node_goes_on_to_stop() -> None:
    universe = Universe()
    node = await started(universe)
    node.parts.checkpoints._workers = LateWorkers(universe.random)
    checkpointing = asyncio.create_task(node.parts.checkpoints.write())
    await asyncio.sleep(0.5)
    checkpointing.cancel()
    await asyncio.wait([checkpointing])
    assert checkpointing.cancelled()
    assert [name for name in universe.disk.list("/data") if name.endswith(".planned")]
    await node.stop()


async def test_a_node_that_stops_before_all_is_recovered_says_so() -> None:
    universe = Universe()
    node = await crashed(universe, 2)
    await node.stop()
    node = await started(universe)
    assert not node.parts.registry.directories[0].logs.clean
    await asyncio.sleep(9)
    assert [partition.high_watermark for partition in node.parts.registry.list_opened()] == [1, 1]
    await node.stop()


async def test_a_partition_whose_files_were_taken_away_is_out_of_service_and_no_other() -> None:
    universe = Universe()
    node = await started(universe, durability="fsync")
    async with Admin(AT, ports=universe.ports) as admin:
        await admin.create_topic("orders", partitions=2)
    append(node)
    append(node, index=1)
    await asyncio.sleep(1)
    universe.disk.remove_folder("/data/orders-0")
    partition = node.parts.replicas.get("orders", 0)
    assert partition is not None
    partition.log.segments.unsynced_names = True
    append(node)
    await asyncio.sleep(1)
    with pytest.raises(Refusal, match="takes no writes"):
        append(node)
    append(node, index=1)
    assert node.not_ready() is None
    await node.stop()
    assert not (await started(universe)).parts.registry.directories[0].logs.clean


@pytest.mark.parametrize("error", [errno.EMFILE, errno.ENOMEM, errno.EACCES])
async def test_no_call_that_is_not_possible_now_takes_a_directory_offline(error: int) -> None:
    universe = Universe()
    node = await started(universe, log_segment_bytes="1024", durability="fsync")
    async with Admin(AT, ports=universe.ports) as admin:
        await admin.create_topic("orders", partitions=2)
    sent = 0
    async with Producer(AT, ports=universe.ports) as producer:
        for round_ in range(30):
            universe.disk.fail(round_ % 7, error, on=("open", "create", "read", "write"))
            await producer.send("orders", value=b"v" * 300, partition=0)
            sent += 1
            await asyncio.sleep(0.5)
            universe.disk.heal()
    assert node.not_ready() is None
    partition = node.parts.replicas.get("orders", 0)
    assert partition is not None
    assert partition.high_watermark >= sent
    await node.stop()
    assert (await started(universe)).parts.registry.directories[0].logs.clean
