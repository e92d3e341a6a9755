"""What a broker itself asks of the controller: decided here where this node is the active one, and otherwise sent."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from riverlog.controller.controller import Controller
from riverlog.controller.limits import PRODUCER_ID_BLOCK
from riverlog.metadata.commands.outcome import Outcome
from riverlog.metadata.commands.producer_ids import AllocateProducerIds, ProducerIdBlock
from riverlog.metadata.commands.topics import CreateTopics, TopicCreation
from riverlog.model.errors import ErrorCode, Refusal
from riverlog.model.ids import NodeId, ProducerId

if TYPE_CHECKING:
    from riverlog.controller.channel import ControllerChannel


class MetadataRequests:
    """Asks for topics and producer ids."""

    def __init__(self, controller: Controller, node_id: NodeId, channel: "ControllerChannel | None" = None) -> None:
        """Build it; without a channel this node is the only one that ever decides."""
        self._controller = controller
        self._node_id = node_id
        self._channel = channel

    async def create_topics(self, topics: Sequence[TopicCreation]) -> list[Outcome]:
        """Create topics; return what became of each, in their order."""
        if self._channel is None or self._controller.is_active:
            created = await self._controller.submit(CreateTopics(tuple(topics)))
            return [each.outcome for each in created.topics]
        from riverlog.controller.peers import Lane
        from riverlog.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest

        request = CreateTopicsRequest(
            topics=[
                CreatableTopic(
                    name=topic.name,
                    num_partitions=topic.partitions,
                    replication_factor=topic.replication_factor,
                    configs=[CreatableTopicConfig(name, value) for name, value in topic.configs.items()],
                )
                for topic in topics
            ]
        )
        response = await self._channel.ask(request, Lane.CONTROL, repeatable=False)
        by_name = {
            result.name: Outcome(ErrorCode(result.error_code), result.error_message) for result in response.topics
        }
        missing = Outcome(ErrorCode.UNKNOWN_SERVER_ERROR, "The controller did not answer for this topic.")
        return [by_name.get(topic.name, missing) for topic in topics]

    async def allocate_producer_ids(self) -> ProducerIdBlock:
        """Take a block of producer ids that nobody else has; Refusal where there is none to be had now."""
        if self._channel is None:
            return await self._controller.submit(AllocateProducerIds(self._node_id, PRODUCER_ID_BLOCK))
        from riverlog.controller.peers import Lane
        from riverlog.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest

        broker = self._controller.image.brokers.get(self._node_id)
        request = AllocateProducerIdsRequest(self._node_id, -1 if broker is None else broker.epoch)
        response = await self._channel.ask(request, Lane.CONTROL, repeatable=True)  # a lost block is none given twice
        if response.error_code != ErrorCode.NONE:
            code = ErrorCode(response.error_code)
            raise Refusal(code, f"The controller gave no producer ids: {code.title}.")
        return ProducerIdBlock(ProducerId(response.producer_id_start), response.producer_id_len)
