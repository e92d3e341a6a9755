"""Mutated requests at a whole node on virtual time: none may end it, and afterwards it serves as before."""

import asyncio
import gc
from random import Random
from typing import Final

from riverlog.model.errors import ErrorCode
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.fuzz.mutation import mutate
from tests.fuzz.seeds import requests
from tests.fuzz.targets import outcome
from tests.support.asking import connected, serving
from tests.support.network import MemorySocket
from tests.support.world import Universe

CONNECTIONS: Final = 150
FRAMES_PER_CONNECTION: Final = 10


async def test_no_mutated_request_ends_the_node() -> None:
    random = Random(1)
    frames = [frame[4:] for frame in requests(random, each=1)]
    faults: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, fault: faults.append(fault))
    universe = Universe()
    async with serving(universe) as (_line, node):
        failed = asyncio.ensure_future(node.run())
        for _ in range(CONNECTIONS):
            burst = [readable(frames, random) for _ in range(FRAMES_PER_CONNECTION)]
            peer: MemorySocket = await universe.network.connect("node", 9092)
            peer.send(b"".join(len(frame).to_bytes(4) + frame for frame in burst))
            await asyncio.sleep(random.choice((0.001, 1.0)))
            peer.close()
            assert not failed.done(), (failed.result(), [frame.hex() for frame in burst])
        failed.cancel()
        wanted = MetadataRequest(topics=[MetadataRequestTopic(name="orders")], allow_auto_topic_creation=True)
        honest = await connected(universe)
        (topic,) = (await honest.ask(ApiKey.METADATA, 12, wanted)).topics
        assert topic.error_code == ErrorCode.NONE
    gc.collect()
    assert faults == []


def readable(frames: list[bytes], random: Random) -> bytes:
    """Mutate until what comes out is still a request."""
    while True:
        frame = mutate(random.choice(frames), random, random.choice(frames))
        if outcome("request", frame) == "a request":
            return frame
