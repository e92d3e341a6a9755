"""The composition root: builds one node from settings, starts its parts in order, stops them in reverse.

Nothing else creates long-lived parts, and nothing else hands out the real world.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Set
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID

from riverlog import __version__
from riverlog.broker.handlers import HANDLERS, load_handler
from riverlog.broker.network.server import Server
from riverlog.broker.requests.authorization import AllowEveryone
from riverlog.broker.requests.context import Services
from riverlog.broker.requests.dispatch import Dispatcher, HandlerLoader
from riverlog.controller.controller import Controller
from riverlog.controller.opening import check_formatted, reachable
from riverlog.controller.producer_ids import ProducerIds
from riverlog.controller.storage import METADATA_FOLDER
from riverlog.controller.view import MetadataView
from riverlog.coordination.groups import GroupCoordinator
from riverlog.coordination.marker_writer import MarkerWriter
from riverlog.coordination.offsets import TransactionalOffsets
from riverlog.coordination.transactions import TransactionCoordinator
from riverlog.log.directory import LogDirectory
from riverlog.log.identity import check_first, find
from riverlog.metadata.commands.only_broker import known_directories
from riverlog.model.checkpoint_topic import CHECKPOINTS_PRINCIPAL, OWN_MECHANISM
from riverlog.model.descriptors import DescriptorShares
from riverlog.model.disk_errors import SHORTAGE
from riverlog.model.endpoints import Endpoint
from riverlog.model.errors import InvariantBroken
from riverlog.model.ids import Address
from riverlog.model.limits import DESCRIPTORS_PLENTY
from riverlog.model.settings import NodeSettings
from riverlog.model.uuids import encode_uuid
from riverlog.node_controller import ControllerPart
from riverlog.node_metrics import ControllerMetrics, NodeMetrics
from riverlog.node_registration import BrokerRegistration
from riverlog.node_world import World
from riverlog.observe.containment import keep_running
from riverlog.observe.logging import get_logger
from riverlog.observe.metrics_server import MetricsServer
from riverlog.observe.process import objects_that_stay
from riverlog.observe.samples import PipelineSample
from riverlog.observe.stats import NodeStats
from riverlog.observe.web_guard import WebGuard, names_of_node
from riverlog.partitions.assignment import DirectoryAssignment
from riverlog.partitions.cold_reads import ColdReads
from riverlog.partitions.directory_checkpoints import DirectoryCheckpoints
from riverlog.partitions.directory_health import DirectoryHealth
from riverlog.partitions.flusher import Flusher
from riverlog.partitions.in_process_work import InProcessWork
from riverlog.partitions.local_partitions import LocalPartitions
from riverlog.partitions.recovery import Recovery
from riverlog.partitions.registry import NodeDirectory, PartitionRegistry
from riverlog.partitions.removal import PartitionRemoval
from riverlog.partitions.replicas import Replicas
from riverlog.partitions.turn import Turn
from riverlog.upkeep.cleaner import Cleaner
from riverlog.upkeep.scrubber import Scrubber
from riverlog.upkeep.upkeep import Upkeep
from riverlog.wire.apis import API_BY_KEY
from riverlog.world.descriptors import raise_descriptor_limit
from riverlog.world.processes import SystemProcesses

if TYPE_CHECKING:
    from riverlog.checkpoints.server import CheckpointServer
    from riverlog.coordination.other_brokers import OtherBrokers


@dataclass(frozen=True, slots=True)
class Parts:
    """What a node consists of once it has opened its data."""

    metadata: MetadataView
    controller: Controller
    producer_ids: ProducerIds
    registry: PartitionRegistry
    local_partitions: LocalPartitions
    assignment: DirectoryAssignment
    checkpoints: DirectoryCheckpoints
    removal: PartitionRemoval
    replicas: Replicas
    cold_reads: ColdReads
    groups: GroupCoordinator
    transactions: TransactionCoordinator
    marker_writer: MarkerWriter
    transactional_offsets: TransactionalOffsets
    metrics: NodeMetrics

    def settings(self) -> NodeSettings:
        """Return the settings with what was changed since the start."""
        return self.metadata.settings


class Node:
    """One riverlog node: `start` it, `run` until it cannot go on or is told to end, then `stop` it."""

    def __init__(
        self,
        settings: NodeSettings,
        world: World | None = None,
        *,
        handlers: HandlerLoader = load_handler,
        contained: Callable[[str, BaseException], None] = lambda _doing, _error: None,
    ) -> None:
        """Describe a node. `contained` is called with each exception that nobody expected, and what raised it."""
        self.stats = NodeStats()
        self.endpoints: tuple[Endpoint, ...] = ()
        """The addresses that clients are told."""
        self.metrics: Address | None = None
        self.checkpoints: Address | None = None
        self.failure: BaseException | None = None
        """The failure that ends the node."""
        self._settings = settings
        self._world = world or World(processes=SystemProcesses(), descriptors_max=raise_descriptor_limit())
        self._shares = DescriptorShares.of(self._world.descriptors_max)
        self._handlers = handlers
        self._contained = contained
        self._closing = AsyncExitStack()  # what was started, in order
        if world is None:
            self._closing.callback(self._world.workers.close)
        self._turn = Turn()
        self._processes = self._world.processes or InProcessWork(self._world.workers)
        self._closing.push_async_callback(self._processes.close)
        self._registry = PartitionRegistry()
        self._part: ControllerPart | None = None
        self._parts: Parts | None = None
        self._serving = False
        self._failed = asyncio.Event()
        self._checkpoint_server: CheckpointServer | None = None
        self._checkpoints = DirectoryCheckpoints(self._registry, self._world.workers)
        self._removal = PartitionRemoval(self._registry, self._checkpoints, self._world.workers, self._world.random)
        self._registration: BrokerRegistration | None = None
        self._log = get_logger("riverlog.node")

    async def start(self) -> None:
        """Open the data and the ports, and begin to serve.

        Raises DirectoryRefused or BadMetadata for data that cannot be used, OSError for an address that cannot.
        """
        self._handle_exceptions()
        if self._world.descriptors_max < DESCRIPTORS_PLENTY:
            self._log.warning(
                "few open files are allowed; raise the limit (ulimit -n)",
                limit=self._world.descriptors_max,
                connections_max=min(self._shares.connections, self._settings.max_connections),
            )
        try:
            part = self._part = self._open_controller()
            if not part.is_alone:
                await self._join(part)
            if self._settings.is_broker:
                await self._start_broker(part)
            else:
                await self._open_metrics(self.controller_metrics())
        except BaseException:
            await self._closing.aclose()
            raise
        self._serving = True
        self._log.info(
            "node ready",
            kafka=",".join(map(str, self.endpoints)) or "off",
            controller=",".join(map(str, part.endpoints)) or "off",
            metrics=str(self.metrics or "off"),
        )

    async def _join(self, part: ControllerPart) -> None:
        """Serve other controllers, and wait until somebody leads them and what is committed is here."""
        part.open_listeners(
            self.stats,
            self._turn,
            ColdReads(self._world.workers),
            connections_max=self._shares.connections,
            failed=partial(self._contain, "request"),
        )
        self._run_beside("idle connections of controllers", part.look_after_connections)
        self._run_beside("report of the quorum", part.watch_quorum)
        if self._settings.is_controller:
            self._run_beside("registration of the controller", part.stay_registered)
        if self._settings.is_broker:
            await part.catch_up()

    async def _start_broker(self, part: ControllerPart) -> None:
        """Open the partitions, register, and serve clients."""
        parts = self._parts = self._open_parts(part)
        server = self._open_server(parts, part)
        await self._open_metrics(parts.metrics)
        self._open_checkpoints()
        self._registration = BrokerRegistration(self._settings, self._world, self._registry, part, replaced=self._fail)
        await self._registration.join(self.endpoints, parts.assignment, self._run_beside)
        server.serve()
        upkeep = Upkeep(
            parts.registry, parts.replicas, parts.checkpoints, parts.removal, parts.settings, self._world.clock
        )
        self._run_beside("idle connections", server.run)
        self._run_beside("recovery", parts.replicas.recover)
        self._run_beside("upkeep", upkeep.run)
        self._run_beside("compaction", self._cleaner(parts).run)
        self._run_beside("scrubbing", self._scrubber(parts).run)
        self._run_beside("groups", parts.groups.run)
        self._run_beside("transactions", parts.transactions.run)

    async def run(self) -> BaseException:
        """Wait for a failure that ends the node, and return it."""
        await self._failed.wait()
        assert self.failure is not None
        return self.failure

    async def stop(self) -> None:
        """Stop accepting requests, answer those under way, flush and close; a second call does nothing."""
        if self._serving:
            self._serving = False
            self._log.info("node stopping")
            if self._registration is not None:
                await self._registration.leave()
        await self._closing.aclose()

    @property
    def part(self) -> ControllerPart:
        """Return the node's share in the cluster's metadata; it has been started."""
        assert self._part is not None
        return self._part

    @property
    def controller(self) -> Controller:
        return self.part.controller

    @property
    def parts(self) -> Parts:
        """Return what the node consists of; it has been started."""
        assert self._parts is not None
        return self._parts

    # -- the parts, in the order in which they start

    def _open_controller(self) -> ControllerPart:
        """Open the first log directory, and the metadata in it; take part in the quorum."""
        world, settings, registry = self._world, self._settings, self._registry
        self._closing.push_async_callback(self._checkpoints.close)
        self._closing.push_async_callback(self._removal.finish)
        check_formatted(world.disk, settings)
        check_first(world.disk, settings.log_dirs, METADATA_FOLDER, cluster_id=settings.cluster_id)
        registry.directories.append(self._open_directory(settings.log_dirs[0]))
        logs = registry.directories[0].logs
        metadata = MetadataView(settings)
        part = ControllerPart(settings, world, logs, metadata, cluster_id=self.cluster_id, failed=self._metadata_failed)
        self._closing.push_async_callback(part.close)
        with objects_that_stay():
            part.controller.start()
        return part

    def _open_parts(self, part: ControllerPart) -> Parts:
        """Build what works on the metadata, which are read as far as they are committed."""
        world, settings, registry = self._world, self._settings, self._registry
        metadata, controller, requests = part.view, part.controller, part.requests
        producer_ids = ProducerIds(requests)
        self._open_other_directories(known_directories(metadata.image, settings.node_id))
        assignment = DirectoryAssignment(settings.node_id, registry, metadata, world.random)
        assignment.start()
        local_partitions = LocalPartitions(settings.node_id, metadata)
        local_partitions.start()
        cold_reads = ColdReads(world.workers)
        replicas = Replicas(
            settings.node_id,
            registry,
            assignment,
            self._removal,
            metadata,
            clock=world.clock,
            disk=world.disk,
            cold_reads=cold_reads,
            turn=self._turn,
        )
        replicas.start()
        groups = GroupCoordinator(metadata, requests, replicas, clock=world.clock, random=world.random)
        groups.start()
        self._closing.push_async_callback(groups.close)
        marker_writer = MarkerWriter(replicas, groups, world.clock)
        others = None if part.is_alone else self._open_ways_to_brokers(metadata)
        transactions = TransactionCoordinator(
            metadata,
            requests,
            replicas,
            producer_ids=producer_ids,
            markers=marker_writer if others is None else others.markers(marker_writer),
            clock=world.clock,
            random=world.random,
            stats=self.stats.transactions,
            elsewhere=None if others is None else others.verification,
        )
        transactions.start()
        self._closing.push_async_callback(transactions.close)
        metrics = NodeMetrics(
            settings.node_id,
            self.cluster_id,
            self.stats,
            registry,
            metadata,
            controller,
            world.clock,
            world.disk,
            local_partitions,
            groups,
            transactions,
            self._pipelines,
        )
        return Parts(
            metadata,
            controller,
            producer_ids,
            registry,
            local_partitions,
            assignment,
            self._checkpoints,
            self._removal,
            replicas,
            cold_reads,
            groups,
            transactions,
            marker_writer,
            TransactionalOffsets(
                groups, replicas, transactions, world.clock, elsewhere=None if others is None else others.offsets
            ),
            metrics,
        )

    def _open_ways_to_brokers(self, metadata: MetadataView) -> "OtherBrokers":
        from riverlog.coordination.other_brokers import OtherBrokers  # a node that is alone does without

        world, settings = self._world, self._settings
        listener = settings.inter_broker_listener_name
        others = OtherBrokers(settings.node_id, world.network, self.cluster_id, metadata, world.clock, listener)
        self._closing.push_async_callback(others.close)
        return others

    def _open_directory(self, folder: str) -> NodeDirectory:
        world, settings = self._world, self._settings
        logs = LogDirectory.open(
            world.disk,
            folder,
            node_id=settings.node_id,
            random=world.random,
            cluster_id=self.cluster_id if self._registry.directories else settings.cluster_id or None,
            region=settings.region,
            descriptors_max=self._shares.segment_files // len(settings.log_dirs) or 1,
        )
        if not logs.clean and not logs.is_new:
            self._log.warning("the node was not stopped cleanly; logs are recovered", directory=folder)
        for damage in logs.damage:
            self._log.error("damage found", directory=folder, detail=damage)
        health = DirectoryHealth(world.disk, folder, changed=self._health_changed)
        flusher = Flusher(world.workers, health, world.clock, self.stats)
        lanes = settings.num_recovery_threads_per_data_dir
        return NodeDirectory(logs, health, flusher, Recovery(world.disk, world.workers, self._processes, lanes=lanes))

    def _open_other_directories(self, known: Set[UUID]) -> None:
        """Open the log directories behind the first; one that cannot be used is offline, and the others serve.

        An empty one is nobody's yet, unless one that the metadata know is missing: then it is a mount point without
        its disk.
        """
        disk, directories, empty = self._world.disk, self._registry.directories, list[str]()
        for folder in self._settings.log_dirs[1:]:
            try:
                if find(disk, folder) is None:
                    empty.append(folder)
                else:
                    directories.append(self._open_directory(folder))
            except OSError as error:
                self._leave_unopened(folder, error)
        opened = {directory.logs.identity.directory_id for directory in directories}
        missing = sorted(encode_uuid(each) for each in known - opened)
        for folder in empty:
            try:
                if missing:
                    what = f"it is empty, and partitions of this node lie in the log directory {', '.join(missing)}"
                    self._leave_out(folder, f"{what}, which is away; mount it")
                else:
                    directories.append(self._open_directory(folder))
            except OSError as error:
                self._leave_unopened(folder, error)

    def _leave_unopened(self, folder: str, error: OSError) -> None:
        if error.errno in SHORTAGE:  # that is no fault of the directory
            raise error
        self._leave_out(folder, f"it cannot be opened ({error})")

    def _leave_out(self, folder: str, reason: str) -> None:
        """Go on without a directory that cannot be used."""
        health = DirectoryHealth(self._world.disk, folder, changed=self._health_changed)
        self._registry.unusable.append(health)
        health.fail(reason)

    def _open_server(self, parts: Parts, part: ControllerPart) -> Server:
        """Listen for clients; they are answered once the node has registered."""
        world, settings = self._world, self._settings
        services = Services(
            node_id=settings.node_id,
            cluster_id=self.cluster_id,
            metadata=parts.metadata,
            controller=parts.controller,
            requests=part.requests,
            producer_ids=parts.producer_ids,
            registry=parts.registry,
            local_partitions=parts.local_partitions,
            assignment=parts.assignment,
            checkpoints=parts.checkpoints,
            replicas=parts.replicas,
            groups=parts.groups,
            transactions=parts.transactions,
            marker_writer=parts.marker_writer,
            transactional_offsets=parts.transactional_offsets,
            authorizer=AllowEveryone(),
            clock=world.clock,
            random=world.random,
            served=tuple(API_BY_KEY[key] for key in HANDLERS),
            features=part.features,
            secret=world.secret,
            forward=part.forward,
        )
        dispatcher = Dispatcher(services.served, self._handlers, services, self.stats)
        server = Server(
            dispatcher,
            parts.settings,
            world.network,
            world.clock,
            self.stats,
            turn=self._turn,
            cold_reads=parts.cold_reads,
            connections_max=self._shares.connections,
            failed=partial(self._contain, "request"),
        )
        self._closing.push_async_callback(server.stop)
        self._closing.callback(parts.replicas.stop_waiting)
        self._closing.callback(parts.groups.stop_waiting)
        self._closing.callback(parts.transactions.stop_waiting)
        advertised = {endpoint.listener: endpoint for endpoint in settings.advertised_listeners}
        for endpoint in settings.listeners:
            if endpoint.listener not in settings.controller_listener_names:
                bound = server.listen(endpoint)
                self.endpoints += (advertised.get(endpoint.listener) or reachable(endpoint, bound),)
        return server

    def controller_metrics(self) -> ControllerMetrics:
        """Return the source of the metrics of a node that is only a controller."""
        part, world, who = self.part, self._world, (self._settings.node_id, self.cluster_id)
        return ControllerMetrics(*who, self.stats, self._registry, part.view, part.controller, world.clock, world.disk)

    async def _open_metrics(self, metrics: ControllerMetrics) -> None:
        """Open the port of metrics and health."""
        settings = self._settings
        if settings.metrics_port < 0:
            return
        server = MetricsServer(metrics, self.not_ready, self._world.workers, self._web_guard(), version=__version__)
        self._closing.push_async_callback(server.close)
        host = settings.metrics_host or settings.listeners[0].host
        self.metrics = await server.open(host, settings.metrics_port)

    def _open_checkpoints(self) -> None:
        """Open the port of Spark's checkpoints; the store behind it is a client of this node, made by the first one."""
        settings = self._settings
        if settings.checkpoints_port < 0:
            return
        from riverlog.checkpoints.server import CheckpointServer  # not even this is read where it is off
        from riverlog.client.network.security import Login, Security

        own = Security(login=Login(OWN_MECHANISM, CHECKPOINTS_PRINCIPAL, self._world.secret))
        server = self._checkpoint_server = CheckpointServer(
            str(self.endpoints[0].address), self._web_guard(), own, connections_max=self._shares.checkpoint_connections
        )
        self._closing.push_async_callback(server.close)
        host = settings.checkpoints_host or settings.listeners[0].host
        self.checkpoints = server.open(host, settings.checkpoints_port)

    def _web_guard(self) -> WebGuard:
        """Build the guard against web pages, with all names that this node has."""
        settings = self._settings
        hosts = (*(endpoint.host for endpoint in (*settings.listeners, *self.endpoints)),)
        return WebGuard(
            names_of_node((*hosts, settings.checkpoints_host, settings.metrics_host), settings.http_allowed_hosts)
        )

    def _scrubber(self, parts: Parts) -> Scrubber:
        world = self._world
        return Scrubber(
            parts.registry,
            parts.settings,
            stats=self.stats.scrub,
            clock=world.clock,
            disk=world.disk,
            processes=self._processes,
            pause=time.sleep,
        )

    def _cleaner(self, parts: Parts) -> Cleaner:
        world = self._world
        return Cleaner(
            parts.registry,
            parts.settings,
            clock=world.clock,
            disk=world.disk,
            workers=world.workers,
            processes=self._processes,
            pause=time.sleep,
        )

    def _run_beside(self, doing: str, work: Callable[[], Awaitable[None]]) -> None:
        """Run a part that lives as long as the node; after an unexpected exception it begins again."""
        task = asyncio.get_running_loop().create_task(keep_running(doing, work))
        self._closing.push_async_callback(_cancelled, task)

    # -- trouble

    def _handle_exceptions(self) -> None:
        """Contain every exception in the running loop that nobody expected; a program's own handler is called too."""
        loop = asyncio.get_running_loop()
        program = loop.get_exception_handler()

        def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
            error = context.get("exception")
            if error is not None:
                self._contain(context["message"], error)
            if program is not None:
                program(loop, context)
            elif error is None:
                loop.default_exception_handler(context)

        def restore() -> None:
            if loop.get_exception_handler() is handle:
                loop.set_exception_handler(program)

        loop.set_exception_handler(handle)
        self._closing.callback(restore)

    def _contain(self, doing: str, error: BaseException) -> None:
        """Count and log an unexpected exception, and go on, unless data is at stake."""
        self._contained(doing, error)
        if isinstance(error, InvariantBroken):
            self._fail(error)
            return
        self.stats.contained += 1
        self._log.error("exception contained", cause=error, doing=doing)

    def _fail(self, error: BaseException) -> None:
        """Note what must end the node: a failed metadata log, or a log that is not what it must be."""
        self._log.error("the node cannot go on", cause=error)
        if self.failure is None:
            self.failure = error
            self._failed.set()

    def _metadata_failed(self, error: Exception) -> None:
        if isinstance(error, OSError):  # nobody knows what its directory has kept: it is not marked as clean
            self._registry.directories[0].health.fail(f"the cluster's metadata cannot be written ({error})")
        self._fail(error)

    def _health_changed(self, health: DirectoryHealth) -> None:
        if health.trouble is None:
            self._log.info("log directory takes writes again", directory=health.path)
            return
        self._log.error("log directory in trouble", directory=health.path, detail=health.trouble)
        if not health.offline:
            return
        for directory in self._registry.directories:
            if directory.health is health:
                for partition in list(self._registry.opened_in(directory)):
                    partition.storage_failed()
        if self._serving and self._registration is not None:
            self._registration.report_directories()

    # -- what others see

    @property
    def cluster_id(self) -> str:
        return self._registry.directories[0].logs.identity.cluster_id

    def not_ready(self) -> str | None:
        """Return in one sentence why clients cannot be served, or some of their writes; None when they can."""
        if not self._serving:
            return "the node is starting or stopping"
        if not self._settings.is_broker and self.controller.quorum.leader_id is None:
            return "no leader of the metadata is known"
        return next((health.trouble for health in self._registry.health() if not health.writable), None)

    def _pipelines(self) -> Iterable[PipelineSample]:
        """Return the queries that have reported to the checkpoint store, if that was ever used."""
        return () if self._checkpoint_server is None else self._checkpoint_server.pipelines()


async def _cancelled(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.wait([task])
