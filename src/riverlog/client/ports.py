"""What a client needs of the world. The real one unless the caller brings another, as tests and the simulation do."""

import random
from typing import NamedTuple

from riverlog.model.ports import Clock, Connecting, Random
from riverlog.world.clock import SystemClock
from riverlog.world.network import TcpNetwork


class Ports(NamedTuple):
    """Network, clock and chance. Waiting is the running event loop's."""

    network: Connecting
    clock: Clock
    random: Random


def real_ports() -> Ports:
    """Return TCP, the system's clocks and an unseeded source of chance."""
    return Ports(TcpNetwork(), SystemClock(), random.Random())
