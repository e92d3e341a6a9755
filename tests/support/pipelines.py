"""A pipeline over a checkpoint store on a whole node: batches as Spark and its sink make them, and what readers see."""

import asyncio
import json
from typing import Any

from riverlog import Admin, Consumer, Member, NewRecord, TopicPartition
from riverlog.checkpoints.pipelines.pipeline import ONLY_WRITE, AnnouncedWrite, Caller
from riverlog.checkpoints.store import Store, store_over
from riverlog.client.producer.shared_transactions import Membership, SharedBatch
from tests.support.checkpoints import put
from tests.support.checkpoints import read as read_file
from tests.support.members import ADDRESS, TOPIC
from tests.support.world import Universe

PATH = "/pipelines/revenue"
SOURCE = "sales"


async def opened(universe: Universe) -> Store:
    store = store_over(ADDRESS, universe.ports, universe.security)
    await store.open()
    return store


class Run:
    """One start of a query. What it writes and commits names it, so that a mixture of two would be seen."""

    def __init__(
        self, universe: Universe, store: Store, name: str, *, query: str = "q", timeout_ms: int = 60_000
    ) -> None:
        self.universe = universe
        self.store = store
        self.caller = Caller(query, name)
        self.timeout_ms = timeout_ms

    async def batch(self, number: int) -> None:
        """Run a batch from its plan to its commit."""
        await self.plan(number)
        await self.announce(number, await self.write(number))
        await self.create(number)
        await self.rename(number)

    async def plan(self, number: int) -> None:
        """Write `offsets/N`, unless the run before has."""
        if self.store.storage.tree.file(f"{PATH}/offsets/{number}") is None:
            source = {SOURCE: {"0": 10 * (number + 1)}, "elsewhere": {"7": 1}}
            temporary = f"{PATH}/offsets/.{number}.{self.caller.run}.tmp"
            await put(self.store, temporary, b"v1\n{}\n" + json.dumps(source).encode())
            await self.store.rename(temporary, f"{PATH}/offsets/{number}", overwrite=False)

    async def begin(self, number: int) -> SharedBatch:
        await self.plan(number)
        return await self.store.decisions.begin(PATH, self.caller, number, timeout_ms=self.timeout_ms)

    async def write(self, number: int, *, stateful: bool = True, task: int = 0) -> Membership:
        """Write the batch's output, and its state, as one task."""
        batch = await self.begin(number)
        async with Member(ADDRESS, batch, task=task, attempt=0, ports=self.universe.ports) as member:
            await member.write([NewRecord(TOPIC, f"{number} {self.caller.run} {part}".encode()) for part in "ab"])
            if stateful and self.store.storage.tree.file(self._state_file(number)) is None:
                await self.keep_state(number)
            return await member.finish()

    async def keep_state(self, number: int, *, partition: int = 0) -> None:
        """Write the batch's state, as a task does when it has no more rows."""
        temporary = f"{PATH}/state/0/{partition}/.{number}.{self.caller.run}.tmp"
        await put(self.store, temporary, b"state")
        await self.store.rename(temporary, self._state_file(number, partition), overwrite=True)

    def _state_file(self, number: int, partition: int = 0) -> str:
        return f"{PATH}/state/0/{partition}/{number + 1}_{self.state(number)}.changelog"

    async def announce(self, number: int, *memberships: Membership, write: str = ONLY_WRITE) -> None:
        members = tuple(each.producer for each in memberships if each.producer is not None)
        await self.store.decisions.announce(PATH, self.caller, number, AnnouncedWrite(write, members))

    def state(self, number: int) -> str:
        return f"state-{number}-{self.caller.run}"

    def temporary(self, number: int) -> str:
        return f"{PATH}/commits/.{number}.{self.caller.run}.tmp"

    async def create(self, number: int, *, stateful: bool = True, partitions: int = 1) -> None:
        """Write the file that is to become `commits/N`."""
        facts: dict[str, Any] = {"run": self.caller.run}
        if stateful:
            facts["stateUniqueIds"] = {"0": [[self.state(number)]] * partitions}
        await put(self.store, self.temporary(number), b"v2\n" + json.dumps(facts).encode())

    async def rename(self, number: int) -> None:
        await self.store.rename(self.temporary(number), f"{PATH}/commits/{number}", overwrite=False)


async def committer(store: Store, number: int) -> str | None:
    """Return whose `commits/N` is there."""
    if store.storage.tree.file(f"{PATH}/commits/{number}") is None:
        return None
    return str(json.loads((await read_file(store, f"{PATH}/commits/{number}")).splitlines()[1])["run"])


async def output(universe: Universe) -> list[str]:
    """Return what a reader of committed records sees once all markers that are on their way have come."""
    await asyncio.sleep(1)
    async with Consumer(ADDRESS, isolation_level="read_committed", ports=universe.ports) as consumer:
        partitions = [TopicPartition(TOPIC, index) for index in range(4)]
        consumer.assign(partitions)
        await consumer.seek_to_beginning()
        ends = await consumer.end_offsets(partitions)
        values: list[str] = []
        while any((consumer.held()[at] or 0) < end for at, end in ends.items()):
            values += [(record.value or b"").decode() for record in await consumer.poll(100)]
        return sorted(values)


def written_by(name: str, *numbers: int) -> list[str]:
    """Return the output of whole batches of a run."""
    return [f"{number} {name} {part}" for number in numbers for part in "ab"]


async def group_offset(universe: Universe, group: str = "revenue") -> int | None:
    async with Admin(ADDRESS, ports=universe.ports) as admin:
        found = (await admin.group_offsets(group)).get(TopicPartition(SOURCE, 0))
        return None if found is None else found.offset


async def create_source(universe: Universe) -> None:
    async with Admin(ADDRESS, ports=universe.ports) as admin:
        await admin.create_topic(SOURCE, partitions=1)
