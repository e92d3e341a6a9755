"""A controller and its view over a disk in memory, from start to stop or crash."""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import TypeVar
from uuid import UUID

from riverlog.controller.controller import Controller
from riverlog.controller.metadata_requests import MetadataRequests
from riverlog.controller.producer_ids import ProducerIds
from riverlog.controller.storage import METADATA_CONFIG
from riverlog.controller.view import MetadataView
from riverlog.metadata.commands.only_broker import RegisterOnlyBroker
from riverlog.metadata.commands.topics import CreateTopics, TopicCreation
from riverlog.metadata.delta import MetadataDelta
from riverlog.metadata.image import MetadataImage
from riverlog.model.endpoints import Endpoint
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NodeId, Offset, TopicId
from riverlog.model.resolution import configure
from riverlog.model.settings import TopicConfig
from riverlog.raft.voters import ReplicaKey, Voter
from tests.support.disk import MemoryDisk
from tests.support.metadata_log import only_voter_log

T = TypeVar("T")
FOLDER = "/data/__cluster_metadata-0"
SEGMENT = f"{FOLDER}/{0:020}.log"
VOTER = Voter(ReplicaKey(NodeId(1), UUID(int=8)), ())


class StillClock:
    def monotonic(self) -> float:
        return 1.0

    def wall_ms(self) -> int:
        return 1_700_000_000_000


class TurnLater:
    """Workers that do their work on a later turn of the loop."""

    def run(self, work: Callable[[], T]) -> Awaitable[T]:
        async def later() -> T:
            await asyncio.sleep(0)
            return work()

        return asyncio.ensure_future(later())


class Node:
    """A controller over a disk, from start to stop or crash."""

    def __init__(
        self,
        disk: MemoryDisk,
        *,
        config: TopicConfig = METADATA_CONFIG,
        voter: Voter = VOTER,
        flushed: int = 0,
        after_clean_stop: bool = False,
        **settings: str,
    ) -> None:
        self.flushed = Offset(flushed)
        self.failures: list[Exception] = []
        self.deltas: list[MetadataDelta] = []
        disk.make_folder("/data")
        disk.sync_folder("/")
        self.log = only_voter_log(
            disk,
            FOLDER,
            StillClock(),
            TurnLater(),
            voter,
            config=config,
            flushed=self.flushed,
            after_clean_stop=after_clean_stop,
            note_flushed=self.note_flushed,
        )
        given = configure(flags={name.replace("_", "."): value for name, value in settings.items()}).settings
        self.view = MetadataView(given)
        self.controller = Controller(
            log=self.log, view=self.view, clock=StillClock(), failed=self.failures.append, alone=True
        )
        self.producer_ids = ProducerIds(MetadataRequests(self.controller, given.node_id))
        self.controller.start()
        self.view.watch(self.deltas.append)

    def note_flushed(self, offset: Offset) -> None:
        self.flushed = offset

    async def register(self, *, clean: bool = True) -> None:
        await self.controller.submit(
            RegisterOnlyBroker(
                NodeId(1), UUID(int=7), (Endpoint("PLAINTEXT", "localhost", 9092),), None, (UUID(int=8),), clean
            )
        )

    async def create(self, *names: str, partitions: int = 1) -> None:
        created = await self.controller.submit(CreateTopics(tuple(topic(name, partitions) for name in names)))
        assert [each.outcome.code for each in created.topics] == [ErrorCode.NONE] * len(names)


def topic(name: str, partitions: int = 1) -> TopicCreation:
    return TopicCreation(name, TopicId(UUID(int=Random(name).getrandbits(128), version=4)), partitions)


def names(image: MetadataImage) -> list[str]:
    return [each.name for each in image.all_topics()]


async def crash(disk: MemoryDisk) -> None:
    """Lose the power: what runs ends without a word, and the disk forgets what was not synced."""
    disk.crash()
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


def run(test):
    """Run an async test on a loop of its own."""

    def wrapped():
        asyncio.run(test())

    wrapped.__name__ = test.__name__
    return wrapped
