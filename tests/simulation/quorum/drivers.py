"""Controllers as they run on nodes, over disks that forget: crashes, cuts, full disks and snapshots at random.

The machine alone is simulated beside this a hundred times as fast; here its driver is what is tried, the order of its
steps above all. Producer ids are what is decided: no block may be given out twice, and none that was acknowledged lost.
"""

import asyncio
from collections import Counter
from random import Random
from typing import Final

from riverlog.controller.storage import batches_in
from riverlog.log.checkpoint import read_file
from riverlog.model.errors import Refusal
from riverlog.records.batch import read_header
from riverlog.runner import Stopped
from tests.simulation.quorum.run import QuorumOutcome
from tests.support.quorums import BLOCK, FOLDER, Hosts
from tests.support.virtual_time import run

SECONDS: Final = 15.0
_FAULTS: Final = ("crashes", "cut off", "cut one way", "healed", "full disk", "stopped", "nothing")


def simulate_drivers(seed: int) -> QuorumOutcome:
    """Run one simulation."""
    outcome = QuorumOutcome(seed, [], Counter())
    run(_simulate(seed, outcome))
    return outcome


async def _simulate(seed: int, outcome: QuorumOutcome) -> None:
    random = Random(seed)
    nodes = (1, 2, 3) if random.random() < 0.7 else (1, 2, 3, 4, 5)
    every = str(random.choice([1_024, 8_192, 10**8]))
    hosts = Hosts(*nodes, seed=seed, observers=(9,), metadata_log_max_record_bytes_between_snapshots=every)
    hosts.start()
    given = set[int]()
    clients = [asyncio.ensure_future(_allocate(hosts, random, outcome, given)) for _ in range(2)]
    ends_at = asyncio.get_running_loop().time() + SECONDS
    while asyncio.get_running_loop().time() < ends_at:
        await asyncio.sleep(random.random())
        await _do(random.choice(_FAULTS), hosts, random, outcome.counts)
    for client in clients:
        client.cancel()
    hosts.heal()
    for host in hosts.by_id.values():
        host.disk.heal()
        if not host.is_up:
            host.start()
    try:
        await asyncio.sleep(3)  # who was cut off for long may begin one more election
        await (await hosts.leader()).allocate()
        await hosts.settled()
    except (TimeoutError, Refusal, Stopped) as error:
        outcome.violations.append(f"no whole quorum at the end: {type(error).__name__} {error}")
        return
    _judge(hosts, outcome, given)
    await hosts.stop()


async def _allocate(hosts: Hosts, random: Random, outcome: QuorumOutcome, given: set[int]) -> None:
    """Have ids given out, and note what was acknowledged."""
    while True:
        await asyncio.sleep(random.random() * 0.1)
        deciding = [host for host in hosts.by_id.values() if host.is_up and host.controller.is_active]
        if not deciding:
            continue
        host = random.choice(deciding)
        life = host.disk
        try:
            async with asyncio.timeout(3):
                first = await host.allocate()
        except (Refusal, Stopped, TimeoutError) as error:
            outcome.counts[type(error).__name__] += 1
        else:
            if host.disk is life:
                outcome.counts["acknowledged"] += 1
                if first in given:
                    outcome.violations.append(f"block {first} was given out twice")
                given.add(first)


async def _do(fault: str, hosts: Hosts, random: Random, counts: Counter[str]) -> None:
    counts[fault] += 1
    host = random.choice(list(hosts.by_id.values()))
    match fault:
        case "crashes" | "stopped" if not host.is_up:
            host.disk.heal()
            host.start()
        case "crashes":
            host.crash()
        case "stopped":
            await host.controller.close()
            host.is_up = False
        case "cut off":
            hosts.cut_off(host.node)
        case "cut one way":
            hosts.cuts.add((host.node, random.choice(list(hosts.by_id))))
        case "full disk" if host.is_up:
            kinds = random.choice([("write",), ("open", "write")])
            host.disk.fail(random.randrange(0, 5), 28, on=kinds, lasting=True)
            asyncio.get_running_loop().call_later(random.random() * 2, host.disk.heal)
        case _:
            hosts.heal()


def _judge(hosts: Hosts, outcome: QuorumOutcome, given: set[int]) -> None:
    """Look for what was lost, and for logs that differ."""
    batches: dict[int, bytes] = {}
    for host in hosts.by_id.values():
        outcome.violations.extend(f"node {host.node} failed: {failure!r}" for failure in host.failures)
        if given and host.allocated < max(given) + BLOCK:
            outcome.violations.append(f"node {host.node} has lost what was given out")
        for name in sorted(name for name in host.disk.list(FOLDER) if name.endswith(".log")):
            for batch in batches_in(memoryview(read_file(host.disk, f"{FOLDER}/{name}") or b"")):
                if batches.setdefault(read_header(batch).base_offset, bytes(batch)) != batch:
                    outcome.violations.append(f"the log of node {host.node} differs")
