"""What all who take part in a simulated run share: the machine, the ledger, the topics, and the trace.

Everything that is said goes into the trace, whose hash is the same for every run of the same plan.
"""

import asyncio
import hashlib
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Final, assert_never

from riverlog import Admin
from riverlog.client.errors import KafkaError
from riverlog.node import Node
from tests.simulation import plan as plans
from tests.simulation.ledger import COMPACTED_TOPIC, Ledger
from tests.simulation.machine import ADDRESS, Machine
from tests.simulation.mistakes import Mistake
from tests.simulation.plan import Plan
from tests.support.disk import Crashed

_ADDRESS: Final = re.compile(r"\b0x[0-9a-f]+")


@dataclass
class Topic:
    """A topic as its users know it."""

    name: str
    incarnation: int = 0
    partitions: int = 0  # 0 while there is none
    configs: dict[str, str] = field(default_factory=dict)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    sending: set["asyncio.Task[None]"] = field(default_factory=set)
    reader: "asyncio.Task[None] | None" = None


@dataclass
class Outcome:
    """What came of a plan."""

    plan: Plan
    trace_hash: str = ""
    violations: list[str] = field(default_factory=list)
    trace: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)


class Scene:
    """A machine with a node, and what the world around it knows; made on the loop that it runs on."""

    def __init__(self, plan: Plan, *, keep_trace: bool) -> None:
        self.plan = plan
        self.durable = plan.settings["durability"] == "fsync"
        self.counts: Counter[str] = Counter()
        self.trace: list[str] = []
        self.hash = hashlib.sha256()
        self.tasks: set[asyncio.Task[None]] = set()
        """What must come to its end before a run does."""
        self.topics = [Topic(f"topic{number}") for number in range(plans.TOPICS)]
        self.topics[plans.COMPACTED].name = COMPACTED_TOPIC
        self.loop = asyncio.get_running_loop()
        self.loop.set_exception_handler(self._unhandled)
        self.ledger = Ledger(self.say, durable=self.durable)
        self.machine = Machine(plan.seed, plan.settings, self.ledger.blame)
        self._keep_trace = keep_trace
        self._clusters: set[str] = set()

    def say(self, event: str) -> None:
        """Put what happened into the trace."""
        line = f"{self.loop.time():.6f} {event}"
        self.hash.update(line.encode())
        if self._keep_trace:
            self.trace.append(line)

    def spawn(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        """Start something beside the steps."""
        task = self.loop.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task

    async def insist(self, ask: Callable[[Admin], Awaitable[None]]) -> None:
        """Ask until it is done: an administrator who does not give up."""
        while True:
            await self.machine.serving()
            try:
                async with Admin(ADDRESS, ports=self.machine.ports, timeout_ms=1_500) as admin:
                    await ask(admin)
                return
            except KafkaError as error:
                self.say(f"admin: {error.code.name}")
                await asyncio.sleep(0.05)

    def trouble(self, action: plans.Trouble) -> None:
        """Cause some trouble to the machine."""
        machine = self.machine
        match action:
            case plans.PowerLoss(0):
                machine.lose_power()
            case plans.PowerLoss():
                machine.crash_after(action.disk_steps)
            case plans.Kill():
                machine.kill()
            case plans.Restart():
                self.spawn(machine.restart())
            case plans.FailDisk():
                machine.disk.fail(action.after, action.error, on=action.kinds, lasting=action.lasting)
            case plans.Heal():
                machine.heal()
            case plans.SlowDisk():
                machine.workers.seconds_max = action.seconds_max
            case plans.CutConnections():
                machine.network.cut(machine.random)
            case plans.JumpClock():
                machine.clock.ahead_ms += action.ahead_ms
            case plans.MakeMistake():
                machine.mistakes.expect(action.after, late=action.late)
            case _:
                assert_never(action)

    def look_at_start(self, node: Node) -> None:
        """Look at a node that has just started: what was only forgotten is no damage, and its name stays."""
        self.say(f"started for the {self.machine.lives}. time")
        self._clusters.add(node.cluster_id)
        if len(self._clusters) > 1:
            self.ledger.blame("the cluster has another id than before")
        (directory,) = node.parts.registry.directories
        if directory.logs.clean and not self.machine.was_clean:
            self.ledger.blame("the node takes a crash for a stop in good order")
        if self.machine.was_clean:
            self.ledger.stopped_cleanly()
        self.machine.was_clean = False
        for damage in directory.logs.damage:
            self.ledger.blame(f"damage: {damage}")

    def outcome(self) -> Outcome:
        """Return what came of the plan."""
        machine = self.machine
        self.say(f"end after {machine.lives} lives")
        self.counts.update(
            steps=len(self.plan.steps),
            lives=machine.lives,
            crashes=machine.crashes,
            kills=machine.kills,
            disk_calls=machine.disk.steps,
        )
        return Outcome(self.plan, self.hash.hexdigest(), self.ledger.violations, self.trace, self.counts)

    def watch(self) -> None:
        """Compare the node's offsets with what they were."""
        node = self.machine.node
        if node is not None:
            known = {topic.name: topic.incarnation for topic in self.topics if topic.partitions}
            self.ledger.watch(node.parts.registry.list_opened(), known)
            for health in node.parts.registry.health():
                if health.offline and not self.machine.disk.has_failed:
                    self.ledger.blame(f"offline though the medium is sound: {health.trouble}")

    def _unhandled(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if not isinstance(
            error, Crashed | Mistake | asyncio.CancelledError
        ):  # both are only ever what became of a node that is gone
            self.ledger.blame(f"unhandled: {_ADDRESS.sub('…', context['message'])}: {error!r}")
