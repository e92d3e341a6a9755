"""The cluster's metadata on this node: what it is now, and the way to change it.

`image` is the committed view; those who watch are told of each change before whoever asked for it gets the reply, so
that a topic whose creation was acknowledged can be used at once.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Never, overload

from riverlog.controller.limits import PRODUCER_ID_BLOCK
from riverlog.controller.log import MetadataLog
from riverlog.drivers.coordinator import Coordinator
from riverlog.metadata.commands.brokers import BrokerRegistered, RegisterBroker, ReportDirectories
from riverlog.metadata.commands.configs import AlterConfigs, ConfigsAltered
from riverlog.metadata.commands.partitions import CreatePartitions, PartitionsCreated
from riverlog.metadata.commands.producer_ids import AllocateProducerIds, ProducerIdBlock
from riverlog.metadata.commands.topics import CreateTopics, DeleteTopics, TopicDefaults, TopicsCreated, TopicsDeleted
from riverlog.metadata.delta import MetadataDelta, delta_of
from riverlog.metadata.image import ConfigResource, ConfigResourceType, MetadataImage
from riverlog.metadata.machine import MetadataCommand, MetadataMachine
from riverlog.metadata.records import MetadataRecord
from riverlog.model.errors import Refusal
from riverlog.model.ids import Offset, ProducerId
from riverlog.model.ports import Clock
from riverlog.model.resolution import topic_config, with_dynamic
from riverlog.model.settings import NodeSettings, TopicConfig
from riverlog.observe.containment import contained

Watcher = Callable[[MetadataDelta], None]


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
        self._watchers: list[Watcher] = []
        self._producer_ids: deque[ProducerId] = deque()
        self._next_block: asyncio.Future[None] | None = None
        defaults = TopicDefaults(settings.num_partitions, settings.default_replication_factor, settings.layers)
        self._coordinator: Coordinator[MetadataCommand, MetadataRecord, Never] = Coordinator(
            new_machine=lambda: MetadataMachine(defaults),
            log=log,
            clock=clock,
            view=_image_of,
            committed=self._publish,
            failed=self._log_failed,
        )

    @property
    def end_offset(self) -> Offset:
        """Give the offset behind the metadata's last record."""
        return self._log.end_offset

    def start(self) -> None:
        """Read the metadata from the log; BadMetadata where it is damaged."""
        self._coordinator.start()
        self.image = _image_of(self._coordinator.machine)
        self.settings = self._settings_now()

    def watch(self, watcher: Watcher) -> None:
        """Be told of every change from now on, in order, while it is the newest."""
        self._watchers.append(watcher)

    def topic_config(self, topic: str) -> TopicConfig:
        """Give the settings that hold for a topic."""
        return topic_config(self.image.topic_overrides(topic), self.settings.layers)

    @overload
    def submit(self, command: CreateTopics) -> Awaitable[TopicsCreated]: ...
    @overload
    def submit(self, command: DeleteTopics) -> Awaitable[TopicsDeleted]: ...
    @overload
    def submit(self, command: CreatePartitions) -> Awaitable[PartitionsCreated]: ...
    @overload
    def submit(self, command: AlterConfigs) -> Awaitable[ConfigsAltered]: ...
    @overload
    def submit(self, command: RegisterBroker) -> Awaitable[BrokerRegistered]: ...
    @overload
    def submit(self, command: ReportDirectories) -> Awaitable[None]: ...
    @overload
    def submit(self, command: AllocateProducerIds) -> Awaitable[ProducerIdBlock]: ...
    def submit(self, command: MetadataCommand) -> Awaitable[Any]:
        """Decide now; the reply comes once what it says is on the medium. Refusal where that failed."""
        return self._coordinator.submit(command)

    async def next_producer_id(self) -> ProducerId:
        """Give an id that no producer ever had; ids are taken from the controller a block at a time."""
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
        await self._coordinator.drain()
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
        if self._coordinator.settled and self._log.bytes_since_snapshot > bytes_max:
            self._log.begin_snapshot(image)

    def _log_failed(self, error: Exception) -> None:
        """Begin again from the log if it can go on; end the node if it cannot."""
        if isinstance(error, Refusal):
            try:
                return self._coordinator.start()
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


def _image_of(machine: object) -> MetadataImage:
    assert isinstance(machine, MetadataMachine)
    return machine.image
