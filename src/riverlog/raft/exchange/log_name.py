"""The one log that controllers speak of, which every message names all the same; and what of it stands in messages."""

from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeVar
from uuid import UUID

from riverlog.model.endpoints import Endpoint
from riverlog.model.ids import NodeId
from riverlog.raft.voters import ReplicaKey
from riverlog.wire.messages.endpoints import ListenerEndpoint
from riverlog.wire.types import NO_UUID

METADATA_TOPIC: Final = "__cluster_metadata"
METADATA_TOPIC_ID: Final = UUID(int=1)
NOBODY: Final = -1

Partition = TypeVar("Partition")


def only(items: Sequence[Any]) -> Any:
    """Return the one topic or partition of a message; None where there are none or several."""
    return items[0] if len(items) == 1 else None


def node_or_nobody(node: int) -> NodeId | None:
    return None if node < 0 else NodeId(node)


def replica_key(node: int, directory_id: UUID) -> ReplicaKey:
    return ReplicaKey(NodeId(node), None if directory_id == NO_UUID else directory_id)


def directory_of(replica: ReplicaKey | None) -> UUID:
    return NO_UUID if replica is None or replica.directory_id is None else replica.directory_id


def listeners_of(endpoints: Iterable[Endpoint]) -> list[ListenerEndpoint]:
    return [ListenerEndpoint(*endpoint) for endpoint in endpoints]


def endpoints_of(listeners: Iterable[ListenerEndpoint]) -> tuple[Endpoint, ...]:
    return tuple(Endpoint(each.name, each.host, each.port) for each in listeners)
