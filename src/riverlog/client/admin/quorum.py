"""What an administrator sees of the quorum that keeps the metadata: who leads it, who votes, how far each has come."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeVar
from uuid import UUID

from riverlog.client.arguments import checked_int32
from riverlog.client.errors import KafkaError, check
from riverlog.model.endpoints import Endpoint
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import LeaderEpoch, NodeId, Offset
from riverlog.wire.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from riverlog.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from riverlog.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    QuorumPartition,
    QuorumTopic,
    ReplicaState,
)
from riverlog.wire.messages.endpoints import ListenerEndpoint
from riverlog.wire.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from riverlog.wire.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse

T = TypeVar("T")

_TRY_AGAIN_SECONDS: Final = 0.25
_SOFTWARE: Final = "riverlog-admin"
_SOFTWARE_VERSION: Final = "1"
METADATA_TOPIC: Final = "__cluster_metadata"


@dataclass(frozen=True, slots=True)
class QuorumReplica:
    """A node that keeps the metadata log; times are -1 where they are unknown."""

    node_id: NodeId
    directory_id: UUID
    """That of its log directory; all zeros where it is unknown."""
    end_offset: Offset
    last_fetch_ms: int
    last_caught_up_ms: int


@dataclass(frozen=True, slots=True)
class QuorumDescription:
    """The quorum as its leader knows it."""

    leader: NodeId
    epoch: LeaderEpoch
    high_watermark: Offset
    """All records of the metadata below are committed."""
    voters: tuple[QuorumReplica, ...]
    observers: tuple[QuorumReplica, ...]
    endpoints: Mapping[NodeId, tuple[Endpoint, ...]] = field(default_factory=dict)
    """Where the voters listen, as far as it is told."""

    def lag(self, replica: QuorumReplica) -> int:
        """Return how many records a replica lacks of the leader's log."""
        end = max((each.end_offset for each in self.voters if each.node_id == self.leader), default=Offset(0))
        return max(0, end - replica.end_offset)


@dataclass(frozen=True, slots=True)
class FeatureDescription:
    """Features by name: at which level the cluster runs, and from which to which level the node that answered can."""

    epoch: int
    """The offset of the metadata at which this held; -1 where nobody knows."""
    finalized: Mapping[str, int]
    supported: Mapping[str, tuple[int, int]]


class Asker(Protocol):
    """Whoever asks brokers, or the active controller."""

    async def ask_any(self, message: object, *, seconds: float | None = None) -> Any:
        """Return the response."""
        ...


class QuorumCalls:
    """The calls about the quorum of the metadata, and about what the cluster as a whole runs at."""

    _asker: Asker
    _timeout_ms: int
    _until_done: Callable[[Callable[[], Awaitable[T]]], Awaitable[T]]

    async def describe_quorum(self) -> QuorumDescription:
        """Return who leads and who votes on the metadata, and how far each has come."""
        return await self._until_done(lambda: describe_quorum(self._asker))

    async def describe_features(self) -> FeatureDescription:
        """Return at which levels the cluster runs, and at which the node that answers could."""
        return await self._until_done(lambda: describe_features(self._asker))

    async def add_voter(
        self,
        node_id: int,
        directory_id: UUID,
        endpoints: Mapping[str, tuple[str, int]],
        *,
        cluster_id: str | None = None,
    ) -> None:
        """Add a controller that follows the log to the voters; return when that is committed.

        `endpoints` are host and port by the name of the listener. While the quorum is busy, or nobody leads, it is
        tried again until the time is up.
        """
        replica = checked_int32("node_id", node_id), directory_id
        request = AddRaftVoterRequest(
            cluster_id=cluster_id,
            timeout_ms=self._timeout_ms,
            voter_id=node_id,
            voter_directory_id=directory_id,
            listeners=[ListenerEndpoint(name, host, port) for name, (host, port) in endpoints.items()],
        )

        async def attempt() -> None:
            response: AddRaftVoterResponse = await self._asker.ask_any(request)
            check(response.error_code, f"voter {node_id}", response.error_message)

        await self._until_so(attempt, lambda voters: replica in voters)

    async def remove_voter(self, node_id: int, directory_id: UUID, *, cluster_id: str | None = None) -> None:
        """Remove a controller from the voters; return when that is committed. It is tried again as above."""
        replica = checked_int32("node_id", node_id), directory_id
        request = RemoveRaftVoterRequest(cluster_id=cluster_id, voter_id=node_id, voter_directory_id=directory_id)

        async def attempt() -> None:
            response: RemoveRaftVoterResponse = await self._asker.ask_any(request)
            check(response.error_code, f"voter {node_id}", response.error_message)

        await self._until_so(attempt, lambda voters: replica not in voters)

    async def _until_so(
        self, attempt: Callable[[], Awaitable[None]], is_so: Callable[[set[tuple[int, UUID]]], bool]
    ) -> None:
        """Change the voters; where it is not known whether that was done, look before it is tried again."""
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + self._timeout_ms / 1000
        while True:
            try:
                await attempt()
                return
            except KafkaError as error:
                if not error.retriable or loop.time() >= ends_at:
                    raise
            await asyncio.sleep(_TRY_AGAIN_SECONDS)
            described = await self.describe_quorum()
            if is_so({(each.node_id, each.directory_id) for each in described.voters}):
                return

    async def unregister_broker(self, node_id: int) -> None:
        """Take a broker out of the cluster that is gone for good."""
        request = UnregisterBrokerRequest(broker_id=checked_int32("node_id", node_id))
        response: UnregisterBrokerResponse = await self._asker.ask_any(request)
        check(response.error_code, f"broker {node_id}", response.error_message)


async def describe_quorum(asker: Asker) -> QuorumDescription:
    """Ask for the metadata's quorum; KafkaError where the cluster has none."""
    topics = [QuorumTopic(METADATA_TOPIC, [QuorumPartition(0)])]
    response: DescribeQuorumResponse = await asker.ask_any(DescribeQuorumRequest(topics))
    check(response.error_code, "the quorum of the metadata", response.error_message)
    partition = next((each for topic in response.topics for each in topic.partitions), None)
    if partition is None:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "the response says nothing of the quorum of the metadata")
    check(partition.error_code, "the quorum of the metadata", partition.error_message)
    return QuorumDescription(
        NodeId(partition.leader_id),
        LeaderEpoch(partition.leader_epoch),
        Offset(partition.high_watermark),
        tuple(map(_replica, partition.current_voters)),
        tuple(map(_replica, partition.observers)),
        {
            NodeId(node.node_id): tuple(Endpoint(each.name, each.host, each.port) for each in node.listeners)
            for node in response.nodes
        },
    )


async def describe_features(asker: Asker) -> FeatureDescription:
    """Ask a node for the levels of features."""
    response: ApiVersionsResponse = await asker.ask_any(ApiVersionsRequest(_SOFTWARE, _SOFTWARE_VERSION))
    check(response.error_code, "features")
    return FeatureDescription(
        response.finalized_features_epoch,
        {each.name: each.max_version_level for each in response.finalized_features},
        {each.name: (each.min_version, each.max_version) for each in response.supported_features},
    )


def _replica(state: ReplicaState) -> QuorumReplica:
    return QuorumReplica(
        NodeId(state.replica_id),
        state.replica_directory_id,
        Offset(state.log_end_offset),
        state.last_fetch_timestamp,
        state.last_caught_up_timestamp,
    )
