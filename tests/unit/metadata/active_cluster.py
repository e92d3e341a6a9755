"""An active controller with some brokers that live."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from riverlog.metadata.broker_index import BrokerIndex
from riverlog.metadata.cluster_decisions import MetadataCommand
from riverlog.metadata.commands.brokers import RegisterBroker
from riverlog.metadata.commands.liveness import BecomeActive, BrokerHeartbeat, Woken
from riverlog.metadata.commands.topics import CreateTopics, TopicCreation, TopicDefaults
from riverlog.metadata.features import ELIGIBLE_LEADERS, FIRST_LEVELS
from riverlog.metadata.image import BrokerImage, PartitionImage, RegisteredEndpoint, TopicImage
from riverlog.metadata.machine import MetadataMachine
from riverlog.metadata.records import MetadataRecord
from riverlog.model.ids import NodeId, TopicId
from riverlog.model.machine import Instant, Moment, Ticket

FEATURES = {
    "metadata.version": (7, 30),
    "group.version": (0, 1),
    "transaction.version": (0, 2),
    ELIGIBLE_LEADERS: (0, 1),
}


class ActiveCluster:
    """A machine, the records that it has written, and the time."""

    def __init__(self, *racks: str | None, eligible: bool = True, replicas_max: int | None = None) -> None:
        """Build a cluster with one broker per rack, numbered from 1."""
        self.machine = MetadataMachine(TopicDefaults(1, 3, replicas_max=replicas_max))
        self.records: list[MetadataRecord] = []
        self.seconds = 0.0
        levels: Mapping[str, int] = {**FIRST_LEVELS, ELIGIBLE_LEADERS: int(eligible)}
        self.do(BecomeActive(levels))
        for number, rack in enumerate(racks, start=1):
            self.register(number, rack=rack)
            self.beat(number)

    def do(self, command: MetadataCommand) -> Any:
        """Return the reply to a command, whose records are applied."""
        decision = self.machine.decide(command, Ticket(1), Moment(Instant(self.seconds), 0))
        for record in decision.records:
            self.machine.apply(record)
        self.records += decision.records
        assert self.machine.index == BrokerIndex.of(self.machine.image)
        return decision.replies[0].response

    def register(self, number: int, *, rack: str | None = None, incarnation: int = 0, previous: int = -1) -> None:
        """Register a broker."""
        self.do(
            RegisterBroker(
                NodeId(number),
                UUID(int=incarnation or number),
                (RegisteredEndpoint("PLAINTEXT", f"host-{number}", 9092),),
                FEATURES,
                rack,
                (UUID(int=1000 + number), UUID(int=2000 + number)),
                next_offset=len(self.records),
                previous_epoch=previous,
            )
        )

    def beat(self, number: int, **wanted: Any) -> Any:
        """Let a broker say that it lives and has read all metadata."""
        epoch, end = self.broker(number).epoch, len(self.records)
        return self.do(BrokerHeartbeat(NodeId(number), epoch, end - 1, end, **wanted))

    def wait(self, seconds: float) -> None:
        """Let time pass, and wake the machine when it wants to be."""
        until = self.seconds + seconds
        while (deadline := self.machine.next_deadline()) is not None and deadline <= until:
            self.seconds = max(self.seconds, deadline)
            self.do(Woken())
        self.seconds = until

    def create(self, name: str, partitions: int, *assignments: tuple[int, ...], **configs: str) -> TopicId:
        """Create a topic with replicas by hand, or three of each."""
        topic_id = TopicId(UUID(int=len(self.records) + 1))
        given = tuple(tuple(NodeId(each) for each in assignment) for assignment in assignments)
        settings = {key.replace("_", "."): value for key, value in configs.items()}
        new = TopicCreation(name, topic_id, -1 if given else partitions, -1, given, settings)
        reply = self.do(CreateTopics((new,)))
        assert reply.topics[0].outcome.message is None, reply.topics[0].outcome.message
        return topic_id

    def broker(self, number: int) -> BrokerImage:
        return self.machine.image.brokers[NodeId(number)]

    def topic(self, name: str) -> TopicImage:
        topic = self.machine.image.topic(name)
        assert topic is not None
        return topic

    def partition(self, name: str, number: int = 0) -> PartitionImage:
        return self.topic(name).partition(number)
