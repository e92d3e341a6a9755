"""A small cluster to decide about."""

from uuid import UUID

from riverlog.metadata.commands.only_broker import RegisterOnlyBroker, register_only_broker
from riverlog.metadata.commands.topics import CreateTopics, TopicCreation, TopicDefaults, create_topics
from riverlog.metadata.draft import after
from riverlog.metadata.image import MetadataImage
from riverlog.metadata.placement import BrokerLoad
from riverlog.model.endpoints import Endpoint
from riverlog.model.ids import NodeId, TopicId

DEFAULTS = TopicDefaults(partitions=1, replication_factor=3)


def registration(number: int, *, rack: str | None = None, clean: bool = True) -> RegisterOnlyBroker:
    endpoints = (Endpoint("PLAINTEXT", f"host-{number}", 9092),)
    return RegisterOnlyBroker(NodeId(number), UUID(int=number), endpoints, rack, (UUID(int=1000 + number),), clean)


def cluster(*racks: str | None) -> MetadataImage:
    """Give a cluster with one broker per rack, numbered from 1."""
    image = MetadataImage()
    for number, rack in enumerate(racks, start=1):
        records, _ = register_only_broker(image, registration(number, rack=rack))
        image = after(image, records)
    return image


def topic_id(number: int) -> TopicId:
    return TopicId(UUID(int=number))


def with_topic(
    image: MetadataImage, name: str, *, number: int = 1, partitions: int = 1, **configs: str
) -> MetadataImage:
    """Give the cluster with one more topic."""
    settings: dict[str, str | None] = {name.replace("_", "."): value for name, value in configs.items()}
    new = TopicCreation(name, topic_id(number), partitions, configs=settings)
    records, reply = create_topics(image, CreateTopics((new,)), DEFAULTS, BrokerLoad())
    assert reply.topics[0].outcome.message is None
    return after(image, records)
