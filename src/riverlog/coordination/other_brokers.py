"""The ways from this broker's coordinators and partitions to those of other brokers, where a node is not alone."""

from riverlog.controller.peers import Peers
from riverlog.controller.view import MetadataView
from riverlog.coordination.broker_requests import BrokerRequests
from riverlog.coordination.limits import BROKER_CONNECT_SECONDS_MAX, MARKER_RESPONSE_SECONDS_MAX
from riverlog.coordination.marker_router import MarkerRouter
from riverlog.coordination.marker_writer import MarkerWriter
from riverlog.coordination.remote_offsets import RemoteOffsets
from riverlog.coordination.remote_verification import RemoteVerification
from riverlog.model.ids import NodeId
from riverlog.model.ports import Clock, Connecting


class OtherBrokers:
    """Sends markers, questions and offsets to the brokers that they concern."""

    def __init__(
        self, node_id: NodeId, network: Connecting, cluster_id: str, metadata: MetadataView, clock: Clock, listener: str
    ) -> None:
        peers = Peers(
            network,
            cluster_id,
            connect_seconds=BROKER_CONNECT_SECONDS_MAX,
            request_seconds=MARKER_RESPONSE_SECONDS_MAX,
        )
        self._node_id = node_id
        self._metadata = metadata
        self._requests = BrokerRequests(peers, metadata, clock, listener)
        self._routers: list[MarkerRouter] = []
        self.verification = RemoteVerification(self._requests)
        self.offsets = RemoteOffsets(self._requests)

    def markers(self, writer: MarkerWriter) -> MarkerRouter:
        """Return the way of markers to the leaders of partitions, which goes through the writer for those here."""
        router = MarkerRouter(self._node_id, writer, self._requests, self._metadata)
        self._routers.append(router)
        return router

    async def close(self) -> None:
        """Send nothing more, and close all connections."""
        for router in self._routers:
            router.close()
        self.verification.close()
        await self._requests.close()
