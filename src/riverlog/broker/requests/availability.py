"""The brokers that clients of one listener can reach, and the replicas that nobody can."""

from collections.abc import Iterator

from riverlog.broker.requests.context import Context
from riverlog.metadata.image import BrokerImage, PartitionImage, RegisteredEndpoint, TopicImage
from riverlog.metadata.leader_rules import PresentBrokers
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NO_NODE, NodeId


class Availability:
    """What one request may say about brokers, leaders and replicas, by the newest image."""

    def __init__(self, context: Context) -> None:
        self._listener = context.client.listener
        self._here = context.services.node_id
        self._assignment = context.services.assignment
        self._registered = context.image.brokers
        self._alive = {
            broker.id: endpoint
            for broker in self._registered.values()
            if not broker.fenced and (endpoint := broker.endpoint(self._listener)) is not None
        }
        self._present = PresentBrokers(context.image, arriving=self._alive)  # who stops still is online

    @property
    def controller_id(self) -> NodeId:
        """Return whom clients ask for changes: this broker, or another one that lives; -1 where none does.

        Whichever it is passes them on to the active controller.
        """
        return self._here if self._here in self._alive else next(iter(self._alive), NO_NODE)

    def brokers(self) -> Iterator[tuple[BrokerImage, RegisteredEndpoint]]:
        """Return the brokers that live."""
        return ((self._registered[node_id], endpoint) for node_id, endpoint in self._alive.items())

    def broker(self, node_id: NodeId) -> tuple[BrokerImage, RegisteredEndpoint] | None:
        """Return one broker, if it lives."""
        endpoint = self._alive.get(node_id)
        return None if endpoint is None else (self._registered[node_id], endpoint)

    def leader(self, topic: TopicImage, partition: PartitionImage) -> tuple[NodeId, ErrorCode]:
        """Return who leads a partition; -1 and the reason where nobody does whom the client can reach."""
        leader = partition.leader
        if leader in self._alive:
            if self._assignment.is_offline(topic, partition):
                return NO_NODE, ErrorCode.LEADER_NOT_AVAILABLE
            return leader, ErrorCode.NONE
        is_elsewhere = leader in self._registered and not self._registered[leader].fenced
        return NO_NODE, ErrorCode.LISTENER_NOT_FOUND if is_elsewhere else ErrorCode.LEADER_NOT_AVAILABLE

    def offline_replicas(self, topic: TopicImage, partition: PartitionImage) -> list[int]:
        """Return the replicas whose brokers are fenced, gone or out of reach, or whose log directories are offline."""
        offline: list[int] = [
            replica
            for replica in partition.replicas
            if replica not in self._alive or not self._present.can_lead(replica, partition)
        ]
        if self._here not in offline and self._assignment.is_offline(topic, partition):
            offline.append(self._here)
        return offline
