"""Several controllers in one process: each with its disk, and links between them that can be cut. Time is virtual."""

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any

from riverlog.controller.controller import Controller
from riverlog.controller.folder_check import check_folder
from riverlog.controller.log import MetadataLog
from riverlog.controller.past import QuorumPast
from riverlog.controller.quorum import MetadataQuorum
from riverlog.controller.quorum_ports import NobodyListens, NoResponse
from riverlog.controller.storage import MetadataStorage
from riverlog.controller.view import MetadataView
from riverlog.metadata.commands.producer_ids import AllocateProducerIds
from riverlog.model.ids import Address, NodeId
from riverlog.model.resolution import configure
from riverlog.raft.exchange.requests import decode_request, encode_request
from riverlog.raft.exchange.responses import decode_response, encode_response
from riverlog.raft.messages import Request, Response, VersionsRequest, VersionsResponse
from riverlog.raft.replica import Timing
from riverlog.raft.voters import VoterSet
from tests.support.controllers import CLUSTER, over_the_wire
from tests.support.disk import MemoryDisk
from tests.support.raft import LISTENER, address, endpoints, key, voters
from tests.support.virtual_time import VirtualClock
from tests.support.world import PatientWorkers

FOLDER = "/data/__cluster_metadata-0"
TIMING = Timing()
BLOCK = 10


class Hosts:
    """The machines, and the links between them."""

    def __init__(self, *nodes: int, seed: int = 1, observers: tuple[int, ...] = (), **settings: str) -> None:
        self.random = Random(seed)
        self.settings = settings
        self.voters = voters(*nodes)
        self.cuts: set[tuple[int, int]] = set()
        """From whom to whom nothing gets through."""
        self.by_id = {node: Host(self, node) for node in (*nodes, *observers)}

    def __getitem__(self, node: int) -> "Host":
        return self.by_id[node]

    def start(self) -> None:
        for host in self.by_id.values():
            host.start()

    async def stop(self) -> None:
        await asyncio.gather(*(host.controller.close() for host in self.by_id.values() if host.is_up))

    def cut_off(self, node: int) -> None:
        """Make nothing through to or from a machine."""
        for other in self.by_id:
            self.cuts |= {(node, other), (other, node)}

    def heal(self) -> None:
        self.cuts.clear()

    async def until(self, done: Callable[[], object], seconds: float = 30.0) -> None:
        """Wait until something holds."""
        async with asyncio.timeout(seconds):
            while not done():  # noqa: ASYNC110  # nothing tells; the time is virtual
                await asyncio.sleep(0.01)

    def active(self) -> "Host | None":
        """Return the machine that decides, by the newest epoch."""
        deciding = [host for host in self.by_id.values() if host.is_up and host.controller.is_active]
        return max(deciding, key=lambda host: host.quorum.epoch, default=None)

    async def leader(self, *, but: int = 0) -> "Host":
        """Wait until one decides that all who can be reached follow."""

        def found() -> bool:
            active = self.active()
            return active is not None and active.node != but

        await self.until(found)
        active = self.active()
        assert active is not None
        return active

    async def settled(self) -> None:
        """Wait until all views have what is committed."""
        leader = await self.leader()
        await self.until(
            lambda: all(
                host.controller.loaded_offset == leader.controller.end_offset
                for host in self.by_id.values()
                if host.is_up
            )
        )


class Host:
    """One machine with a controller, and what outlives it: the disk."""

    def __init__(self, hosts: Hosts, node: int) -> None:
        self.node = node
        self.disk = MemoryDisk(node)
        self.failures: list[Exception] = []
        self.is_up = False
        self._hosts = hosts

    def start(self) -> None:
        hosts, clock = self._hosts, VirtualClock()
        workers = PatientWorkers(hosts.random)
        self.disk.make_folder("/data")
        self.disk.sync_folder("/")
        found = check_folder(self.disk, FOLDER)
        may_vote = hosts.voters.includes(key(self.node))
        past = QuorumPast.of(found, key(self.node), hosts.voters if may_vote else VoterSet())
        self.quorum = MetadataQuorum(
            MetadataStorage.open(self.disk, clock, found),
            clock,
            workers,
            hosts.random,
            key=key(self.node),
            past=past,
            may_vote=may_vote,
            peers=Links(hosts, self),
            endpoints=endpoints(self.node) if may_vote else (),
            listener=LISTENER,
            bootstrap=tuple(address(node) for node in hosts.voters.ids),
            timing=TIMING,
        )
        self.log = MetadataLog(self.quorum, clock, workers)
        given = configure(flags={name.replace("_", "."): value for name, value in hosts.settings.items()}).settings
        self.view = MetadataView(given)
        self.controller = Controller(log=self.log, view=self.view, clock=clock, failed=self.failures.append)
        self.is_up = True
        self.controller.start()

    def crash(self) -> None:
        """Lose the power: what was not synced is gone, and who ran here is never heard again."""
        self.disk, self.is_up = self.disk.after_crash(self._hosts.random), False

    @property
    def allocated(self) -> int:
        """Return how many producer ids were given out, as this machine knows."""
        return self.view.image.next_producer_id

    async def allocate(self) -> int:
        """Have producer ids given out, the simplest thing that is decided: each block once."""
        block = await self.controller.submit(AllocateProducerIds(NodeId(self.node), BLOCK))
        return block.first


class Links:
    """A host's way to the others."""

    def __init__(self, hosts: Hosts, host: Host) -> None:
        self._hosts = hosts
        self._host = host
        self._life = host.disk

    async def ask(self, address: Address, request: Request | VersionsRequest) -> Response | VersionsResponse:
        try:
            async with asyncio.timeout(TIMING.request_timeout + TIMING.fetch_wait):
                return await self._ask(int(address.host[1:]), request)
        except TimeoutError:
            raise NoResponse("time is up") from None

    async def close(self) -> None:
        """Nothing is kept open."""

    async def _ask(self, node: int, request: Request | VersionsRequest) -> Response | VersionsResponse:
        message = over_the_wire(encode_request(request, CLUSTER))
        await self._travel(self._host.node, node)
        other = self._hosts[node]
        if isinstance(request, VersionsRequest):
            return VersionsResponse((0, 1))
        life = other.disk
        reply = await other.quorum.ask(decode_request(message, CLUSTER))
        response: Any = over_the_wire(encode_response(message, reply.response, reply.content))
        if other.disk is not life:
            raise NoResponse("the connection broke")
        await self._travel(node, self._host.node)
        return decode_response(response)

    async def _travel(self, source: int, target: int) -> None:
        await asyncio.sleep(self._hosts.random.random() * 0.002)
        if (source, target) in self._hosts.cuts:
            await asyncio.sleep(3600)
        if self._host.disk is not self._life:
            raise NoResponse("the connection broke")
        if not self._hosts[target].is_up:
            raise NobodyListens("connection refused")
