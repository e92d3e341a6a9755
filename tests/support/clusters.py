"""Several whole nodes in one process: one virtual clock, one network in memory, a disk for each."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from random import Random
from typing import Final

from riverlog.client.ports import Ports
from riverlog.controller.formatting import format_directories
from riverlog.controller.opening import controller_endpoints
from riverlog.model.ids import NodeId
from riverlog.model.resolution import configure
from riverlog.model.settings import NodeSettings
from riverlog.node import Node
from riverlog.node_world import World
from riverlog.raft.voters import ReplicaKey, Voter, VoterSet
from tests.support.asking import Line
from tests.support.disk import MemoryDisk
from tests.support.network import MemoryNetwork
from tests.support.raft import directory
from tests.support.virtual_time import VirtualClock
from tests.support.world import SECRET, PatientWorkers

CLUSTER_ID: Final = "abcdefghijklmnopqrstuA"
BOTH: Final = "broker,controller"


class ClusterOfNodes:
    """Nodes that form one cluster: `roles` says what each is, by its id."""

    def __init__(self, roles: dict[int, str] | None = None, *, seed: int = 0, **settings: str) -> None:
        self.roles = roles or {1: BOTH, 2: BOTH, 3: BOTH}
        self.random = Random(seed)
        self.clock = VirtualClock()
        self.network = MemoryNetwork()
        self.disks = {node: MemoryDisk(node) for node in self.roles}
        self.nodes: dict[int, Node] = {}
        self._settings = settings
        voters = VoterSet.of(
            Voter(ReplicaKey(NodeId(node), directory(node)), controller_endpoints(self.settings(node)))
            for node in self._controllers()
        )
        for node, role in self.roles.items():
            format_directories(
                self.disks[node],
                StillClock(),
                self.random,
                ["/data"],
                cluster_id=CLUSTER_ID,
                node_id=NodeId(node),
                first_voters=voters if "controller" in role else None,
            )
            self.disks[node].sync_folder("/")
            self.disks[node].sync_folder("/data")

    def _controllers(self) -> list[int]:
        return [node for node, role in self.roles.items() if "controller" in role]

    def settings(self, node: int, **changes: str) -> NodeSettings:
        """Return a node's settings; they are written with underscores."""
        roles = self.roles[node]
        listeners = []
        if "broker" in roles:
            listeners.append(f"PLAINTEXT://n{node}:9092")
        if "controller" in roles:
            listeners.append(f"CONTROLLER://n{node}:9093")
        given = {
            "process.roles": roles,
            "node.id": str(node),
            "listeners": ",".join(listeners),
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": ",".join(f"n{each}:9093" for each in self._controllers()),
            "log.dirs": "/data",
            "metrics.port": "-1",
            "checkpoints.port": "-1",
        }
        given |= {name.replace("_", "."): value for name, value in {**self._settings, **changes}.items()}
        return configure(flags=given).settings

    def build(self, node: int, **changes: str) -> Node:
        """Build a node on its disk, and start nothing."""
        world = World(
            clock=self.clock,
            disk=self.disks[node],
            network=self.network,
            workers=PatientWorkers(self.random),
            random=self.random,
            secret=SECRET,
        )
        self.nodes[node] = Node(self.settings(node, **changes), world)
        return self.nodes[node]

    async def start(self, *nodes: int) -> None:
        """Start these nodes, or all, and wait until each is ready."""
        await asyncio.gather(*(self.build(node).start() for node in nodes or self.roles))

    async def stop(self, *nodes: int) -> None:
        """Stop these nodes, or all, in good order."""
        await asyncio.gather(*(self.nodes.pop(node).stop() for node in nodes or tuple(self.nodes)))

    @property
    def ports(self) -> Ports:
        return Ports(self.network, self.clock, self.random)

    def address(self, node: int) -> str:
        return f"n{node}:9092"

    def active(self) -> int | None:
        """Return which node decides."""
        deciding = [
            (node.controller.quorum.epoch, number) for number, node in self.nodes.items() if node.controller.is_active
        ]
        return max(deciding, default=(0, None))[1]

    async def settled(self) -> None:
        """Wait until every node knows what is committed."""

        def is_known() -> bool:
            active = self.active()
            end = -1 if active is None else self.nodes[active].controller.end_offset
            return all(node.controller.loaded_offset == end for node in self.nodes.values())

        await self.until(is_known)

    async def until(self, done: Callable[[], object], seconds: float = 30.0) -> None:
        """Wait until something holds."""
        async with asyncio.timeout(seconds):
            while not done():  # noqa: ASYNC110  # nothing tells; the time is virtual
                await asyncio.sleep(0.01)


class StillClock:
    """A clock for what is done before anything runs."""

    def monotonic(self) -> float:
        return 0.0

    def wall_ms(self) -> int:
        return 1_700_000_000_000


@asynccontextmanager
async def controller_line(**settings: str) -> AsyncIterator[tuple[Line, ClusterOfNodes]]:
    """Start a controller and a broker, and yield a line to the controller's listener."""
    cluster = ClusterOfNodes({1: "controller", 4: "broker"}, **settings)
    await cluster.start()
    try:
        yield Line(await cluster.network.connect("n1", 9093)), cluster
    finally:
        await cluster.stop()
