"""A second broker in the metadata of a node: registered with its controller, heard of, and given partitions to lead."""

from typing import Any
from uuid import UUID

from riverlog.metadata.commands.brokers import RegisterBroker
from riverlog.metadata.commands.in_sync import AlterPartitions, InSyncBroker, InSyncChange
from riverlog.metadata.commands.leaders import ElectLeaders
from riverlog.metadata.commands.liveness import BecomeActive, BrokerHeartbeat
from riverlog.metadata.commands.topics import CreateTopics, TopicCreation
from riverlog.metadata.features import NODE_FEATURES
from riverlog.metadata.image import PartitionImage, RegisteredEndpoint
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NodeId, TopicId
from riverlog.node import Node

OTHER = NodeId(2)


class SecondBroker:
    """What the controller of a node hears of another broker, and of leaders that change."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._parts = node.parts
        (self._here,) = self._parts.metadata.image.brokers.keys() - {OTHER}

    @classmethod
    async def join(
        cls, node: Node, *, host: str = "other", port: int = 9092, rack: str | None = None, listener: str = "PLAINTEXT"
    ) -> "SecondBroker":
        """Register the broker, and let it be heard of."""
        other = cls(node)
        await other._submit(BecomeActive())
        await other._submit(
            RegisterBroker(
                OTHER,
                UUID(int=1000),
                (RegisteredEndpoint(listener, host, port),),
                {name: tuple(levels) for name, levels in NODE_FEATURES.items()},  # type: ignore[misc]
                rack,
                (UUID(int=2000),),
                next_offset=other._parts.controller.next_offset,
            )
        )
        await other.beat()
        return other

    async def create(self, topic: str, *assignments: tuple[int, ...], **configs: str) -> TopicId:
        """Create a topic whose partitions have these replicas, the leader first."""
        topic_id = TopicId(UUID(int=self._parts.controller.next_offset + 10_000))
        replicas = tuple(tuple(NodeId(each) for each in assignment) for assignment in assignments)
        settings = {name.replace("_", "."): value for name, value in configs.items()}
        new = TopicCreation(topic, topic_id, assignments=replicas, configs=settings)
        (created,) = (await self._submit(CreateTopics((new,)))).topics
        assert created.outcome.code is ErrorCode.NONE, created.outcome.message
        return topic_id

    async def beat(self, *, want_fence: bool = False) -> None:
        """Let the broker say that it lives and knows all metadata."""
        end = self._parts.controller.next_offset
        epoch = self._parts.metadata.image.brokers[OTHER].epoch
        await self._submit(BrokerHeartbeat(OTHER, epoch, end - 1, end, want_fence=want_fence))

    async def fence(self) -> None:
        """Let the broker be in sync nowhere, so that the node leads what both have."""
        await self.beat(want_fence=True)

    async def lead(self, topic: str, index: int = 0) -> None:
        """Let the broker lead a partition again whose first replica it is."""
        await self.beat()
        image = self._parts.metadata.image
        facts = self.facts(topic, index)
        isr = tuple(InSyncBroker(each) for each in facts.replicas)
        found = image.topic(topic)
        assert found is not None
        change = InSyncChange(found.id, index, facts.leader_epoch, facts.partition_epoch, isr)
        (altered,) = (
            await self._submit(AlterPartitions(self._here, image.brokers[self._here].epoch, (change,)))
        ).results
        assert altered.code is ErrorCode.NONE, altered
        await self._submit(ElectLeaders(unclean=False, partitions=((topic, index),)))
        assert self.facts(topic, index).leader == OTHER

    def facts(self, topic: str, index: int = 0) -> PartitionImage:
        """Return what the metadata say of a partition."""
        found = self._parts.metadata.image.topic(topic)
        assert found is not None
        return found.partition(index)

    async def _submit(self, command: Any) -> Any:
        return await self._parts.controller.submit(command)
