"""Requests to other brokers: how many are under way, and who is left alone for a moment."""

import asyncio
from collections.abc import Sequence
from itertools import pairwise
from uuid import UUID

import pytest

from riverlog.controller.peers import Lane, Peers
from riverlog.controller.quorum_ports import NoResponse
from riverlog.controller.view import MetadataView
from riverlog.coordination.broker_requests import BrokerRequests, RequestQueue
from riverlog.coordination.limits import BROKER_RETRY_SECONDS_MAX
from riverlog.metadata.image import BrokerImage, MetadataImage, RegisteredEndpoint
from riverlog.model.ids import NodeId
from riverlog.model.resolution import configure
from riverlog.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from tests.support.asking import serving
from tests.support.network import MemoryNetwork
from tests.support.virtual_time import VirtualClock
from tests.support.world import Universe

NO_ID = UUID(int=0)
BOTH = (RegisteredEndpoint("OUTSIDE", "nobody", 1), RegisteredEndpoint("INSIDE", "node", 9092))


def requests_on(network: MemoryNetwork, *endpoints: RegisteredEndpoint, listener: str = "") -> BrokerRequests:
    """Return the way to broker 2, which is registered with these endpoints."""
    view = MetadataView(configure(profile="dev").settings)
    two = NodeId(2)
    view.begin(MetadataImage(brokers={two: BrokerImage(two, 0, NO_ID, endpoints, {}, None, False, ())}))
    peers = Peers(network, "c", connect_seconds=1, request_seconds=1)
    return BrokerRequests(peers, view, VirtualClock(), listener)


async def asked(requests: BrokerRequests, node_id: int = 2) -> ApiVersionsResponse:
    return await requests.ask(NodeId(node_id), ApiVersionsRequest("a", "1"), Lane.MARKERS, seconds=1)  # type: ignore[no-any-return]


async def test_a_broker_is_asked_on_the_listener_for_brokers() -> None:
    universe = Universe()
    async with serving(universe):
        requests = requests_on(universe.network, *BOTH, listener="INSIDE")
        assert (await asked(requests)).api_keys
        with pytest.raises(NoResponse, match="nobody:1"):
            await asked(requests_on(universe.network, *BOTH))
        for unknown in (requests_on(universe.network, *BOTH, listener="ELSEWHERE"), requests_on(universe.network)):
            with pytest.raises(NoResponse, match="no address of broker 2 is known"):
                await asked(unknown)
        with pytest.raises(NoResponse, match="no address of broker 3 is known"):
            await asked(requests, 3)
        await requests.close()


async def test_a_broker_that_cannot_be_reached_is_left_alone_longer_each_time() -> None:
    requests = requests_on(MemoryNetwork(), BOTH[1])
    loop = asyncio.get_running_loop()
    tried: list[float] = []
    ends_at = loop.time() + 20
    while loop.time() < ends_at:
        with pytest.raises(NoResponse) as no:
            await asked(requests)
        if "a moment ago" not in str(no.value):
            tried.append(loop.time())
        await asyncio.sleep(0.01)
    pauses = [later - earlier for earlier, later in pairwise(tried)]
    assert 0.05 <= pauses[0] < 0.1
    assert BROKER_RETRY_SECONDS_MAX <= pauses[-1] < BROKER_RETRY_SECONDS_MAX + 0.1
    assert len(tried) < 30


async def test_a_queue_sends_together_what_has_waited_and_one_request_at_a_time() -> None:
    sent: list[Sequence[int]] = []

    async def send(items: Sequence[int]) -> Sequence[int]:
        sent.append(items)
        await asyncio.sleep(1)
        return items[3:]

    queue: RequestQueue[int] = RequestQueue(send)
    queue.put(1)
    await asyncio.sleep(0.1)
    for item in range(2, 7):
        queue.put(item)
    await asyncio.sleep(1.1)
    queue.put(7)
    await asyncio.sleep(5)
    assert sent == [(1,), (2, 3, 4, 5, 6), (5, 6, 7)]
    queue.put(8)
    await asyncio.sleep(0.1)
    queue.put(9)
    queue.close()
    await asyncio.sleep(5)
    assert sent[3:] == [(8,)]


async def test_a_queue_goes_on_after_a_mistake(caplog: pytest.LogCaptureFixture) -> None:
    sent: list[int] = []

    async def send(items: Sequence[int]) -> Sequence[int]:
        sent.extend(items)
        assert items != (1,)
        return ()

    queue: RequestQueue[int] = RequestQueue(send)
    for item in (1, 2):
        queue.put(item)
        await asyncio.sleep(0.1)
    assert sent == [1, 2]
