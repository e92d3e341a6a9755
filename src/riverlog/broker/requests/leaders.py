"""The current leaders of partitions, for clients that asked the wrong broker (KIP-951).

An answer names the leader of each such partition, and once where each leader is, so that the client need not ask for
metadata first.
"""

from collections.abc import Iterable, Iterator
from typing import Final, Protocol, TypeVar
from uuid import UUID

from riverlog.broker.requests.availability import Availability
from riverlog.broker.requests.context import Context
from riverlog.metadata.image import PartitionImage
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NodeId

WRONG_LEADER: Final = frozenset((ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH))
"""The errors after which a client wants to know who leads."""

Endpoint = TypeVar("Endpoint", covariant=True)


class NewEndpoint(Protocol[Endpoint]):
    """The class of a broker's address in an answer."""

    def __call__(self, *, node_id: int, host: str, port: int, rack: str | None) -> Endpoint: ...


def current_leader(context: Context, topic: str, topic_id: UUID, index: int) -> PartitionImage | None:
    """Find the partition that a client named, by its topic's name or, where that is empty, its id."""
    image = context.image
    found = image.topic(topic) if topic else image.topic_by_id(topic_id)
    return None if found is None or not 0 <= index < found.partition_count else found.partition(index)


def endpoints_of(
    context: Context, node_ids: Iterable[NodeId], new_endpoint: NewEndpoint[Endpoint]
) -> Iterator[Endpoint]:
    """Return the addresses of the brokers that live, on the listener that the client came through."""
    wanted = sorted(set(node_ids))
    if not wanted:
        return
    availability = Availability(context)
    for node_id in wanted:
        if (found := availability.broker(node_id)) is not None:
            broker, endpoint = found
            yield new_endpoint(node_id=node_id, host=endpoint.host, port=endpoint.port, rack=broker.rack)
