"""Without ports of its own, a client gets the real world."""

import random

from riverlog.client.ports import real_ports
from riverlog.client.producer.producer import Producer
from riverlog.world.clock import SystemClock
from riverlog.world.network import TcpNetwork
from tests.support.brokers import FakeCluster


def test_the_real_world_is_the_default() -> None:
    network, clock, chance = real_ports()
    assert isinstance(network, TcpNetwork)
    assert isinstance(clock, SystemClock)
    assert isinstance(chance, random.Random)


async def test_other_ports_are_used_instead() -> None:
    cluster = FakeCluster()
    async with Producer(cluster.bootstrap, ports=cluster.ports):
        assert cluster.network.connects
