"""The composition root: builds one node from settings, starts its parts in order, stops them in reverse.

Nothing else creates long-lived parts, and nothing else hands out the real world.
"""

import asyncio
import random
import secrets
import socket
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from riverlog import __version__
from riverlog.broker.handlers import HANDLERS, load_handler
from riverlog.broker.network.server import Server
from riverlog.broker.requests.authorization import AllowEveryone
from riverlog.broker.requests.context import Services
from riverlog.broker.requests.dispatch import Dispatcher, HandlerLoader
from riverlog.controller.log import METADATA_FOLDER, MetadataLog
from riverlog.controller.metadata import MetadataDriver
from riverlog.coordination.groups import GroupCoordinator
from riverlog.coordination.marker_writer import MarkerWriter
from riverlog.coordination.offsets import TransactionalOffsets
from riverlog.coordination.transactions import TransactionCoordinator
from riverlog.log.checkpoint import encode_uuid
from riverlog.log.directory import LogDirectory
from riverlog.log.identity import check_first, find
from riverlog.metadata.commands.brokers import RegisterBroker, ReportDirectories, known_directories
from riverlog.metadata.image import PartitionImage, TopicImage
from riverlog.model.checkpoint_topic import CHECKPOINTS_PRINCIPAL, OWN_MECHANISM
from riverlog.model.descriptors import DescriptorShares
from riverlog.model.disk_errors import SHORTAGE
from riverlog.model.endpoints import Endpoint
from riverlog.model.errors import InvariantBroken, Refusal
from riverlog.model.ids import Address, NodeId, Offset, TopicPartition
from riverlog.model.limits import DESCRIPTORS_ASSUMED, DESCRIPTORS_PLENTY
from riverlog.model.ports import Clock, Disk, Network, Processes, Random, Workers
from riverlog.model.settings import NodeSettings
from riverlog.observe.containment import keep_running
from riverlog.observe.http import Door
from riverlog.observe.logging import get_logger
from riverlog.observe.metrics import (
    BrokerReading,
    CommittedReading,
    GroupReading,
    LogDirectoryReading,
    PartitionReading,
    PipelineReading,
    TransactionsReading,
)
from riverlog.observe.stats import NodeStats, PartitionStats
from riverlog.observe.web_guard import WebGuard, names_of_node
from riverlog.partitions.cold_reads import ColdReads
from riverlog.partitions.directory_health import DirectoryHealth
from riverlog.partitions.flusher import Flusher
from riverlog.partitions.in_process_work import InPlace
from riverlog.partitions.partition import Partition
from riverlog.partitions.replicas import Home, Replicas
from riverlog.partitions.turn import Turn
from riverlog.runner import Stopped
from riverlog.upkeep.cleaner import Cleaner
from riverlog.upkeep.scrubber import Scrubber
from riverlog.upkeep.upkeep import Upkeep
from riverlog.wire.apis import API_BY_KEY
from riverlog.world.clock import SystemClock
from riverlog.world.descriptors import raise_descriptor_limit
from riverlog.world.disk import FileSystem
from riverlog.world.network import TcpNetwork
from riverlog.world.processes import SystemProcesses
from riverlog.world.workers import ThreadWorkers

if TYPE_CHECKING:
    from riverlog.checkpoints.server import CheckpointServer

_WORKER_THREADS: Final = 8
_EVERY_ADDRESS: Final = ("", "0.0.0.0", "::")


@dataclass(frozen=True, slots=True)
class World:
    """The ports, as one node uses them; the real ones unless others are given."""

    clock: Clock = field(default_factory=SystemClock)
    disk: Disk = field(default_factory=FileSystem)
    network: Network = field(default_factory=TcpNetwork)
    workers: Workers = field(default_factory=lambda: ThreadWorkers(_WORKER_THREADS))
    random: Random = field(default_factory=lambda: random.Random(secrets.randbits(128)))
    processes: Processes | None = None
    """Without other processes their work is done by the workers."""
    secret: str = field(default_factory=secrets.token_hex, repr=False)
    """What the node's own parts show it, to be known from all other clients."""
    descriptors_max: int = DESCRIPTORS_ASSUMED
    """Open files and sockets that the process may have."""


class Node:
    """One riverlog node: `start` it, `run` until it cannot go on or is told to end, then `stop` it.

    It is also what the metrics' door looks at.
    """

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
        self.services: Services
        """What handlers are given; once the node has started."""
        self.endpoints: tuple[Endpoint, ...] = ()
        """The addresses that clients are told."""
        self.metrics: Address | None = None
        self.checkpoints: Address | None = None
        self._settings = settings
        self._world = world or World(processes=SystemProcesses(), descriptors_max=raise_descriptor_limit())
        self._shares = DescriptorShares.of(self._world.descriptors_max)
        self._handlers = handlers
        self._contained = contained
        self._parts = AsyncExitStack()
        if world is None:
            self._parts.callback(self._world.workers.close)
        self._turn = Turn()
        self._processes = self._world.processes or InPlace(self._world.workers)
        self._parts.push_async_callback(self._processes.close)
        self._serving = False
        self._checkpoints: CheckpointServer | None = None
        self._failed: asyncio.Future[BaseException]
        self._homes: list[Home]
        self._away: list[DirectoryHealth]
        self._reporting: asyncio.Task[None] | None = None
        self._metadata: MetadataDriver
        self._replicas: Replicas
        self._groups: GroupCoordinator
        self._marker_writer: MarkerWriter
        self._transactions: TransactionCoordinator
        self._log = get_logger("riverlog.node")

    async def start(self) -> None:
        """Open the data and the doors, and begin to serve.

        Raises DirectoryRefused or BadMetadata for data that cannot be used, OSError for an address that cannot.
        """
        self._failed = asyncio.get_running_loop().create_future()
        self._hear_exceptions()
        if self._world.descriptors_max < DESCRIPTORS_PLENTY:
            self._log.warning(
                "few open files are allowed; raise the limit (ulimit -n)",
                limit=self._world.descriptors_max,
                connections_max=min(self._shares.connections, self._settings.max_connections),
            )
        try:
            self._open_data()
            server = self._open_server()
            await self._open_door()
            self._open_checkpoints()
            await self._register()
        except BaseException:
            await self._parts.aclose()
            raise
        server.serve()
        upkeep = Upkeep(self._replicas, self._current_settings, self._world.clock)
        self._run_beside("idle connections", server.run)
        self._run_beside("recovery", self._replicas.recover)
        self._run_beside("upkeep", upkeep.run)
        self._run_beside("compaction", self._cleaner().run)
        self._run_beside("scrubbing", self._scrubber().run)
        self._run_beside("groups", self._groups.run)
        self._run_beside("transactions", self._transactions.run)
        self._serving = True
        self._log.info("node ready", kafka=",".join(map(str, self.endpoints)), metrics=str(self.metrics or "off"))

    async def run(self) -> BaseException:
        """Wait for something after which the node must not go on, and give it."""
        return await asyncio.shield(self._failed)

    async def stop(self) -> None:
        """Accept no more, answer what is under way, flush, close; a second call does nothing."""
        if self._serving:
            self._serving = False
            self._log.info("node stopping")
        await self._parts.aclose()

    # -- the parts, in the order in which they start

    def _open_data(self) -> None:
        """Open the log directories and read the metadata."""
        world, settings = self._world, self._settings
        self._homes, self._away = [], []
        self._parts.push_async_callback(self._close_data)
        check_first(world.disk, settings.log_dirs, METADATA_FOLDER, cluster_id=settings.cluster_id)
        self._homes.append(self._open_home(settings.log_dirs[0]))
        log = MetadataLog.open(world.disk, world.clock, world.workers, f"{settings.log_dirs[0]}/{METADATA_FOLDER}")
        self._metadata = MetadataDriver(log=log, settings=settings, clock=world.clock, failed=self._metadata_failed)
        self._parts.push_async_callback(self._metadata.close)
        self._metadata.start()
        self._open_other_homes()
        self._cold_reads = ColdReads(world.workers)
        self._replicas = Replicas(
            settings.node_id,
            self._homes,
            self._metadata,
            clock=world.clock,
            disk=world.disk,
            random=world.random,
            workers=world.workers,
            cold_reads=self._cold_reads,
            turn=self._turn,
            processes=self._processes,
            recovery_lanes=settings.num_recovery_threads_per_data_dir,
            away=self._away,
        )
        self._replicas.start()
        self._groups = GroupCoordinator(self._metadata, self._replicas, clock=world.clock, random=world.random)
        self._groups.start()
        self._parts.push_async_callback(self._groups.close)
        self._marker_writer = MarkerWriter(self._replicas, self._groups, world.clock)
        self._transactions = TransactionCoordinator(
            self._metadata,
            self._replicas,
            markers=self._marker_writer,
            clock=world.clock,
            random=world.random,
            stats=self.stats.transactions,
        )
        self._transactions.start()
        self._parts.push_async_callback(self._transactions.close)

    def _open_home(self, folder: str) -> Home:
        world, settings = self._world, self._settings
        directory = LogDirectory.open(
            world.disk,
            folder,
            node_id=settings.node_id,
            random=world.random,
            cluster_id=self.cluster_id if self._homes else settings.cluster_id or None,
            region=settings.region,
            descriptors_max=self._shares.segment_files // len(settings.log_dirs) or 1,
        )
        if not directory.clean and not directory.is_new:
            self._log.warning("the node was not stopped cleanly; logs are recovered", directory=folder)
        for damage in directory.damage:
            self._log.error("damage found", directory=folder, detail=damage)
        volume = DirectoryHealth(world.disk, folder, changed=self._volume_changed)
        return Home(directory, volume, Flusher(world.workers, volume, world.clock, self.stats))

    def _open_other_homes(self) -> None:
        """Open the log directories behind the first; one that cannot be used is offline, and the others serve.

        An empty one is nobody's yet, unless the metadata miss one: then it is a mount point without its disk.
        """
        disk, empty = self._world.disk, list[str]()
        for folder in self._settings.log_dirs[1:]:
            try:
                if find(disk, folder) is None:
                    empty.append(folder)
                else:
                    self._homes.append(self._open_home(folder))
            except OSError as error:
                self._be_without_unopened(folder, error)
        there = {home.directory.identity.directory_id for home in self._homes}
        missing = sorted(encode_uuid(known) for known in known_directories(self._metadata.image, self.node_id) - there)
        for folder in empty:
            try:
                if missing:
                    what = f"it is empty, and partitions of this node lie in the log directory {', '.join(missing)}"
                    self._be_without(folder, f"{what}, which is away; mount it")
                else:
                    self._homes.append(self._open_home(folder))
            except OSError as error:
                self._be_without_unopened(folder, error)

    def _be_without_unopened(self, folder: str, error: OSError) -> None:
        if error.errno in SHORTAGE:  # it would be offline for no fault of its own
            raise error
        self._be_without(folder, f"it cannot be opened ({error})")

    def _be_without(self, folder: str, reason: str) -> None:
        """Serve what lies in other directories."""
        volume = DirectoryHealth(self._world.disk, folder, changed=self._volume_changed)
        self._away.append(volume)
        volume.fail(reason)

    async def _close_data(self) -> None:
        if hasattr(self, "_replicas"):
            await self._replicas.close()
        else:  # the start failed half-way: what was opened is given back as it was found
            for home in self._homes:
                home.directory.close({}, all_recovered=False)

    def _open_server(self) -> Server:
        """Listen for clients; they are answered once the node has registered."""
        world, settings = self._world, self._settings
        services = self.services = Services(
            node_id=self.node_id,
            cluster_id=self.cluster_id,
            metadata=self._metadata,
            replicas=self._replicas,
            groups=self._groups,
            transactions=self._transactions,
            marker_writer=self._marker_writer,
            transactional_offsets=TransactionalOffsets(self._groups, self._replicas, self._transactions, world.clock),
            authorizer=AllowEveryone(),
            clock=world.clock,
            random=world.random,
            served=tuple(API_BY_KEY[key] for key in HANDLERS),
            secret=world.secret,
        )
        dispatcher = Dispatcher(services.served, self._handlers, services, self.stats)
        server = Server(
            dispatcher,
            self._current_settings,
            world.network,
            world.clock,
            self.stats,
            turn=self._turn,
            cold_reads=self._cold_reads,
            connections_max=self._shares.connections,
            failed=partial(self._contain, "request"),
        )
        self._parts.push_async_callback(server.stop)
        self._parts.callback(self._replicas.stop_waiting)
        self._parts.callback(self._groups.stop_waiting)
        self._parts.callback(self._transactions.stop_waiting)
        advertised = {endpoint.listener: endpoint for endpoint in settings.advertised_listeners}
        for endpoint in settings.listeners:
            if endpoint.listener not in settings.controller_listener_names:
                bound = server.listen(endpoint)
                self.endpoints += (advertised.get(endpoint.listener) or _reachable(endpoint, bound),)
        return server

    async def _open_door(self) -> None:
        """Open the door for metrics and health."""
        settings = self._settings
        if settings.metrics_port < 0:
            return
        door = Door(self, self._world.workers, self._web_guard(), version=__version__)
        self._parts.push_async_callback(door.close)
        host = settings.metrics_host or settings.listeners[0].host
        self.metrics = await door.open(host, settings.metrics_port)

    def _open_checkpoints(self) -> None:
        """Open the port of Spark's checkpoints; the store behind it is a client of this node, made by the first one."""
        settings = self._settings
        if settings.checkpoints_port < 0:
            return
        from riverlog.checkpoints.server import CheckpointServer  # not even this is read where it is off
        from riverlog.client.network.security import Login, Security

        own = Security(login=Login(OWN_MECHANISM, CHECKPOINTS_PRINCIPAL, self._world.secret))
        server = self._checkpoints = CheckpointServer(
            str(self.endpoints[0].address),
            self._web_guard(),
            own,
            connections_max=self._shares.checkpoint_connections,
        )
        self._parts.push_async_callback(server.close)
        host = settings.checkpoints_host or settings.listeners[0].host
        self.checkpoints = server.open(host, settings.checkpoints_port)

    def _web_guard(self) -> WebGuard:
        """Make what keeps web pages out, with all names that this node has."""
        settings = self._settings
        hosts = (*(endpoint.host for endpoint in (*settings.listeners, *self.endpoints)),)
        return WebGuard(
            names_of_node((*hosts, settings.checkpoints_host, settings.metrics_host), settings.http_allowed_hosts)
        )

    def _scrubber(self) -> Scrubber:
        world = self._world
        return Scrubber(
            self._replicas,
            self._current_settings,
            stats=self.stats.scrub,
            clock=world.clock,
            disk=world.disk,
            workers=world.workers,
            processes=self._processes,
            pause=time.sleep,
        )

    def _cleaner(self) -> Cleaner:
        world = self._world
        return Cleaner(
            self._replicas,
            self._current_settings,
            clock=world.clock,
            disk=world.disk,
            workers=world.workers,
            processes=self._processes,
            pause=time.sleep,
        )

    async def _register(self) -> None:
        """Tell the cluster that this node is here, where, and whether it remembers everything."""
        registered = await self._metadata.submit(
            RegisterBroker(
                node_id=self.node_id,
                incarnation_id=UUID(int=self._world.random.getrandbits(128), version=4),
                endpoints=self.endpoints,
                rack=self._settings.broker_rack or None,
                log_dirs=self._directories(),
                clean=all(home.directory.clean for home in self._homes),
                found=self._replicas.found_elsewhere(),
            )
        )
        for home in self._homes:
            home.directory.broker_epoch = registered.epoch
        self._replicas.tell_lost()
        self._log.info("node registered", node_id=self.node_id, epoch=registered.epoch, cluster_id=self.cluster_id)

    def _directories(self) -> tuple[UUID, ...]:
        """Name the log directories that can be used."""
        return tuple(home.directory.identity.directory_id for home in self._homes if not home.volume.offline)

    def _run_beside(self, doing: str, work: Callable[[], Awaitable[None]]) -> None:
        """Run a part that lives as long as the node; after an unexpected exception it begins again."""
        task = asyncio.get_running_loop().create_task(keep_running(doing, work))
        self._parts.push_async_callback(_cancelled, task)

    def _current_settings(self) -> NodeSettings:
        """Give the settings with what was changed since the start."""
        return self._metadata.settings

    # -- trouble

    def _hear_exceptions(self) -> None:
        """Hear of every exception in the running loop that nobody expected; a program that has its own say keeps it."""
        loop = asyncio.get_running_loop()
        program = loop.get_exception_handler()

        def heard(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
            error = context.get("exception")
            if error is not None:
                self._contain(context["message"], error)
            if program is not None:
                program(loop, context)
            elif error is None:
                loop.default_exception_handler(context)

        def restore() -> None:
            if loop.get_exception_handler() is heard:
                loop.set_exception_handler(program)

        loop.set_exception_handler(heard)
        self._parts.callback(restore)

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
        if not self._failed.done():
            self._failed.set_result(error)

    def _metadata_failed(self, error: Exception) -> None:
        if isinstance(error, OSError):  # nobody knows what its directory has kept: it is not stopped in good order
            self._homes[0].volume.fail(f"the cluster's metadata cannot be written ({error})")
        self._fail(error)

    def _volume_changed(self, volume: DirectoryHealth) -> None:
        if volume.trouble is None:
            self._log.info("log directory takes writes again", directory=volume.path)
            return
        self._log.error("log directory in trouble", directory=volume.path, detail=volume.trouble)
        if volume.offline and hasattr(self, "_replicas"):
            self._replicas.storage_failed(volume)
        if volume.offline and self._serving:
            self._reporting = asyncio.get_running_loop().create_task(self._report_directories())

    async def _report_directories(self) -> None:
        """See that no new partition is placed in a directory that is offline."""
        try:
            await self._metadata.submit(ReportDirectories(self.node_id, self._directories()))
        except (Refusal, Stopped, OSError) as error:  # those that are placed there nevertheless are refused
            self._log.warning("the offline directory could not be reported", detail=str(error))

    # -- what the door shows

    @property
    def has_failed(self) -> bool:
        """Return whether something has happened after which the node must not go on."""
        return self._failed.done()

    @property
    def node_id(self) -> NodeId:
        return self._settings.node_id

    @property
    def cluster_id(self) -> str:
        return self._homes[0].directory.identity.cluster_id

    def not_ready(self) -> str | None:
        """Say why clients cannot be served, if they cannot."""
        if not self._serving:
            return "the node is starting or stopping"
        return next((volume.trouble for volume in self._replicas.volumes() if volume.offline), None)

    def brokers(self) -> Iterable[BrokerReading]:
        for broker in self._metadata.image.brokers.values():
            yield BrokerReading(broker.id, str(broker.endpoints[0].address) if broker.endpoints else "")

    def topics(self) -> Iterable[tuple[str, int]]:
        return ((topic.name, topic.partition_count) for topic in self._metadata.image.all_topics())

    def partitions(self) -> Iterable[PartitionReading]:
        """Give every partition that this node leads; one that nobody has used yet is empty."""
        opened = {partition.name: partition for partition in self._replicas.opened()}
        for topic in self._metadata.image.all_topics():
            for facts in topic.partitions:
                if facts.leader == self.node_id:
                    yield _reading(topic, facts, opened.get(TopicPartition(topic.name, facts.index)))

    def groups(self) -> Iterable[GroupReading]:
        """Give every group that this node coordinates; how far one is behind is known once its partition is open."""
        ends = {partition.name: partition.high_watermark for partition in self._replicas.opened()}
        for machine in self._groups.machines():
            for group_id, state, members, committed in machine.standings():
                offsets = [
                    CommittedReading(
                        *name, Offset(value.offset), max(0, ends[name] - value.offset) if name in ends else None
                    )
                    for name, value in committed.items()
                ]
                yield GroupReading(group_id, state, members, offsets)

    def transactions(self) -> TransactionsReading:
        """Count the transactional ids that this node coordinates, and look for the oldest transaction that is open."""
        by_state: Counter[str] = Counter()
        now_ms = oldest_ms = self._world.clock.wall_ms()
        for machine in self._transactions.machines():
            counts, opened_ms = machine.standing()
            by_state.update(counts)
            oldest_ms = min(oldest_ms, now_ms if opened_ms is None else opened_ms)
        return TransactionsReading(by_state, (now_ms - oldest_ms) / 1000)

    def coordinators_loading(self) -> int:
        return self._groups.loading() + self._transactions.loading()

    def pipelines(self) -> Iterable[PipelineReading]:
        """Give the queries that have reported to the checkpoint store, once somebody has asked that for something."""
        return () if self._checkpoints is None else self._checkpoints.pipelines()

    def log_directories(self) -> Iterable[LogDirectoryReading]:
        for home in self._homes:
            yield LogDirectoryReading(
                directory=home.directory.folder,
                online=not home.volume.offline,
                size_bytes=sum(log.size for log in home.directory.logs().values()),
                free_bytes=0 if home.volume.offline else self._world.disk.free_bytes(home.directory.folder),
            )
        for volume in self._away:
            yield LogDirectoryReading(directory=volume.path, online=False, size_bytes=0, free_bytes=0)


def _reading(topic: TopicImage, facts: PartitionImage, partition: Partition | None) -> PartitionReading:
    nothing = Offset(0)
    log = None if partition is None else partition.log
    return PartitionReading(
        topic=topic.name,
        partition=facts.index,
        leader=facts.leader,
        replicas=facts.replicas,
        in_sync_replicas=facts.isr,
        log_start_offset=nothing if log is None else log.log_start_offset,
        high_watermark=nothing if partition is None else partition.high_watermark,
        last_stable_offset=nothing if partition is None else partition.last_stable_offset,
        log_end_offset=nothing if log is None else log.log_end_offset,
        size_bytes=0 if log is None else log.size,
        segments=0 if log is None else log.segment_count,
        damaged_segments=0 if log is None else len(log.quarantine.segments_behind(log.log_start_offset)),
        stats=PartitionStats() if partition is None else partition.stats,
    )


def _reachable(endpoint: Endpoint, bound: Address) -> Endpoint:
    """Give the address to tell clients: the one that was bound, or the machine's name where that is every address."""
    host = endpoint.host if endpoint.host not in _EVERY_ADDRESS else socket.gethostname()
    return Endpoint(endpoint.listener, host, bound.port)


async def _cancelled(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.wait([task])
