"""Brokers whose connection breaks: they are gone at once where a new one is refused, and not before otherwise."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final
from uuid import UUID

import pytest

from riverlog.metadata.features import NODE_FEATURES
from riverlog.model.ids import Address
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from riverlog.wire.messages.broker_registration import BrokerRegistrationRequest
from riverlog.wire.messages.endpoints import RegisteredListener, SupportedFeature
from tests.support.asking import Line
from tests.support.clusters import CLUSTER_ID, ClusterOfNodes, controller_line
from tests.support.virtual_time import run

INSIDE: Final = Address("n6", 9092)
OUTSIDE: Final = Address("n6", 9094)


@asynccontextmanager
async def with_broker() -> AsyncIterator[tuple[Line, ClusterOfNodes]]:
    """Yield the line on which the heartbeats of a broker come that is nothing else."""
    async with controller_line() as (line, cluster):
        request = BrokerRegistrationRequest(
            broker_id=6,
            cluster_id=CLUSTER_ID,
            incarnation_id=UUID(int=600),
            listeners=[RegisteredListener(name, *at, 0) for name, at in (("INSIDE", INSIDE), ("OUTSIDE", OUTSIDE))],
            features=[SupportedFeature(name, *levels) for name, levels in NODE_FEATURES.items()],
            log_dirs=[UUID(int=6_000)],
        )
        registered = await line.ask(ApiKey.BROKER_REGISTRATION, 4, request)
        end = cluster.nodes[1].controller.end_offset
        beat = BrokerHeartbeatRequest(6, registered.broker_epoch, current_metadata_offset=end)
        assert not (await line.ask(ApiKey.BROKER_HEARTBEAT, 2, beat)).is_fenced
        yield line, cluster


async def seconds_until_fenced(cluster: ClusterOfNodes) -> float:
    began = asyncio.get_running_loop().time()
    await cluster.until(lambda: cluster.nodes[1].controller.image.brokers[6].fenced)
    return asyncio.get_running_loop().time() - began


def test_one_that_refuses_a_new_connection_is_gone_at_once() -> None:
    async def scenario() -> None:
        async with with_broker() as (line, cluster):
            line.close()
            assert await seconds_until_fenced(cluster) < 0.1

    run(scenario())


def test_one_whose_listener_is_closed_after_its_connections_is_seen_too() -> None:
    async def scenario() -> None:
        async with with_broker() as (line, cluster):
            listener = cluster.network.listen(*INSIDE, lambda _socket: None)
            line.close()
            await asyncio.sleep(0.02)
            listener.close()
            assert await seconds_until_fenced(cluster) < 0.1

    run(scenario())


@pytest.mark.parametrize("open_", [INSIDE, OUTSIDE])
def test_one_that_takes_connections_has_the_rest_of_its_session(open_: Address) -> None:
    async def scenario() -> None:
        async with with_broker() as (line, cluster):
            cluster.network.listen(*open_, lambda _socket: None)
            line.close()
            assert await seconds_until_fenced(cluster) > 2.5
            assert cluster.network.connects.count(open_) == 4

    run(scenario())


def test_silence_says_nothing() -> None:
    async def scenario() -> None:
        async with with_broker() as (line, cluster):
            cluster.network.unreachable |= {INSIDE, OUTSIDE}
            line.close()
            assert await seconds_until_fenced(cluster) > 2.5

    run(scenario())


def test_a_broker_that_was_replaced_meanwhile_is_not_looked_for() -> None:
    async def scenario() -> None:
        async with with_broker() as (_line, cluster):
            other = Line(await cluster.network.connect("n1", 9093))
            await other.ask(ApiKey.BROKER_HEARTBEAT, 2, BrokerHeartbeatRequest(6, 0))
            other.close()
            await asyncio.sleep(1)
            assert INSIDE not in cluster.network.connects

    run(scenario())
