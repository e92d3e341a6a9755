"""Curves of a controller's metadata by the number of partitions: `python -m bench.controllers 1000 10000 100000`.

For each number, in a process of its own: topics of ten partitions are created on three brokers through a controller
that is the only voter, its log on a real disk; a broker that leads a third of them is fenced; a snapshot is written;
the node starts again. Times are of the wall, with the CPU's in brackets. `--image` builds the view alone.
"""

import argparse
import asyncio
import gc
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Final
from uuid import UUID

from riverlog.controller.controller import Controller
from riverlog.controller.folder_check import check_folder
from riverlog.controller.log import MetadataLog
from riverlog.controller.past import QuorumPast
from riverlog.controller.quorum import MetadataQuorum
from riverlog.controller.storage import MetadataStorage
from riverlog.controller.view import MetadataView
from riverlog.metadata.commands.brokers import RegisterBroker
from riverlog.metadata.commands.liveness import BrokerHeartbeat, BrokerUnreachable
from riverlog.metadata.commands.topics import CreateTopics, TopicCreation
from riverlog.metadata.draft import MetadataDraft
from riverlog.metadata.features import NODE_FEATURES
from riverlog.metadata.image import MetadataImage, RegisteredEndpoint
from riverlog.metadata.records import PartitionRecord, TopicRecord
from riverlog.model.ids import NodeId, TopicId
from riverlog.model.resolution import configure
from riverlog.observe.process import objects_that_stay
from riverlog.raft.voters import ReplicaKey, Voter, VoterSet
from riverlog.world.clock import SystemClock
from riverlog.world.disk import FileSystem
from riverlog.world.workers import ThreadWorkers

PER_TOPIC: Final = 10
TOPICS_PER_REQUEST: Final = 100
BROKERS: Final = (1, 2, 3)
_KEY: Final = ReplicaKey(NodeId(1), UUID(int=1001))


class Stopwatch:
    """Prints how long something took, and the longest CPU time for which the loop stood still meanwhile."""

    def __init__(self) -> None:
        self.stall = 0.0
        self._ticking = asyncio.ensure_future(self._tick())

    async def _tick(self) -> None:
        while True:
            before = time.thread_time()  # so that other processes do not count
            await asyncio.sleep(0.001)
            self.stall = max(self.stall, time.thread_time() - before)

    async def time(self, what: str, work: Callable[[], object]) -> None:
        """Measure a piece of work, which may be awaited."""
        await asyncio.sleep(0.01)
        self.stall = 0.0
        wall, cpu = time.perf_counter(), time.process_time()
        done = work()
        if asyncio.iscoroutine(done) or asyncio.isfuture(done):
            await done
        seconds, busy = time.perf_counter() - wall, time.process_time() - cpu
        await asyncio.sleep(0.01)
        print(f"  {what:34} {seconds:8.3f} s ({busy:.3f} CPU), longest stall {self.stall * 1000:.0f} ms", flush=True)


def open_controller(folder: str) -> Controller:
    disk, clock = FileSystem(), SystemClock()
    found = check_folder(disk, folder)
    past = QuorumPast.of(found, _KEY, VoterSet.of([Voter(_KEY, ())]))
    quorum = MetadataQuorum(
        MetadataStorage.open(disk, clock, found), clock, ThreadWorkers(2), Random(1), key=_KEY, past=past
    )
    log = MetadataLog(quorum, clock, ThreadWorkers(2))
    given = configure(flags={"metadata.log.max.record.bytes.between.snapshots": str(2**40)}).settings
    return Controller(log=log, view=MetadataView(given), clock=clock, failed=lambda error: print(f"failed: {error!r}"))


async def register(controller: Controller) -> dict[int, int]:
    """Register the brokers, and return their epochs."""
    epochs = {}
    for node in BROKERS:
        command = RegisterBroker(
            NodeId(node),
            UUID(int=2000 + node),
            (RegisteredEndpoint("PLAINTEXT", f"b{node}", 9092, 0),),
            NODE_FEATURES,
            None,
            (UUID(int=3000 + node),),
            next_offset=controller.next_offset,
        )
        epochs[node] = (await controller.submit(command)).epoch
        await beat(controller, node, epochs[node])
    return epochs


async def beat(controller: Controller, node: int, epoch: int) -> None:
    await controller.submit(
        BrokerHeartbeat(NodeId(node), epoch, controller.next_offset, next_offset=controller.next_offset)
    )


async def create(controller: Controller, partitions: int, epochs: dict[int, int]) -> None:
    """Create the topics, as many at a time as one request has."""
    random, topics = Random(7), partitions // PER_TOPIC
    for first in range(0, topics, TOPICS_PER_REQUEST):
        await controller.submit(
            CreateTopics(
                tuple(
                    TopicCreation(
                        f"topic-{number}", TopicId(UUID(int=random.getrandbits(128), version=4)), PER_TOPIC, 1
                    )
                    for number in range(first, min(topics, first + TOPICS_PER_REQUEST))
                )
            )
        )
        for node, epoch in epochs.items():
            await beat(controller, node, epoch)


async def fail_over(controller: Controller, epoch: int) -> None:
    """Lose the first broker; return when it is fenced, and so behind the last of its partitions."""
    await controller.submit(BrokerUnreachable(NodeId(1), epoch))
    while not controller.image.brokers[NodeId(1)].fenced:
        await controller.changed()


async def measure(partitions: int, folder: str) -> None:
    gc.collect()
    before, watch = rss(), Stopwatch()
    controller = open_controller(folder)
    controller.start()
    epochs = await register(controller)
    await watch.time("create", lambda: create(controller, partitions, epochs))
    gc.collect()
    print(f"  {'memory, index and log included':34} {(rss() - before) / partitions:8.0f} B per partition")
    for node, epoch in epochs.items():
        await beat(controller, node, epoch)
    await watch.time("fail-over of a third of the leaders", lambda: fail_over(controller, epochs[1]))
    end = controller.quorum.high_watermark

    async def snapshot() -> None:
        controller.log.begin_snapshot(controller.image, end)
        while controller.log.is_writing_snapshot:  # noqa: ASYNC110  # nothing tells
            await asyncio.sleep(0.01)

    await watch.time("snapshot", snapshot)
    await controller.close()
    print(f"  {'folder':34} {size_of(folder) / 1e6:8.1f} MB")
    again = open_controller(folder)

    def start() -> None:
        with objects_that_stay():  # as a node does
            again.start()

    await watch.time("restart from the snapshot", start)
    assert len(again.image.topics) == partitions // PER_TOPIC
    await again.close()


def image_alone(partitions: int) -> None:
    """Build the view of so many partitions from records, one after the other."""
    random, draft, before = Random(7), MetadataDraft(MetadataImage()), rss()
    gc.freeze()
    gc.disable()
    cpu = time.process_time()
    for number in range(partitions // PER_TOPIC):
        topic_id = UUID(int=random.getrandbits(128), version=4)
        draft.apply(TopicRecord(name=f"topic-{number}", topic_id=topic_id))
        for index in range(PER_TOPIC):
            replicas = tuple(1 + (number + index + each) % 3 for each in range(3))
            directories = tuple(UUID(int=3000 + each) for each in replicas)
            draft.apply(
                PartitionRecord(index, topic_id, replicas, replicas, leader=replicas[0], directories=directories)
            )
    image = draft.image()
    seconds = time.process_time() - cpu
    assert len(image.topics) == partitions // PER_TOPIC
    print(f"  {'image alone':34} {seconds:8.1f} s of CPU, {(rss() - before) / partitions:.0f} B per partition")


def size_of(folder: str) -> int:
    return sum(path.stat().st_size for path in Path(folder).iterdir())


def rss() -> int:
    """Return the bytes of memory that this process has."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.controllers", description=__doc__)
    parser.add_argument("partitions", type=int, nargs="+")
    parser.add_argument("--image", action="store_true", help="build the view alone")
    options = parser.parse_args()
    for partitions in options.partitions:
        if len(options.partitions) > 1:
            more = ["--image"] if options.image else []
            subprocess.run([sys.executable, "-m", "bench.controllers", str(partitions), *more], check=True)
            continue
        print(f"{partitions:,} partitions", flush=True)
        if options.image:
            image_alone(partitions)
        else:
            with tempfile.TemporaryDirectory() as folder:
                asyncio.run(measure(partitions, os.path.join(folder, "metadata")))
    return 0


if __name__ == "__main__":
    sys.exit(main())
