"""Brokers as processes: one that is killed is missed at once, one that is only paused when its session ends."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from riverlog.client.admin.admin import Admin
from riverlog.model.ids import NodeId
from tests.support.cluster_processes import BROKER, CONTROLLER, ClusterProcesses

SECONDS_MAX: Final = 2.0
"""Before its session would have ended, which takes three; what is measured is printed."""


async def leaders(admin: Admin) -> set[int | None]:
    [described] = await admin.describe_topics("events")
    return {each.leader for each in described.partitions}


async def seconds_until(done: Callable[[], Awaitable[bool]]) -> float:
    began = time.monotonic()
    while not await done():
        assert time.monotonic() < began + 20
        await asyncio.sleep(0.005)
    return time.monotonic() - began


def test_a_killed_broker_is_missed_at_once_and_a_paused_one_when_its_session_ends(tmp_path: Path) -> None:
    async def scenario(cluster: ClusterProcesses) -> tuple[float, float]:
        async with Admin(cluster.bootstrap(5)) as admin:
            await admin.create_topic("events", partitions=4)
            assert await leaders(admin) == {4, 5}

            async def is_missed() -> bool:
                return NodeId(4) not in await leaders(admin)

            async def is_back() -> bool:
                return NodeId(4) in await leaders(admin)

            cluster.kill(4)
            killed = await seconds_until(is_missed)
            await asyncio.to_thread(cluster.start, 4)
            await seconds_until(is_back)
            cluster.pause(4)
            paused = await seconds_until(is_missed)
            cluster.resume(4)
            await seconds_until(is_back)
            return killed, paused

    with ClusterProcesses(tmp_path, {1: CONTROLLER, 4: BROKER, 5: BROKER}) as cluster:
        cluster.start()
        killed, paused = asyncio.run(scenario(cluster))
        print(f"missed after kill -9: {killed:.3f} s; after SIGSTOP: {paused:.3f} s")
        assert killed < SECONDS_MAX < paused
