"""The load of `riverlog verify` on a simulated machine that loses power, kills its node and cuts connections.

What real processes show for three kills, this shows for as many as wanted, at moments that no real kill would find.
"""

import asyncio
from random import Random
from typing import Any

import pytest

from riverlog.verify.history import History
from riverlog.verify.load.run import Load, Report, verify
from riverlog.verify.load.scene import Protocol
from tests.simulation.machine import ADDRESS, Machine
from tests.support.disk import Crashed
from tests.support.virtual_time import run

SETTINGS = {
    "durability": "fsync",
    "log.segment.bytes": "16384",
    "log.index.interval.bytes": "512",
    "offsets.topic.num.partitions": "2",
    "group.consumer.session.timeout.ms": "10000",
    "group.consumer.min.session.timeout.ms": "5000",
}


async def trouble(machine: Machine, random: Random, over: asyncio.Event) -> None:
    """Do the machine harm, again and again, until it is enough; then let it heal."""
    while not over.is_set():
        await asyncio.sleep(random.uniform(0.1, 3))
        match random.randrange(6):
            case 0:
                machine.lose_power()
            case 1 | 2:
                machine.crash_after(random.randrange(60))
            case 3:
                machine.kill()
            case 4:
                machine.network.cut(random)
            case _:
                await machine.restart()
    machine.heal()


def verified(seed: int, **settings: str) -> tuple[Report, list[str], int]:
    """Run the load of a seed; give its report, what the node is blamed for, and how many lives it had."""
    protocol: Protocol = "consumer" if seed % 2 else "classic"
    load = Load(seconds=12, partitions=2, producers=2, consumers=2, rate=40, protocol=protocol, seed=seed)

    async def scenario() -> tuple[Report, list[str], int]:
        blamed: list[str] = []

        def unhandled(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
            if not isinstance(context.get("exception"), Crashed | asyncio.CancelledError):  # what is left of a node
                blamed.append(f"unhandled: {context}")

        asyncio.get_running_loop().set_exception_handler(unhandled)
        machine = Machine(seed, SETTINGS | settings, blamed.append)
        await machine.serving()
        over = asyncio.Event()
        troubling: list[asyncio.Task[None]] = []

        def say(part: str, _history: History) -> None:
            if not troubling:  # the topics are made
                troubling.append(asyncio.create_task(trouble(machine, Random(seed), over)))
            if part != "writing and reading":
                over.set()

        report = await verify(ADDRESS, load, ports=machine.ports, say=say, warn=blamed.append)
        await asyncio.gather(*troubling)
        await machine.shut_down()
        return report, blamed, machine.lives

    return run(scenario())


@pytest.mark.parametrize("seed", range(4))
def test_promises_are_kept_over_losses_of_power(seed: int) -> None:
    report, blamed, lives = verified(seed)
    assert blamed == []
    assert [anomaly.sentence for anomaly in report.verdict.anomalies] == []
    assert report.unfinished == []
    assert lives > 2
    assert report.verdict.acknowledged > 100
    assert report.verdict.commits > 0


def test_what_a_loss_of_power_takes_from_a_page_cache_is_noticed() -> None:
    report, _, _ = verified(0, durability="os")
    assert {"lost", "commit went back"} <= report.verdict.counts.keys()
