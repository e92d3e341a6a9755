"""What a node needs of the world: the real one unless others are given, as tests and the simulation do."""

import random
import secrets
from dataclasses import dataclass, field
from typing import Final

from riverlog.model.limits import DESCRIPTORS_ASSUMED
from riverlog.model.ports import Clock, Disk, Network, Processes, Random, Workers
from riverlog.world.clock import SystemClock
from riverlog.world.disk import FileSystem
from riverlog.world.network import TcpNetwork
from riverlog.world.workers import ThreadWorkers

_WORKER_THREADS: Final = 8


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
    """What the node's own parts authenticate with."""
    descriptors_max: int = DESCRIPTORS_ASSUMED
    """Open files and sockets that the process may have."""
