"""One run: a cluster of whole nodes, its clients, the faults of a plan, and at the end a cluster that must be whole."""

import hashlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Final, Self

from riverlog.client.consumer.consumer import Consumer
from riverlog.client.errors import KafkaError
from riverlog.model.ids import Address, TopicPartition
from tests.simulation.cluster.clients import (
    GROUP,
    Acknowledged,
    Administrator,
    Place,
    consume,
    consume_in_group,
    produce,
    wrong_commits,
    wrong_topics,
)
from tests.simulation.cluster.hosts import ClientHost, NodeHost
from tests.simulation.cluster.invariants import Checker, content_of
from tests.simulation.cluster.plan import SECONDS, Plan, Step, draw_plan
from tests.simulation.cluster.universe import ProcessLoop, Universe
from tests.simulation.cluster.wires import Wires
from tests.simulation.quorum.run import QuorumOutcome
from tests.simulation.shrink import kind_of, smallest
from tests.support.clusters import ClusterOfNodes

HEAL_SECONDS: Final = 30.0
LOAD: Final = "load"
PARTITIONS: Final = 3
_ADMINISTRATORS: Final = 2
_START_SECONDS: Final = 60.0
_DOWN_SECONDS_MAX: Final = 4.0
_PAUSE_SECONDS_MAX: Final = 12.0
_RUNS_MAX: Final = 100


@dataclass(frozen=True)
class ClusterOutcome(QuorumOutcome):
    """What a run came to."""

    plan: Plan
    trace_hash: str


class ClusterRun:
    """The nodes, the clients, and what happens to them."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.violations: list[str] = []
        self.universe = Universe()
        self.wires = Wires(self.universe, Random(f"{plan.seed} wires"))
        self.ledger = Acknowledged()
        self._trace = hashlib.sha256()
        self._random = Random(f"{plan.seed} run")
        formatted = ClusterOfNodes(
            plan.roles,
            seed=plan.seed,
            metadata_log_max_record_bytes_between_snapshots=str(plan.snapshot_bytes),
        )
        self.nodes = {
            node: NodeHost(
                node,
                self.universe,
                self.wires,
                plan.seed,
                disk=formatted.disks[node],
                settings=lambda node=node: formatted.settings(node),  # type: ignore[misc]
                blame=self.report,
                steps_in_work=plan.steps_in_work,
            )
            for node in plan.roles
        }
        controllers = [self.nodes[node] for node, role in plan.roles.items() if "controller" in role]
        self.checker = Checker(self.report, controllers)
        self.brokers = tuple(
            Address(self.nodes[node].name, 9092) for node, role in plan.roles.items() if "broker" in role
        )
        self.is_healing = False
        for host in self.nodes.values():
            host.ended = self._start_later
            host.crashed = self._start_later
        self.universe.after_turn = self._look

    def report(self, violation: str) -> None:
        """Note what must not be."""
        self.violations.append(f"{self.universe.now - 1_000:.3f} s: {violation}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        """End all that runs."""
        for loop in list(self.universe.loops):
            self.universe.drop(loop)

    def run(self) -> ClusterOutcome:
        """Run it all."""
        with self:
            self._run()
        self._trace.update(f"{self.universe.now} {self.universe.turns} {self.ledger.records}".encode())
        for batch in self.checker.log.batches.values():
            self._trace.update(batch)
        return ClusterOutcome(self.plan.seed, self.violations, self.ledger.counts, self.plan, self._trace.hexdigest())

    def start(self) -> None:
        """Start all nodes, and wait until they serve."""
        for host in self.nodes.values():
            host.start()
        if not self.until(self._all_serve, _START_SECONDS):
            self.report("the cluster does not start")

    def _run(self) -> None:
        self.start()
        if self.violations:
            return
        clients = self._start_clients()
        began = self.universe.now
        for step in self.plan.steps:
            self.universe.at(began + step.at, lambda step=step: self._do(step))  # type: ignore[misc]
        self.universe.run(began + SECONDS, lambda: bool(self.violations))
        if self.violations:
            return
        self._heal()
        for client in clients[:_ADMINISTRATORS]:
            client.end()  # what is being asked may still be done
        if not self.until(self._is_whole, HEAL_SECONDS):
            self.report(f"not whole {HEAL_SECONDS:g} s after everything was healed: {self._state()}")
            return
        for client in clients:
            client.end()
        self._judge()
        self.ledger.counts["turns"] += self.universe.turns
        self.ledger.counts["elections"] += len(self.checker.elections.leaders)
        self.ledger.counts["starts"] += sum(host.lives for host in self.nodes.values())

    # -- clients

    def _start_clients(self) -> list[ClientHost]:
        bootstrap = [str(address) for address in self.brokers]
        admins = [self.client(f"admin{number}") for number in range(_ADMINISTRATORS)]
        workers = [Administrator(host, self.brokers, self.ledger, self.report) for host in admins]
        made = admins[0].do(workers[0].create(PARTITIONS, LOAD))
        if not self.until(made.done, _START_SECONDS) or not made.result().exists:
            self.report("no topic can be created")
            return admins
        workers[0].forget(made.result())
        for host, worker in zip(admins, workers, strict=True):
            host.do(worker.work())
        producers = [self.client(f"producer{number}") for number in range(2)]
        for host in producers:
            host.do(produce(host, bootstrap, LOAD, self.ledger))
        consumer = self.client("consumer")
        consumer.do(consume(consumer, bootstrap, LOAD, self.ledger, PARTITIONS))
        members = [self.client(f"member{number}") for number in range(2)]
        for host in members:
            host.do(consume_in_group(host, bootstrap, LOAD, self.ledger))
        return [*admins, *producers, consumer, *members]

    def client(self, name: str) -> ClientHost:
        """Return a host for a client."""
        return ClientHost(name, self.universe, self.wires, self.plan.seed, blame=self.report)

    # -- faults

    def _do(self, step: Step) -> None:
        host = list(self.nodes.values())[step.target % len(self.nodes)]
        others = [each.name for each in self.nodes.values() if each is not host]
        other = self._random.choice(others)
        if self.is_healing:
            return
        self.ledger.counts[step.fault] += 1
        self._trace.update(f"{self.universe.now} {self.universe.turns} {step}".encode())
        match step.fault:
            case "active controller":
                active = self.active() or host
                active.kill()
                self._start_later(active)
            case "kill" if host.is_up:
                host.kill()
                self._start_later(host)
            case "power" if host.is_up:
                host.lose_power()
                self._start_later(host)
            case "power everywhere":
                for each in self.nodes.values():
                    if each.is_up:
                        each.lose_power()
                        self._start_later(each)
            case "power at a call":
                host.lose_power_after(int(step.amount * 30))
            case "stop":
                host.stop()
            case "pause":
                host.pause(step.amount**2 * _PAUSE_SECONDS_MAX)
            case "stall":
                host.stall_after(int(step.amount * 10), self._random.random() * 3)
            case "wall clock":
                host.wall_ahead_seconds = (step.amount - 0.5) * 1_200
            case "cut off":
                for name in others:
                    self.wires.cut(host.name, name)
                    self.wires.cut(name, host.name)
            case "cut one way":
                for name in others:
                    self.wires.cut(*((host.name, name) if step.amount < 0.5 else (name, host.name)))
            case "cut between":
                self.wires.cut(host.name, other)
                if step.amount < 0.5:
                    self.wires.cut(other, host.name)
            case "reset":
                self.wires.reset(host.name, step.amount)
            case "slow link":
                self.wires.slow[host.name] = step.amount**2 * 0.5
            case "slow disk":
                host.worker_seconds_max = step.amount * 0.3
            case "full disk" if host.is_up:
                host.fill_disk(int(step.amount * 10), self._random.random() * 3)
            case "heal":
                self.wires.heal()
            case _:
                pass

    def _start_later(self, host: NodeHost) -> None:
        self.universe.after(self._random.random() ** 2 * _DOWN_SECONDS_MAX, host.start)

    def _heal(self) -> None:
        self.is_healing = True
        self.wires.heal()
        for host in self.nodes.values():
            host.heal()
            if host.loop is not None:
                host.loop.stands_still_until = self.universe.now
            elif not host.is_up:
                host.start()

    # -- what is seen

    def _look(self, loop: ProcessLoop) -> None:
        for host in self.nodes.values():
            if host.loop is loop:
                self.checker.look(host)
                return

    def active(self) -> NodeHost | None:
        """Return the node that decides."""
        deciding = [
            host for host in self.nodes.values() if host.is_serving and host.node and host.node.controller.is_active
        ]
        return max(deciding, key=lambda host: host.node.controller.quorum.epoch if host.node else 0, default=None)

    def _all_serve(self) -> bool:
        return all(host.is_serving for host in self.nodes.values())

    def _is_whole(self) -> bool:
        """Return whether everybody serves and knows the same, and every broker may lead what it has."""
        active = self.active()
        if active is None or active.node is None or not self._all_serve():
            return False
        controller, image = active.node.controller, active.node.controller.image
        return (
            controller.loaded_offset == controller.end_offset == self.checker.log.end
            and all(
                host.node and host.node.controller.loaded_offset == controller.end_offset
                for host in self.nodes.values()
            )
            and all(broker.is_active for broker in image.brokers.values())
            and len(image.brokers) == len(self.brokers)
            and all(part.leader >= 0 for topic in image.all_topics() for part in topic.partitions)
        )

    def _state(self) -> str:
        return "; ".join(
            f"{host.name} {'serves' if host.is_serving else 'starts' if host.is_up else 'is down'}"
            + (
                f" epoch {host.node.controller.quorum.epoch} leader {host.node.controller.quorum.leader_id}"
                f" loaded {host.node.controller.loaded_offset}"
                if host.node is not None and host.node._part is not None
                else ""
            )
            for host in self.nodes.values()
        )

    # -- the end

    def _judge(self) -> None:
        image = self.checker.image()
        wanted = content_of(image)
        for host in self.nodes.values():
            assert host.node is not None
            if content_of(host.node.controller.image) != wanted:
                self.report(f"{host.name} has made something else of the committed records")
        for wrong in wrong_topics(self.ledger, image):
            self.report(wrong)
        reader = self.client("reader")
        reading = reader.do(self._read_all(reader))
        if not self.until(reading.done, HEAL_SECONDS):
            self.report("the records cannot be read")
            return
        found, committed = reading.result()
        for wrong in wrong_commits(self.ledger, committed, found):
            self.report(wrong)
        for (partition, offset), value in {**self.ledger.shown, **self.ledger.records}.items():
            if found.get((partition, offset)) != value:
                self.report(f"{partition} at {offset} is {found.get((partition, offset))!r} instead of {value!r}")
        values = Counter(found.values())
        self.violations.extend(f"{value!r} is there {count} times" for value, count in values.items() if count > 1)
        self.violations.extend(f"{value!r} was never sent" for value in values if value not in self.ledger.sent)
        if self.ledger.counts["altered"]:
            self.report("a record was altered after it was shown")

    async def _read_all(self, host: ClientHost) -> tuple[dict[Place, bytes], dict[TopicPartition, int]]:
        """Return all records, and what the group has committed."""
        found: dict[Place, bytes] = {}
        names = [TopicPartition(LOAD, index) for index in range(PARTITIONS)]
        bootstrap = [str(address) for address in self.brokers]
        while True:
            try:
                async with Consumer(bootstrap, group=GROUP, auto_commit=False, ports=host.ports()) as consumer:
                    consumer.assign(names)
                    await consumer.seek_to_beginning(*names)
                    ends = await consumer.end_offsets(names)
                    while any([await consumer.position(name) < ends[name] for name in names]):
                        for record in await consumer.poll():
                            place = TopicPartition(record.topic, record.partition)
                            found[place, record.offset] = record.value or b""
                    commits = await consumer.committed(*names)
                    return found, {name: 0 if each is None else each.offset for name, each in commits.items()}
            except KafkaError:
                self.ledger.counts["reads repeated"] += 1

    def until(self, holds: Callable[[], bool], seconds: float) -> bool:
        """Let time pass until something holds; return whether it came."""
        ends_at = self.universe.now + seconds
        while self.universe.now < ends_at and not self.violations:
            if self.universe.run(self.universe.now + 0.05, lambda: bool(self.violations)):
                return False
            if holds():
                return True
        return False


def simulate_cluster(seed: int) -> ClusterOutcome:
    """Run a seed."""
    return ClusterRun(draw_plan(seed)).run()


def shrink(outcome: ClusterOutcome) -> Plan:
    """Return the plan with the fewest faults found that leads to the same kind of violation."""
    wanted = kind_of(outcome.violations[0])

    def fails(steps: object) -> bool:
        found = ClusterRun(outcome.plan.with_steps(tuple(steps))).run().violations  # type: ignore[arg-type]
        return any(kind_of(each) == wanted for each in found)

    return outcome.plan.with_steps(tuple(smallest(outcome.plan.steps, fails, runs_max=_RUNS_MAX)))
