"""A node's share in the cluster's metadata: the controller, the way to others, and the listeners on which they ask.

A node that is alone has none of the latter, and reads nothing of theirs when it starts.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final
from uuid import UUID

from riverlog.broker.handlers import CONTROLLER_HANDLERS, load_controller_handler
from riverlog.broker.network.server import Server
from riverlog.broker.requests.authorization import AllowEveryone
from riverlog.broker.requests.context import Client, ControllerServices, Forwarder
from riverlog.broker.requests.dispatch import Dispatcher
from riverlog.controller.metadata_requests import MetadataRequests
from riverlog.controller.opening import controller_endpoints, is_alone, open_controller
from riverlog.controller.view import MetadataView
from riverlog.log.directory import LogDirectory
from riverlog.metadata.features import NODE_FEATURES, SUPPORTED_FEATURES
from riverlog.model.endpoints import Endpoint
from riverlog.model.resolution import controller_listeners
from riverlog.model.settings import NodeSettings
from riverlog.node_world import World
from riverlog.observe.logging import get_logger
from riverlog.observe.stats import CloseReason, NodeStats
from riverlog.partitions.cold_reads import ColdReads
from riverlog.partitions.turn import Turn
from riverlog.wire.apis import API_BY_KEY

if TYPE_CHECKING:
    from riverlog.controller.broker_probe import BrokerProbe
    from riverlog.controller.broker_session import BrokerSession
    from riverlog.controller.channel import ControllerChannel
    from riverlog.controller.peers import Peers

QUORUM_REPORT_SECONDS: Final = 10.0
"""How often a node that waits for a leader says so."""
_LOOK_SECONDS: Final = 0.5
_MILLISECONDS: Final = 1000
_ENDED_BY_PEER: Final = (CloseReason.PEER, CloseReason.BROKEN)


class NotJoined(Exception):
    """The node has found no leader of its quorum; the message is one sentence for the person who starts it."""


class ControllerPart:
    """What a node does for the metadata, or knows of them."""

    def __init__(
        self,
        settings: NodeSettings,
        world: World,
        logs: LogDirectory,
        view: MetadataView,
        *,
        cluster_id: str,
        failed: Callable[[Exception], None],
    ) -> None:
        """Open the metadata log; BadMetadata or DirectoryRefused where it cannot be used."""
        self.view = view
        self.is_alone = is_alone(settings)
        self.features = SUPPORTED_FEATURES if self.is_alone else NODE_FEATURES
        self.cluster_id = cluster_id
        self.endpoints: tuple[Endpoint, ...] = controller_endpoints(settings)
        self._settings = settings
        self._world = world
        self._server: Server | None = None
        self._probe: BrokerProbe | None = None
        self._peers = None if self.is_alone else self._open_peers()
        self.controller = open_controller(
            settings,
            logs,
            view,
            disk=world.disk,
            clock=world.clock,
            workers=world.workers,
            random=world.random,
            peers=self._peers,
            failed=failed,
        )
        self.channel = None if self._peers is None else self._open_channel(self._peers)
        self.requests = MetadataRequests(self.controller, settings.node_id, self.channel)
        self._log = get_logger("riverlog.node")

    def _open_peers(self) -> "Peers":
        from riverlog.controller.peers import Peers

        seconds = self._settings.controller_quorum_request_timeout_ms / _MILLISECONDS
        return Peers(self._world.network, self.cluster_id, connect_seconds=seconds, request_seconds=seconds)

    def _open_channel(self, peers: "Peers") -> "ControllerChannel":
        from riverlog.controller.channel import ControllerChannel

        return ControllerChannel(self.controller.quorum, peers)

    @property
    def forward(self) -> Forwarder | None:
        """Return the way of clients' requests to the active controller; None where that is always here."""
        if self.channel is None:
            return None
        from riverlog.broker.requests.forwarder import EnvelopeForwarder

        return EnvelopeForwarder(self.channel, self.controller)

    def open_listeners(
        self,
        stats: NodeStats,
        turn: Turn,
        cold_reads: ColdReads,
        *,
        connections_max: int,
        failed: Callable[[BaseException], None],
    ) -> None:
        """Serve controllers, and brokers that ask them; OSError for an address that cannot be used."""
        listeners = controller_listeners(self._settings)
        if not listeners:
            return
        world = self._world
        from riverlog.controller.broker_probe import BrokerProbe

        services = ControllerServices(
            node_id=self._settings.node_id,
            cluster_id=self.cluster_id,
            metadata=self.view,
            controller=self.controller,
            authorizer=AllowEveryone(),
            clock=world.clock,
            random=world.random,
            served=tuple(API_BY_KEY[key] for key in sorted(CONTROLLER_HANDLERS)),
            features=self.features,
            secret=world.secret,
        )
        self._server = Server(
            Dispatcher(services.served, load_controller_handler, services, stats),
            lambda: self.view.settings,
            world.network,
            world.clock,
            stats,
            turn=turn,
            cold_reads=cold_reads,
            connections_max=connections_max,
            failed=failed,
            ended=self._connection_ended,
        )
        self._probe = BrokerProbe(self.controller, world.network)
        for endpoint in listeners:
            self._server.listen(endpoint)
        self._server.serve()

    def _connection_ended(self, client: Client, reason: CloseReason) -> None:
        """Look whether a broker is still there whose heartbeats came through a connection that the other side ended."""
        if client.broker is not None and reason in _ENDED_BY_PEER and self._probe is not None:
            self._probe.look(*client.broker)

    async def look_after_connections(self) -> None:
        """Send idle connections away, for ever."""
        if self._server is not None:
            await self._server.run()

    async def stay_registered(self) -> None:
        """Keep this node registered as a controller, for ever."""
        from riverlog.controller.registration import ControllerRegistration

        assert self.channel is not None
        registration = ControllerRegistration(
            self._settings.node_id,
            UUID(int=self._world.random.getrandbits(128), version=4),
            self.endpoints,
            self.features,
            self.channel,
            self.controller,
        )
        await registration.run()

    async def report_directories(self, epoch: int, found: Mapping[tuple[UUID, int], UUID]) -> None:
        """Report which replicas of this broker lie elsewhere than the metadata say."""
        from riverlog.controller.directory_report import DirectoryReport

        assert self.channel is not None
        await DirectoryReport(self._settings.node_id, epoch, self.channel, found).run()

    async def catch_up(self) -> None:
        """Wait until somebody leads, and the view has what is committed; NotJoined where that takes too long."""
        assert self._peers is not None
        controller, seconds = self.controller, self._settings.initial_broker_registration_timeout_ms / _MILLISECONDS
        asked = self._settings.controller_quorum_bootstrap_servers
        ends_at = asyncio.get_running_loop().time() + seconds
        while not 0 <= controller.quorum.high_watermark <= controller.loaded_offset:
            if self._peers.answers.are_foreign(asked):
                raise NotJoined(
                    f"this node belongs to the cluster {self.cluster_id}, and the controllers that it asks "
                    f"({', '.join(map(str, asked))}) to another one; is controller.quorum.bootstrap.servers right, and "
                    f"is {self._settings.log_dirs[0]} the folder of this node?"
                )
            left = ends_at - asyncio.get_running_loop().time()
            if left <= 0:
                raise NotJoined(
                    f"no leader of the cluster's metadata was found within {seconds:g} s ({self._peers.answers}); is a "
                    "majority of the controllers running, and does controller.quorum.bootstrap.servers name some?"
                )
            with suppress(TimeoutError):
                async with asyncio.timeout(min(left, _LOOK_SECONDS)):
                    await controller.changed()

    async def watch_quorum(self) -> None:
        """Log now and then, while nobody leads, who is asked and what they say; and once, that this disk is foreign."""
        assert self._peers is not None
        quorum, is_foreign = self.controller.quorum, False
        while True:
            await asyncio.sleep(QUORUM_REPORT_SECONDS)
            if quorum.leader_id is None or quorum.high_watermark < 0:
                self._log.warning("waiting for a leader of the metadata", asked=str(self._peers.answers))
            was_foreign, is_foreign = is_foreign, self._votes_elsewhere()
            if is_foreign and not was_foreign:
                self._log.warning(
                    "another log directory votes for this node; this one observes only",
                    voter=str(quorum.voters.by_id[quorum.key.id].key),
                    observer=str(quorum.key),
                    remedy="if that directory is gone: cluster quorum remove, then cluster quorum add",
                )

    def _votes_elsewhere(self) -> bool:
        """Return whether this node's id votes, with another log directory: a disk that was replaced."""
        quorum = self.controller.quorum
        return quorum.key.id in quorum.voters.by_id and not quorum.voters.includes(quorum.key)

    def session(
        self,
        incarnation_id: UUID,
        endpoints: tuple[Endpoint, ...],
        log_dirs: Callable[[], tuple[UUID, ...]],
        lost_dirs: Callable[[], tuple[UUID, ...]],
        *,
        previous_epoch: int,
        replaced: Callable[[Exception], None],
    ) -> "BrokerSession":
        """Return the session of this node's broker with the active controller."""
        from riverlog.controller.broker_session import BrokerIdentity, BrokerSession

        assert self.channel is not None
        settings = self._settings
        identity = BrokerIdentity(
            settings.node_id,
            self.cluster_id,
            incarnation_id,
            endpoints,
            settings.broker_rack or None,
            self.features,
            previous_epoch,
        )
        return BrokerSession(
            identity,
            self.channel,
            self.controller,
            log_dirs,
            lost_dirs,
            heartbeat_seconds=settings.broker_heartbeat_interval_ms / _MILLISECONDS,
            registration_seconds=settings.initial_broker_registration_timeout_ms / _MILLISECONDS,
            replaced=replaced,
        )

    async def close(self) -> None:
        """Hand over, finish what is under way, and close the listeners."""
        if self._probe is not None:
            self._probe.close()
        await self.controller.close()
        if self._server is not None:
            await self._server.stop()
