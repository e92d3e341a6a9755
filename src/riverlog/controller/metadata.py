"""The cluster's metadata on this node: what it is now, and the way to change it.

`image` is the committed view; those who watch are told of each change before whoever asked for it gets the reply, so
that a topic whose creation was acknowledged can be used at once.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Never, TypeVar

from riverlog.controller.limits import PRODUCER_ID_BLOCK
from riverlog.controller.log import MetadataLog
from riverlog.controller.quorum import MetadataQuorum
from riverlog.metadata.commands.producer_ids import AllocateProducerIds
from riverlog.metadata.commands.topics import TopicDefaults
from riverlog.metadata.delta import MetadataDelta, delta_of
from riverlog.metadata.image import ConfigResource, ConfigResourceType, MetadataImage
from riverlog.metadata.machine import MetadataMachine
from riverlog.metadata.records import MetadataRecord
from riverlog.model.errors import Refusal
from riverlog.model.ids import Offset, ProducerId
from riverlog.model.machine import Command
from riverlog.model.ports import Clock
from riverlog.model.resolution import topic_config, with_dynamic
from riverlog.model.settings import NodeSettings, TopicConfig
from riverlog.observe.containment import contained
from riverlog.runner import Runner

Reply = TypeVar("Reply")

MetadataWatcher = Callable[[MetadataDelta], None]


class MetadataDriver:
    """Runs the metadata machine and publishes what it has committed."""

    def __init__(
        self,
        *,
        log: MetadataLog,
        settings: NodeSettings,
        clock: Clock,
        failed: Callable[[Exception], None],
    ) -> None:
        self.image = MetadataImage()
        self.settings = settings
        """The node's settings as they are now, with what was set while it ran."""
        self._log = log
        self._failed = failed
        self._started_with = settings
        self._watchers: list[MetadataWatcher] = []
        self._producer_ids: deque[ProducerId] = deque()
        self._next_block: asyncio.Future[None] | None = None
        defaults = TopicDefaults(settings.num_partitions, settings.default_replication_factor, settings.layers)
        self._runner: Runner[MetadataMachine, MetadataRecord, Never] = Runner(
            new_machine=lambda: MetadataMachine(defaults),
            log=log,
            clock=clock,
            view=lambda machine: machine.image,
            committed=self._publish,
            failed=self._log_failed,
        )

    @property
    def end_offset(self) -> Offset:
        """Return the offset behind the metadata's last record."""
        return self._log.end_offset

    @property
    def quorum(self) -> MetadataQuorum:
        """Return who votes on the metadata, who leads, and what is committed."""
        return self._log.quorum

    def start(self) -> None:
        """Read the metadata from the log, and lead it from here on; BadMetadata where it is damaged."""
        self._runner.start()
        self._log.lead()
        self.image = self._runner.machine.image
        self.settings = self._settings_now()

    def watch(self, watcher: MetadataWatcher) -> None:
        """Be told of every change from now on, in order, while it is the newest."""
        self._watchers.append(watcher)

    def topic_config(self, topic: str) -> TopicConfig:
        """Return the settings that hold for a topic."""
        return topic_config(self.image.topic_overrides(topic), self.settings.layers)

    def submit(self, command: Command[MetadataRecord, Reply]) -> Awaitable[Reply]:
        """Decide now; the reply comes once what it says is on the medium. Refusal where that failed."""
        return self._runner.submit(command)

    async def next_producer_id(self) -> ProducerId:
        """Return an id that no producer ever had; ids are taken from the controller a block at a time."""
        while not self._producer_ids:
            if self._next_block is None:
                self._next_block = asyncio.ensure_future(self._take_block())
            # Many may wait for the same block, and one of them may be cancelled.
            await asyncio.shield(self._next_block)
        return self._producer_ids.popleft()

    async def _take_block(self) -> None:
        try:
            block = await self.submit(AllocateProducerIds(self.settings.node_id, PRODUCER_ID_BLOCK))
            self._producer_ids.extend(ProducerId(block.first + each) for each in range(block.count))
        finally:
            self._next_block = None

    async def close(self) -> None:
        """Finish what is under way."""
        await self._runner.drain()
        await self._log.close()

    def _publish(self, image: MetadataImage, records: tuple[MetadataRecord, ...], _effects: tuple[Never, ...]) -> None:
        delta = delta_of(self.image, image, records)
        self.image = image
        if delta.nodes_configured:
            self.settings = self._settings_now()
        for watcher in self._watchers:
            try:
                watcher(delta)
            except Exception as error:  # the others are to follow the metadata all the same
                contained("change of the metadata", error)
        bytes_max = self.settings.metadata_log_max_record_bytes_between_snapshots
        if self._runner.settled and self._log.bytes_since_snapshot > bytes_max:
            self._log.begin_snapshot(image)

    def _log_failed(self, error: Exception) -> None:
        """Begin again from the log if it can go on; end the node if it cannot."""
        if isinstance(error, Refusal):
            try:
                return self._runner.start()
            except Exception as worse:
                error = worse
        return self._failed(error)

    def _settings_now(self) -> NodeSettings:
        node_id = str(self._started_with.node_id)
        return with_dynamic(
            self._started_with,
            node=self.image.config(ConfigResource(ConfigResourceType.BROKER, node_id)),
            cluster=self.image.config(ConfigResource(ConfigResourceType.BROKER, "")),
        )
