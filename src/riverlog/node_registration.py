"""How a node's broker joins its cluster, and leaves it: at once where the node is alone, by a session with the active
controller where it is not."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

from riverlog.metadata.commands.only_broker import RegisterOnlyBroker, ReportDirectories
from riverlog.model.endpoints import Endpoint
from riverlog.model.errors import Refusal
from riverlog.model.settings import NodeSettings
from riverlog.node_controller import ControllerPart
from riverlog.node_world import World
from riverlog.observe.logging import get_logger
from riverlog.partitions.assignment import DirectoryAssignment
from riverlog.partitions.registry import PartitionRegistry
from riverlog.runner import Stopped

if TYPE_CHECKING:
    from riverlog.controller.broker_session import BrokerSession


class BrokerRegistration:
    """Says to the cluster that this broker is there, and which log directories it has."""

    def __init__(
        self,
        settings: NodeSettings,
        world: World,
        registry: PartitionRegistry,
        part: ControllerPart,
        replaced: Callable[[Exception], None],
    ) -> None:
        """Build it; `replaced` is called when the cluster knows another process as this broker, or none."""
        self._replaced = replaced
        self._settings = settings
        self._world = world
        self._registry = registry
        self._part = part
        self._session: BrokerSession | None = None
        self._reporting: asyncio.Task[None] | None = None
        self._log = get_logger("riverlog.node")

    async def join(
        self,
        endpoints: tuple[Endpoint, ...],
        assignment: DirectoryAssignment,
        run_beside: Callable[[str, Callable[[], Awaitable[None]]], None],
    ) -> None:
        """Register, and return when this broker may lead; NotRegistered where the cluster does not take it."""
        incarnation_id = UUID(int=self._world.random.getrandbits(128), version=4)
        if self._part.is_alone:
            epoch = await self._register_alone(incarnation_id, endpoints, assignment)
        else:
            session = self._part.session(
                incarnation_id,
                endpoints,
                self._online,
                self._lost,
                previous_epoch=self._previous_epoch(),
                replaced=self._replaced,
            )
            await session.register()
            epoch, self._session = session.epoch, session
        for directory in self._registry.directories:
            directory.logs.broker_epoch = epoch
        assignment.find_lost()
        if self._session is not None:
            if found := assignment.found_elsewhere():
                run_beside("report of log directories", partial(self._part.report_directories, epoch, found))
            run_beside("heartbeats", self._session.run)
            await self._session.unfenced()
        self._log.info("node registered", node_id=self._settings.node_id, epoch=epoch, cluster_id=self._part.cluster_id)

    async def leave(self) -> None:
        """Hand over what this broker leads, where there are others."""
        if self._session is not None:
            await self._session.leave()

    def report_directories(self) -> None:
        """Report the directories that are online: no new partition is placed in another one."""
        if self._session is None:  # otherwise heartbeats say so
            self._reporting = asyncio.get_running_loop().create_task(self._report())

    async def _register_alone(
        self, incarnation_id: UUID, endpoints: tuple[Endpoint, ...], assignment: DirectoryAssignment
    ) -> int:
        registered = await self._part.controller.submit(
            RegisterOnlyBroker(
                node_id=self._settings.node_id,
                incarnation_id=incarnation_id,
                endpoints=endpoints,
                rack=self._settings.broker_rack or None,
                log_dirs=self._online(),
                clean=all(directory.logs.clean for directory in self._registry.directories),
                found=assignment.found_elsewhere(),
            )
        )
        return registered.epoch

    def _previous_epoch(self) -> int:
        """Return the epoch in which this broker stopped, if all its directories were left cleanly in one; -1 else."""
        directories = self._registry.directories
        epochs = {directory.logs.broker_epoch if directory.logs.clean else -1 for directory in directories}
        return epochs.pop() if len(epochs) == 1 else -1

    def _online(self) -> tuple[UUID, ...]:
        directories = self._registry.directories
        return tuple(each.logs.identity.directory_id for each in directories if not each.health.offline)

    def _lost(self) -> tuple[UUID, ...]:
        directories = self._registry.directories
        return tuple(each.logs.identity.directory_id for each in directories if each.health.offline)

    async def _report(self) -> None:
        try:
            await self._part.controller.submit(ReportDirectories(self._settings.node_id, self._online()))
        except (Refusal, Stopped, OSError) as error:  # requests for what is placed there are refused
            self._log.warning("the offline directory could not be reported", detail=str(error))
