"""Carries out a plan: producers, readers and an administrator around a machine that has the plan's troubles.

The clients are riverlog's own and live through every crash. After each step the node's offsets are compared with what
they were. In the end all trouble stops, the power is lost once more, and everything is read from the beginning.
"""

import asyncio
from typing import Any, Final

from riverlog import Admin, Consumer, Producer
from riverlog.client.errors import KafkaError
from riverlog.log.checkpoint import decode_offsets
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import TopicPartition
from riverlog.node import Node
from tests.simulation import plan as plans
from tests.simulation.churn import FRONT, Churning
from tests.simulation.groups import Groups
from tests.simulation.ledger import COMPACTED_TOPIC, Label
from tests.simulation.machine import ADDRESS
from tests.simulation.plan import Plan
from tests.simulation.readers import Readers
from tests.simulation.scene import Outcome, Scene, Topic
from tests.simulation.transaction_acts import TransactionAct
from tests.simulation.transaction_run import TransactionalRun
from tests.support.virtual_time import run

EXACTLY_ONCE: Final = frozenset({0})
"""Producers that are idempotent; the second waits for durability without being so, the third does not even wait."""
FOR_GOOD: Final = frozenset({0, 1})
COMPACTED: Final = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0", "segment.bytes": "1024"}
DELIVERY_MS: Final = 8_000
SETTLE_SECONDS_MAX: Final = 60.0
REPLAY_EVERY: Final = 8
"""After so many steps the state of the groups is compared with the replay of their topic."""


def simulate(plan: Plan, *, keep_trace: bool = False) -> Outcome:
    """Run a plan on virtual time, in the world that it is for."""
    return run(_simulate(plan, keep_trace=keep_trace))


async def _simulate(plan: Plan, *, keep_trace: bool) -> Outcome:
    scene = Scene(plan, keep_trace=keep_trace)
    return await (TransactionalRun(scene) if plan.transactional else _Run(scene)).all()


class _Run:
    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._readers = Readers(scene)
        self._groups = Groups(scene, self._readers)
        self._churning = Churning(scene)
        self._producers: list[Producer]
        scene.machine.on_start = self._started
        scene.machine.on_power_lost = self._power_lost

    async def all(self) -> Outcome:
        """Run the plan from the first start to the last read."""
        await self._open_clients()
        for number, step in enumerate(self._scene.plan.steps):
            await asyncio.sleep(step.after_seconds)
            self._scene.say(str(step.action))
            await self._act(step.action)
            self._scene.watch()
            if number % REPLAY_EVERY == 0:
                self._groups.compare_with_replay()
        try:
            async with asyncio.timeout(SETTLE_SECONDS_MAX):
                await self._settle()
            async with asyncio.timeout(SETTLE_SECONDS_MAX):
                await self._read_back()
        except KafkaError as error:
            self._scene.ledger.blame(f"the node does not come back: {error}")
        except TimeoutError:
            waiting = sorted(task.get_coro().__qualname__ for task in self._scene.tasks)
            self._scene.ledger.blame(f"it does not come to an end; still waiting: {waiting}")
        await self._scene.machine.shut_down()
        return self._closed()

    def _closed(self) -> Outcome:
        scene = self._scene
        scene.counts.update(
            acknowledged=scene.ledger.records_promised,
            shown=scene.ledger.records_shown,
            commits=self._groups.ledger.commits_acknowledged,
        )
        return scene.outcome()

    def _power_lost(self) -> None:
        self._scene.say("power lost")
        self._scene.ledger.power_lost()
        self._groups.ledger.power_lost()

    def _started(self, node: Node) -> None:
        self._scene.look_at_start(node)
        if self._groups.present:
            self._scene.spawn(self._groups.audit())

    # -- steps

    async def _act(self, action: plans.Action) -> None:
        topics, spawn = self._scene.topics, self._scene.spawn
        match action:
            case plans.Produce():
                self._produce(action)
            case plans.CreateTopic():
                spawn(self._create_topic(topics[action.topic], action.partitions))
            case plans.DeleteTopic():
                spawn(self._delete_topic(topics[action.topic]))
            case plans.Churn():
                spawn(self._churning.churn(action))
            case plans.DeleteRecords():
                spawn(self._delete_records(topics[action.topic], action))
            case plans.AlterTopic():
                spawn(self._alter_topic(topics[action.topic], action))
            case plans.Rot():
                self._rot(topics[action.topic], action)
            case plans.Join():
                self._groups.join(action.member)
            case plans.Leave():
                self._groups.leave(action.member)
            case plans.Vanish():
                self._groups.vanish(action.member)
            case plans.CommitAlone():
                spawn(self._groups.commit_alone(topics[action.topic], action.partition))
            case TransactionAct() | plans.Wait():
                pass
            case _:
                self._scene.trouble(action)

    async def _open_clients(self) -> None:
        await self._scene.machine.serving()
        ports = self._scene.machine.ports
        timing: dict[str, Any] = {"delivery_timeout_ms": DELIVERY_MS, "request_timeout_ms": 2_000, "ports": ports}
        self._producers = [
            Producer(ADDRESS, client_id="once", linger_ms=1, batch_bytes_max=900, **timing),
            Producer(ADDRESS, client_id="durable", idempotent=False, compression="lz4", batch_bytes_max=900, **timing),
            Producer(ADDRESS, client_id="loose", acks=1, batch_bytes_max=600, **timing),
        ]
        for producer in self._producers:
            await producer.start()

    def _produce(self, action: plans.Produce) -> None:
        topic = self._scene.topics[action.topic]
        if not topic.partitions or topic.lock.locked():
            return
        task = self._scene.spawn(self._send(topic, action.partition % topic.partitions, action.producer, action.count))
        topic.sending.add(task)
        task.add_done_callback(topic.sending.discard)

    async def _send(self, topic: Topic, partition: int, number: int, count: int) -> None:
        ledger = self._scene.ledger.partition(topic.name, topic.incarnation, partition)
        producer = self._producers[number]
        crashes = self._scene.machine.crashes
        sent = []
        for _ in range(count):
            label = Label(topic.name, topic.incarnation, partition, number, ledger.sent)
            ledger.sent += 1
            sent.append((label, producer.send_soon(topic.name, label.value(), key=label.key(), partition=partition)))
        for label, delivery in sent:
            try:
                where = await delivery
            except KafkaError as error:
                self._scene.say(f"{label} not acknowledged: {error.code.name}")
                self._scene.counts["unacknowledged"] += 1
                continue
            self._scene.say(f"{label} at {where.offset}")
            if (number in FOR_GOOD and self._scene.durable) or self._scene.machine.crashes == crashes:
                self._scene.ledger.acknowledged(label, where.offset, for_good=number in FOR_GOOD)

    def _rot(self, topic: Topic, action: plans.Rot) -> None:
        """Change a bit of what is closed and was synced: anything else may be a torn write.

        In gaps that compaction left a wrong offset is not noticed.
        """
        if not topic.partitions or topic.lock.locked() or topic.name == COMPACTED_TOPIC:
            return
        disk = self._scene.machine.disk
        partition = TopicPartition(topic.name, action.partition % topic.partitions)
        path, folder = "/data/recovery-point-offset-checkpoint", f"/data/{partition}"
        known = decode_offsets(disk.content(path) or b"0\n0\n", path)
        if not disk.exists(folder):
            return
        names = [name for name in disk.list(folder) if name.endswith((".log", ".index", ".timeindex"))]
        bases = sorted(int(name[:20]) for name in names if name.endswith(".log"))
        closed = bases[: max(0, sum(base <= known.get(partition, 0) for base in bases) - 1)]
        files = [f"{folder}/{name}" for name in names if int(name[:20]) in closed]
        bit = int(action.share * 8 * sum(len(disk.content(file)) for file in files))
        for file in files:
            size = len(disk.content(file))
            if bit < 8 * size:
                disk.damage(file, bit // 8, 1 << bit % 8)
                self._scene.ledger.partition(topic.name, topic.incarnation, partition.partition).rotten = True
                self._scene.counts["rotten"] += 1
                self._scene.say(f"{file} rots at {bit // 8}")
                return
            bit -= 8 * size

    async def _create_topic(self, topic: Topic, partitions: int) -> None:
        async with topic.lock:
            if not topic.partitions:
                await self._create(topic, partitions)

    async def _create(self, topic: Topic, partitions: int) -> None:
        async def create(admin: Admin) -> None:
            try:
                configs = COMPACTED if topic.name == COMPACTED_TOPIC else {}
                await admin.create_topic(topic.name, partitions=partitions, configs=configs)
            except KafkaError as error:
                if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                    raise

        await self._scene.insist(create)
        topic.incarnation += 1
        topic.partitions = partitions
        topic.configs = {}
        self._scene.say(f"{topic.name} created")
        topic.reader = self._scene.loop.create_task(self._readers.read_on(topic, topic.incarnation, partitions))

    async def _delete_topic(self, topic: Topic) -> None:
        async with topic.lock:
            if not topic.partitions:
                return
            partitions, topic.partitions = topic.partitions, 0
            if topic.sending:
                await asyncio.wait(set(topic.sending))
            await self._readers.end(topic)

            async def delete(admin: Admin) -> None:
                try:
                    await admin.delete_topics(topic.name)
                except KafkaError as error:
                    if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                        raise

            await self._scene.insist(delete)
            self._scene.say(f"{topic.name} deleted")
            await self._create(topic, partitions)

    async def _delete_records(self, topic: Topic, action: plans.DeleteRecords) -> None:
        async with topic.lock:
            if not topic.partitions or topic.name == COMPACTED_TOPIC:
                return
            index = action.partition % topic.partitions
            ledger = self._scene.ledger.partition(topic.name, topic.incarnation, index)
            before = int(ledger.high_watermark * action.share)
            ledger.given_up = max(ledger.given_up, before)

            async def delete(admin: Admin) -> None:
                try:
                    await admin.delete_records({TopicPartition(topic.name, index): before})
                except KafkaError as error:
                    if error.code is not ErrorCode.OFFSET_OUT_OF_RANGE:
                        raise
                    return  # what was to be deleted is lost already
                if self._scene.durable:
                    ledger.deleted = max(ledger.deleted, before)
                self._scene.say(f"{topic.name}-{index} deleted below {before}")

            await self._scene.insist(delete)

    async def _alter_topic(self, topic: Topic, action: plans.AlterTopic) -> None:
        async with topic.lock:
            if not topic.partitions:
                return
            if action.setting.startswith("retention."):
                for index in range(topic.partitions):
                    self._scene.ledger.partition(topic.name, topic.incarnation, index).may_expire = True
            await self._scene.insist(
                lambda admin: admin.alter_configs({action.setting: action.value}, topic=topic.name)
            )
            topic.configs[action.setting] = action.value

    # -- the end

    async def _settle(self) -> None:
        """End all trouble, and wait until everything under way has come to its end; then lose power once more."""
        self._scene.machine.heal()
        if self._scene.machine.node is not None and self._scene.machine.node.not_ready():
            self._scene.machine.lose_power()  # a directory that is offline comes back with a restart
        while self._scene.tasks:
            await asyncio.wait(set(self._scene.tasks))
        for topic in self._scene.topics:
            await self._readers.end(topic)
        for producer in self._producers:
            try:
                await producer.close()
            except KafkaError:
                pass  # every delivery has told already
        await self._groups.catch_up()
        self._scene.watch()
        self._scene.machine.lose_power()
        await asyncio.sleep(0.001)
        await self._scene.machine.serving()
        self._scene.watch()

    async def _read_back(self) -> None:
        ports = self._scene.machine.ports
        given: dict[str, Any] = {"ports": ports, "auto_offset_reset": "earliest"}  # retention goes on meanwhile
        async with Admin(ADDRESS, ports=ports) as admin, Consumer(ADDRESS, **given) as consumer:
            there = {
                topic.name: len(topic.partitions) for topic in await admin.list_topics() if FRONT not in topic.name
            }
            expected = {topic.name: topic.partitions for topic in self._scene.topics if topic.partitions}
            if there != expected:
                self._scene.ledger.blame(f"the node has the topics {there}; {expected} were created")
            for topic in self._scene.topics:
                if there.get(topic.name) == topic.partitions:
                    await self._read_topic(topic, admin, consumer)
        if self._groups.present:
            await self._groups.audit()

    async def _read_topic(self, topic: Topic, admin: Admin, consumer: Consumer) -> None:
        ledger = self._scene.ledger
        configs = await admin.describe_configs(topic=topic.name)
        for name, value in topic.configs.items():
            if configs[name].value != value:
                ledger.blame(f"{topic.name} has {name}={configs[name].value}; {value} was acknowledged")
        for index in range(topic.partitions):
            read = await self._readers.read_back(topic, index, consumer)
            self._scene.watch()
            ledger.judge(topic.name, topic.incarnation, index, read, EXACTLY_ONCE)
            await self._groups.judge(TopicPartition(topic.name, index), admin, [offset for offset, _ in read])
