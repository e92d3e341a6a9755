"""Giving out producer ids, a block at a time, none twice."""

from dataclasses import dataclass

from riverlog.metadata.image import MetadataImage
from riverlog.metadata.records import MetadataRecord, ProducerIdsRecord
from riverlog.model.ids import NodeId, ProducerId
from riverlog.model.machine import Command


@dataclass(frozen=True, slots=True)
class AllocateProducerIds(Command[MetadataRecord, "ProducerIdBlock"]):
    """Allocate producer ids for a broker that nobody else has."""

    node_id: NodeId
    count: int


@dataclass(frozen=True, slots=True)
class ProducerIdBlock:
    """The reply to AllocateProducerIds: neighbouring ids from the first one on."""

    first: ProducerId
    count: int


def allocate_producer_ids(
    image: MetadataImage, command: AllocateProducerIds
) -> tuple[list[MetadataRecord], ProducerIdBlock]:
    """Take the next block."""
    assert command.count > 0
    first = image.next_producer_id
    broker = image.brokers.get(command.node_id)
    record = ProducerIdsRecord(
        broker_id=command.node_id,
        broker_epoch=-1 if broker is None else broker.epoch,
        next_producer_id=first + command.count,
    )
    return [record], ProducerIdBlock(first, command.count)
